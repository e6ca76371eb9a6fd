"""The folder of the soaks: Ctrl-C ends them, also where Python drops what it raises."""

from __future__ import annotations

import signal
import sys
import weakref
from pathlib import Path

import pytest

from tests.soak.contract import Trial
from tests.soak.scratch import scratch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")


class Thing:
    """Something that is gone at some moment."""


def test_a_ctrl_c_that_python_drops_ends_the_next_round(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    done: list[int] = []
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), scratch() as place:
            trial = Trial("kill", Path(place), seed=1, rounds=5)
            for number in trial.rounds():
                done.append(number)
                thing = Thing()
                known = weakref.ref(
                    thing, lambda _: signal.raise_signal(signal.SIGINT)
                )  # as importlib forgets its locks
                del thing
                assert known() is None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)

    assert done == [1]
    assert not place.exists()
    assert capfd.readouterr().err == ""


def test_a_ctrl_c_that_comes_out_as_something_else_is_one() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), scratch():
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("the C extensions failed") from None  # as numpy has it
        with pytest.raises(ImportError), scratch():
            raise ImportError
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_ctrl_c_of_an_earlier_soak_ends_no_later_one() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), scratch():
            signal.raise_signal(signal.SIGINT)
        with scratch() as place:
            assert list(Trial("kill", Path(place), seed=1, rounds=2).rounds()) == [1, 2]
    finally:
        signal.signal(signal.SIGINT, before)
