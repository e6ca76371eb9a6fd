"""One key of a terminal, without Enter."""

from __future__ import annotations

import os
import sys


def read_key(prompt: str, allowed: str) -> str:
    """Wait for one of these keys; Ctrl-C is heard, and the end of the input is q. Case does not count."""
    try:
        import termios
        import tty
    except ImportError:  # not on Windows: there a line has to do
        return _read_line(prompt, allowed)
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)  # before anybody is asked: it throws away what was typed so far
        print(prompt, flush=True)
        while True:
            pressed = os.read(descriptor, 1).decode("latin-1").lower()
            if not pressed or pressed == "\x04":
                return "q"
            if pressed in allowed:
                return pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read_line(prompt: str, allowed: str) -> str:
    while True:
        print(prompt, flush=True)
        line = sys.stdin.readline()
        pressed = line.strip().lower()[:1]
        if not line or (pressed and pressed in allowed):
            return pressed or "q"
