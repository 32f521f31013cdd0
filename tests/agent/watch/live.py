"""A clock to turn by hand, and a live watch with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent.clock import Clock
from agent.inventory.hints import Hint, HintKind
from agent.watch.inotify import InotifyQueue
from agent.watch.inotify_source import InotifySource
from agent.watch.mailbox import Mailbox
from agent.watch.tree_watch import TreeWatch

DEADLINE_S = 120.0


class HandClock:
    """A clock that moves only when told to; every look at the wall clock is one microsecond later."""

    def __init__(self) -> None:
        self.wall_us = 1_700_000_000_000_000
        self.elapsed_s = 1000.0

    def now_us(self) -> int:
        """Tell the wall clock time."""
        self.wall_us += 1
        return self.wall_us

    def monotonic_s(self) -> float:
        """Tell the seconds since some fixed point."""
        return self.elapsed_s


def source_on(root: Path, mailbox: Mailbox, clock: Clock) -> InotifySource:
    """Make a source on a queue of its own."""
    return InotifySource(TreeWatch(root, InotifyQueue(), clock), mailbox)


@dataclass
class LiveWatch:
    """A source, the directory that it watches, and everything that it announced so far."""

    root: Path
    mailbox: Mailbox
    source: InotifySource
    hints: list[Hint] = field(default_factory=list)

    def wait_for(self, enough: Callable[[list[Hint]], bool]) -> list[Hint]:
        """Collect hints until there are enough; fail at the deadline."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not enough(self.hints):
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, f"{len(self.hints)} hints are not enough: ... {self.hints[-20:]}"
            self.hints += self.mailbox.drain(left_s)
        return self.hints

    def wait_for_path(self, path: str, kind: HintKind) -> list[Hint]:
        """Collect hints until one of this path and kind arrives."""
        return self.wait_for(lambda hints: any((hint.path, hint.kind) == (path, kind) for hint in hints))

    def wait_for_cause(self, cause: str) -> list[Hint]:
        """Collect hints until a rescan with this cause arrives."""
        return self.wait_for(lambda hints: any(hint.cause == cause for hint in hints))
