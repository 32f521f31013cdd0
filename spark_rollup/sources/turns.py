"""Ingest files so that one which ends every run (for lack of memory, say) does not stop the others for good.

Before files are ingested, a note says which. A run that finds such a note knows that an earlier run died with these
files: it ingests all other files first, in turns, then these in halves. A single file with which three runs died is put
aside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from spark_rollup.bronze.place import Place, put

NOTE = "_trying.json"

PATIENCE = 3
"""How many runs must have died with a file alone before it is put aside: a run may be killed for other reasons."""

R = TypeVar("R")

Files = Mapping[str, int]
"""Path -> size, bytes."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of which at least one is suspected, and how often a run died with all of them."""

    files: Files
    died: int = 0


def ingest_all(
    note: Place,
    fresh: Files,
    ingest: Callable[[Files], R],
    put_aside: Callable[[str, int], R],
    is_deadly: Callable[[BaseException], bool],
    at_once: int = 1 << 60,
) -> list[R]:
    """Ingest all files, the suspected ones last.

    Args:
        note: File that outlives a run.
        fresh: What is to be ingested.
        ingest: Ingests some files for good, or raises.
        put_aside: Puts away a file (path, size in bytes) that must not be read.
        is_deadly: Returns whether a failure may be the fault of what was ingested.
        at_once: Most files of one turn.

    Returns:
        What `ingest` and `put_aside` gave, in order.
    """
    groups = [group for group in _suspected(note, fresh) if group.files]
    known = {path for group in groups for path in group.files}
    innocent = [(path, size) for path, size in fresh.items() if path not in known]
    turns = [Group(dict(innocent[start : start + at_once])) for start in range(0, len(innocent), at_once)]
    todo = [*turns, *groups] or [Group({})]
    done = []
    while todo:
        group, *others = todo
        if len(group.files) == 1 and group.died >= PATIENCE:
            ((path, size_bytes),) = group.files.items()
            done.append(put_aside(path, size_bytes))
        else:
            _write(note, [replace(group, died=group.died + 1), *(one for one in others if one.died)])
            try:
                done.append(ingest(group.files))
            except BaseException as error:
                if not is_deadly(error):
                    _write(note, [one for one in todo if one.died])
                raise
        todo = others
    note.unlink(missing_ok=True)
    return done


def _suspected(note: Place, fresh: Files) -> list[Group]:
    """Read which groups died, those of more than one file in halves; what is not fresh any more is left out."""
    try:
        rows = json.loads(note.read_text(encoding="ascii"))
        groups = [
            Group({str(path): int(size) for path, size in row["files"].items()}, int(row["died"]))
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    found = []
    for group in groups:
        files = sorted((path, size) for path, size in group.files.items() if fresh.get(path) == size)
        if len(files) > 1 and group.died:
            half = len(files) // 2
            found += [Group(dict(files[:half]), 1), Group(dict(files[half:]), 1)]
        elif group.died:
            found.append(Group(dict(files), group.died))
    return found


def _write(note: Place, groups: Sequence[Group]) -> None:
    if not any(group.files for group in groups):
        note.unlink(missing_ok=True)
        return
    put(note, json.dumps([{"files": dict(group.files), "died": group.died} for group in groups]))
