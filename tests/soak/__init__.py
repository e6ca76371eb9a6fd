"""Fault tests that can run for hours: `python -m tests.soak`. Short versions run in the test suite (test_soak.py).

A scenario is a function `run(trial)` that repeats a real fault and checks what is left; `SOAKS` in __main__.py lists
them. Each round draws its chances from the seed and its own number, so one round can be repeated alone.
"""
