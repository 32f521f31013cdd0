"""What the queue leaves out of recorded runs changes nothing of what the agent says."""

from __future__ import annotations

import itertools
import os
import struct

import pytest
from watchdog.observers.inotify_c import InotifyConstants

from agent.inventory.hints import Hint
from agent.replay.run import Player
from agent.replay.trace import Operation
from agent.watch import inotify
from agent.watch.inotify import parse_events
from tests.agent.engine import playing

_ISDIR = InotifyConstants.IN_ISDIR


class QueuedPlayer(Player):
    """Sends the hints of a recording through the form that the kernel gives them."""

    def __init__(self) -> None:
        super().__init__()
        self._watches: dict[str, int] = {}
        self._cookies = itertools.count(1)
        self.left_out = 0

    def hints(self, operation: Operation) -> tuple[Hint, ...]:
        """Write them as notifications, and parse those."""
        told = super().hints(operation)
        cookie = next(self._cookies) if operation.op == "rename" else 0
        events, count = parse_events(b"".join(self._event(hint, cookie) for hint in told))
        assert count == len(told)
        self.left_out += count - len(events)
        paths = {number: path for path, number in self._watches.items()}
        return tuple(
            Hint(
                f"{paths[x.watch]}/{os.fsdecode(x.name)}".lstrip("/"), x.kind, operation.at_us, x.is_directory
            )
            for x in events
        )

    def _event(self, hint: Hint, cookie: int) -> bytes:
        directory, _, name = hint.path.rpartition("/")
        watch = self._watches.setdefault(directory, len(self._watches) + 1)
        mask = inotify._BITS[hint.kind] | (_ISDIR if hint.is_directory else 0)
        padded = os.fsencode(name) + b"\0" * (16 - len(os.fsencode(name)) % 16)
        return struct.pack("=iIII", watch, mask, cookie, len(padded)) + padded


@pytest.mark.parametrize(
    ("scenario", "pod"),
    [
        ("benign-move-3.9.2", "pod-a"),
        ("torn-clean-3.9.2", "pod-a"),
        pytest.param("kafka-9891-2.5.0", "pod-a", marks=pytest.mark.heavy),
        pytest.param("kafka-8187-stage2-2.0.1", "pod-a", marks=pytest.mark.heavy),
    ],
)
@pytest.mark.parametrize("span_us", [0, 50_000])
def test_records_are_the_same_without_it(scenario, pod, span_us, monkeypatch):
    """Every record of the run, in order, however many operations are heard of at once."""
    players: list[QueuedPlayer] = []

    def make() -> QueuedPlayer:
        players.append(QueuedPlayer())
        return players[-1]

    def size() -> int:
        return 50

    before = playing.run_of(scenario, pod, size=size, span_us=span_us).records
    monkeypatch.setattr(playing, "Player", make)
    assert playing.run_of(scenario, pod, size=size, span_us=span_us).records == before
    assert players[-1].left_out
