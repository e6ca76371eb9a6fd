"""Long-running fault tests: `python -m tests.soak` repeats real faults and checks what is left each time.

Short versions run in the test suite. One file per fault; contract.py says how to write one.
"""
