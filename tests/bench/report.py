"""The tables of a bench run, for the terminal or a file."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """

    full: bool
    rounds: int
    work: Path
    memory: Path
    load_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Section:
    """What one benchmark found.

    Args of the dataclass:
        title: Its heading.
        method: What was done, in a few sentences.
        header: Column names; the first column is the row's name.
        rows: Cells.
        notes: Sentences below the table; what was skipped and why.
    """

    title: str
    method: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str] = ()


def judged(goal: str, is_met: bool) -> str:
    """Say whether a goal is met."""
    return f"Goal, {goal}: {'met' if is_met else '**missed**'}."


def render_page(sections: Sequence[Section], options: Options) -> str:
    """Render the whole page."""
    lines = [_HEAD, machine_note(options), ""]
    for section in sections:
        lines += ["", f"## {section.title}", "", section.method, "", *_table(section)]
        for note in section.notes:
            lines += ["", note]
    return "\n".join(lines) + "\n"


def render_text(section: Section) -> str:
    """Render one section for the terminal."""
    return "\n".join([f"\n{section.title}", *_table(section), *section.notes]) + "\n"


def machine_note(options: Options) -> str:
    """Tell where this was measured, without naming the machine."""
    sizes = "full sizes" if options.full else "small sizes"
    load = os.getloadavg()[0]
    return (
        f"Machine: {os.cpu_count()} cores ({_processor()}), {_memory_gib():.0f} GiB, Linux {platform.release()},"
        f" Python {platform.python_version()}; load average at the end {load:.1f}. {sizes.capitalize()},"
        f" rounds: {options.rounds}."
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3


def _table(section: Section) -> list[str]:
    marks = ("---", *("---:" for _ in section.header[1:]))
    return [f"| {' | '.join(row)} |" for row in (section.header, marks, *section.rows)]
