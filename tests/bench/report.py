"""The tables of a bench run, for the terminal or a file."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.goals import GOALS
from tests.bench.measure import spread
from tests.bench.versions import AFTER, Version

_HEAD = """# Bench run

Written by `make bench`. One run on one machine: ratios and orders of magnitude carry over, numbers
do not. Values are medians with the lowest and highest round in brackets. CPU is user and kernel time of the
process itself, so that other load on the machine changes it little; wall time is given where it is the promise.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What a benchmark is told.

    Args of the dataclass:
        full: Sizes of the promise; else sizes that take about a minute in all.
        rounds: How often everything is measured.
        work: Empty directory of its own; removed afterwards.
        load_s: How long each load on a watcher lasts.
        memory: The same on a file system in memory, where the machine has one; else `work`.
        before: An older commit that is measured beside this checkout, in turn.
    """

    full: bool
    rounds: int
    work: Path
    memory: Path
    load_s: float = 10.0
    before: Version | None = None

    @property
    def versions(self) -> tuple[Version, ...]:
        """This checkout, and the older commit if there is one."""
        return (AFTER, self.before) if self.before else (AFTER,)

    def turns(self, names: Sequence[str], number: int) -> list[str]:
        """Give the order of one round: rotated, and every second one backwards, so that no two keep their order."""
        turn = number % len(names)
        order = [*names[turn:], *names[:turn]]
        return order[::-1] if number % 2 else order


@dataclass(frozen=True, slots=True)
class Measured:
    """One number of a run, for the table that shows before and after.

    Args of the dataclass:
        what: What it is, with its unit.
        after: This checkout, one value per round.
        before: The older commit, in the same rounds; empty = it was not measured.
        peer: Who else, and how much.
        goal: Key in `GOALS`.
        digits: Decimals.
    """

    what: str
    after: Sequence[float]
    before: Sequence[float] = ()
    peer: str = "-"
    goal: str | None = None
    digits: int = 2

    def result(self) -> float:
        """Give the median of this checkout."""
        return statistics.median(self.after)

    def row(self) -> tuple[str, ...]:
        """Tell before, after, their ratio, the peer and the goal."""
        return (
            self.what,
            spread(self.before, self.digits) if self.before else "-",
            spread(self.after, self.digits),
            self._ratio(),
            self.peer,
            self._judged(),
        )

    def _ratio(self) -> str:
        """Give the median of the rounds' ratios: what disturbs a machine for longer than a round disturbs both."""
        if len(self.before) != len(self.after) or not all(self.before):
            return "-"
        ratios = [after / before for after, before in zip(self.after, self.before, strict=True)]
        return f"{statistics.median(ratios):.2f} x"

    def _judged(self) -> str:
        if self.goal is None:
            return "-"
        goal = GOALS[self.goal]
        return f"{goal.text}: {'met' if goal.is_met(self.result()) else '**missed**'}"


@dataclass(frozen=True, slots=True)
class Section:
    """What one benchmark found.

    Args of the dataclass:
        title: Its heading.
        method: What was done, in a few sentences.
        header: Column names; the first column is the row's name.
        rows: Cells.
        notes: Sentences below the table; what was skipped and why.
        measured: What of it has a goal, or a before and an after.
    """

    title: str
    method: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str] = ()
    measured: Sequence[Measured] = ()


def render_page(sections: Sequence[Section], options: Options) -> str:
    """Render the whole page."""
    lines = [_HEAD, machine_note(options), ""]
    for section in sections:
        lines += ["", f"## {section.title}", "", section.method, "", *_table(section.header, section.rows)]
        for note in section.notes:
            lines += ["", note]
    lines += ["", *compared(sections, options), "", *goal_rows(sections, options)]
    return "\n".join(lines) + "\n"


def render_text(section: Section, options: Options) -> str:
    """Render one section for the terminal, with the machine: ratios do not carry over to another one either."""
    lines = [
        f"\n{section.title}",
        machine_note(options),
        *_table(section.header, section.rows),
        *section.notes,
    ]
    return "\n".join([*lines, *compared([section], options)]) + "\n"


def compared(sections: Sequence[Section], options: Options) -> list[str]:
    """Lay out in one table what was measured in one run: before, after, their ratio, the peer and the goal."""
    rows = [one.row() for section in sections for one in section.measured]
    if not rows:
        return []
    before = f"before ({options.before.commit})" if options.before else "before"
    header = ("measure", before, f"after ({AFTER.commit})", "after / before", "peer", "goal")
    return ["", *_table(header, rows)]


def goal_rows(sections: Sequence[Section], options: Options) -> list[str]:
    """Write the rows of the table of goals in docs/evidence.md that this run fills."""
    size = " --full" if options.full else ""
    day = datetime.now(tz=UTC).date().isoformat()
    rows = []
    for one in (one for section in sections for one in section.measured if one.goal):
        goal = GOALS[one.goal or ""]
        command = f'`make bench ARGS="{goal.bench}{size}"`'
        result = f"{spread(one.after, one.digits)} {goal.unit}".strip()
        is_met = "met" if goal.is_met(one.result()) else "**missed**"
        rows.append((goal.text, result, is_met, one.peer, command, processor(), day))
    return _table(("goal", "result", "", "peer", "how to run", "processor", "date"), rows) if rows else []


def machine_note(options: Options | None = None) -> str:
    """Tell where this was measured, without naming the machine."""
    load = os.getloadavg()[0]
    machine = (
        f"Machine: {processor()}, {os.cpu_count()} cores, {_memory_gib():.0f} GiB, Linux {platform.release()},"
        f" Python {platform.python_version()}; load average at the end {load:.1f}."
    )
    if options is None:
        return machine
    return f"{machine} {'Full' if options.full else 'Small'} sizes, rounds: {options.rounds}."


def processor() -> str:
    """Name the processor's model, as the kernel does, without trade marks."""
    for line in Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            return name.replace("(R)", "").replace("(TM)", "").removesuffix(" Processor")
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    marks = ("---", *("---:" for _ in header[1:]))
    return [f"| {' | '.join(row)} |" for row in (header, marks, *rows)]
