"""What a bench run measured, in one table: before, after, the peer and the goal."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.bench.goals import GOALS
from tests.bench.measure import spread
from tests.bench.versions import AFTER, Version

T = TypeVar("T")
Rounds = Mapping[str, Sequence[T]]
"""What each version gave: its name -> one value per round."""


@dataclass(frozen=True, slots=True)
class Options:
    full: bool  # sizes of the promise; else sizes that take about a minute in all
    rounds: int  # how often everything is measured
    work: Path  # empty directory of its own; removed afterwards
    memory: Path  # the same on a file system in memory, where the machine has one; else `work`
    load_s: float = 10.0  # how long each load on a watcher lasts
    before: Version | None = None  # an older commit that is measured beside this checkout, in turn

    @property
    def versions(self) -> tuple[Version, ...]:
        """This checkout, and the older commit if there is one."""
        return (AFTER, self.before) if self.before else (AFTER,)

    def each(self, measure: Callable[[Version], T]) -> dict[str, list[T]]:
        """Measure every version in every round, in turn, every second round backwards."""
        told: dict[str, list[T]] = {version.name: [] for version in self.versions}
        for number in range(self.rounds):
            for version in self.versions[:: -1 if number % 2 else 1]:
                told[version.name].append(measure(version))
        return told

    def turns(self, names: Sequence[str], number: int) -> list[str]:
        """Give the order of one round: rotated, and every second one backwards, so that no two keep their order."""
        turn = number % len(names)
        order = [*names[turn:], *names[:turn]]
        return order[::-1] if number % 2 else order


@dataclass(frozen=True, slots=True)
class Measured:
    what: str  # what it is, with its unit
    after: Sequence[float]  # this checkout, one value per round
    before: Sequence[float] = ()  # the older commit, in the same rounds; empty = it was not measured
    peer: str = "-"  # who else, and how much
    goal: str | None = None  # key in `GOALS`
    digits: int = 2  # decimals

    @property
    def is_met(self) -> bool:
        """Whether the median of this checkout meets the goal."""
        return self.goal is None or GOALS[self.goal].is_met(statistics.median(self.after))

    def row(self) -> tuple[str, ...]:
        """Tell before, after, their ratio, the peer and the goal."""
        return (
            self.what,
            spread(self.before, self.digits) if self.before else "-",
            spread(self.after, self.digits),
            self._ratio(),
            self.peer,
            f"{GOALS[self.goal].text}: {'met' if self.is_met else '**missed**'}" if self.goal else "-",
        )

    def _ratio(self) -> str:
        """Give the median of the rounds' ratios: what disturbs a machine for longer than a round disturbs both."""
        if len(self.before) != len(self.after) or not all(self.before):
            return "-"
        ratios = [after / before for after, before in zip(self.after, self.before, strict=True)]
        return f"{statistics.median(ratios):.2f} x"


def compared(
    what: str,
    rounds: Rounds[T],
    value: Callable[[T], float],
    goal: str | None = None,
    digits: int = 2,
    peer: str = "-",
) -> Measured:
    """Take one number out of what each version gave."""
    after, before = ([value(x) for x in rounds.get(name, ())] for name in ("after", "before"))
    return Measured(what, after, before, peer, goal, digits)


def table(measured: Sequence[Measured], options: Options) -> str:
    """Lay out what was measured, with the machine: numbers and ratios do not carry over to another one."""
    before = f"before ({options.before.commit})" if options.before else "before"
    header = ("measure", before, f"after ({AFTER.commit})", "after / before", "peer", "goal")
    rows = [header, ("---", *("---:" for _ in header[1:])), *(one.row() for one in measured)]
    size = f"{'Full' if options.full else 'Small'} sizes, rounds: {options.rounds}."
    return "\n".join(["", f"{machine_note()} {size}", "", *(f"| {' | '.join(row)} |" for row in rows), ""])


def machine_note() -> str:
    """Tell where this was measured, without naming the machine."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return (
        f"Machine: {_processor()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, Linux {platform.release()},"
        f" Python {platform.python_version()}; load average at the end {os.getloadavg()[0]:.1f}."
    )


def _processor() -> str:
    """Name the processor's model, as the kernel does, without trade marks."""
    for line in Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            return name.replace("(R)", "").replace("(TM)", "").removesuffix(" Processor")
    return platform.machine()
