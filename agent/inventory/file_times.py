"""One clock: what is known by file times is moved when the clock of the file server turns out to differ. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from agent.inventory.model import CheckpointClaim, Database, Inventory, Store, Task
from agent.inventory.segments import Opening
from agent.inventory.timeline import Timeline

SERVED_VOLUMES = frozenset({"network", "fuse"})
"""Kinds of volumes whose file times may come from another machine."""

KEPT = 32
LEAST = 2
"""A store that is opened writes two files once, at least: IDENTITY or a manifest's options, and options."""
SAME_US = 100_000
"""So late an announcement may be followed: less cannot be distinguished from a delay of our own."""
MOST_US = 3_600_000_000
"""A time that is further away was set by hand, or kept by a copy."""


@dataclass(slots=True)
class ClockDifference:
    """By how much file times are ahead of the clock of this node, by files that were just announced as written.

    A file is announced after it was written, and heard of later still: of several differences the largest is the one
    with the least delay of our own.
    """

    _differences: deque[int] = field(default_factory=lambda: deque(maxlen=KEPT))

    def note(self, written_us: int, announced_us: int) -> int | None:
        """Take the time of a file that is written once, and when it was announced; None = not known yet."""
        if abs(written_us - announced_us) <= MOST_US:
            self._differences.append(written_us - announced_us)
        if len(self._differences) < LEAST:
            return None
        largest = max(self._differences)
        return largest if abs(largest) > SAME_US else 0


def clock_sentence(inventory: Inventory) -> str:
    """Say that file times come from another clock than this node's; empty = they do not, or it is the same."""
    if inventory.volume not in SERVED_VOLUMES or inventory.ahead_us == 0:
        return ""
    if inventory.ahead_us is None:
        return "no file was announced as written yet, so the clock of the file server was not compared with this node's"
    return f"file times are {inventory.ahead_us / 1_000_000:+.1f} s off this node's clock, and are taken without that"


def move_file_times(inventory: Inventory, by_us: int) -> None:
    """Move everything that is known by the time of a file."""
    for application in inventory.applications.values():
        versions = application.rocksdb_versions
        versions.update((name, at_us + by_us) for name, at_us in [*versions.items()])
        application.offsets_family_us = _moved(application.offsets_family_us, by_us)
        application.plain_us = _moved(application.plain_us, by_us)
        for task in application.tasks.values():
            _move_task(task, by_us)


def _move_task(task: Task, by_us: int) -> None:
    task.mtime_us = _moved(task.mtime_us, by_us)
    task.checkpoint_problem_us = _moved(task.checkpoint_problem_us, by_us)
    for fact in task.checkpoints:
        fact.written_us += by_us
        if fact.ended_us is not None and not fact.deleted:  # by the time of the one that replaced it
            fact.ended_us += by_us
    for store in task.stores.values():
        _move_store(store, by_us)


def _move_store(store: Store, by_us: int) -> None:
    born = {database.born_us for database in store.databases.values()}
    marks: dict[int, CheckpointClaim] = {}
    for session in store.sessions:
        marks.update((id(mark), mark) for mark in (session.first, session.last) if mark is not None)
        session.bulk_load_commits = tuple(at_us + by_us for at_us in session.bulk_load_commits)
        if session.opened_us in born:
            session.opened_us += by_us
    for mark in marks.values():
        mark.at_us += by_us
    for past in store.past:
        past.born_us, past.flushed_us = _moved(past.born_us, by_us), _moved(past.flushed_us, by_us)
    for database in store.databases.values():
        _move_database(database, by_us)
    store.openings = tuple(_moved_opening(opening, by_us) for opening in store.openings)


def _move_database(database: Database, by_us: int) -> None:
    for name in ("born_us", "undated_us", "options_written_us", "touched_us", "offset_us"):
        setattr(database, name, _moved(getattr(database, name), by_us))
    database.flushed = Timeline((puts, at_us + by_us) for puts, at_us in database.flushed)
    if database.offsets is not None:
        written_us = _moved(database.offsets.written_us, by_us)
        database.offsets = replace(database.offsets, written_us=written_us)


def _moved_opening(opening: Opening, by_us: int) -> Opening:
    segments = (
        replace(
            one,
            born_us=one.born_us + by_us,
            opened_us=one.born_us + by_us if one.made_in_this_life else one.opened_us,
            offset_us=_moved(one.offset_us, by_us),
            flushed_us=_moved(one.flushed_us, by_us),
        )
        for one in opening.segments
    )
    return replace(opening, segments=tuple(segments))


def _moved(at_us: int, by_us: int) -> int:
    """Move a time; 0 = there is none."""
    return at_us + by_us if at_us else 0
