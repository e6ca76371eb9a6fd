"""`co soak`: real faults, again and again, and a look at what is left each time.

The short versions of these run in the test suite. One file a fault; contract.py says how they are written.
"""
