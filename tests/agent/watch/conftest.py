"""Fixtures of the watch tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.watch.mailbox import Mailbox
from tests.agent.watch.live import HandClock, LiveWatch, source_on


@pytest.fixture
def hand_clock() -> HandClock:
    """Give a clock that moves only when told to."""
    return HandClock()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveWatch]:
    """Watch an existing, empty state directory; the first rescan has been asked for already."""
    root = tmp_path / "state"
    root.mkdir()
    mailbox = Mailbox()
    watch = LiveWatch(root, mailbox, source_on(root, mailbox, SystemClock()))
    watch.source.start()
    watch.wait_for_cause("start")
    watch.hints.clear()
    yield watch
    watch.source.stop()
