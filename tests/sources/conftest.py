"""Servers on loopback, and an ear for every connection that this process makes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.sources.web_server import Listener

_heard: list[list[str]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect" and _heard:
        address = arguments[1]
        if isinstance(address, tuple):
            _heard[-1].append(str(address[0]))


sys.addaudithook(_hear)


@pytest.fixture
def connections() -> Iterator[list[str]]:
    """Every address that something in this process tried to connect to."""
    _heard.append([])
    yield _heard[-1]
    _heard.pop()


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Somebody inside who should never hear from us."""
    with closing(Listener()) as opened:
        yield opened
