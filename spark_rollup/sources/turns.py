"""Ingest files so that one which ends every run (for lack of memory, say) does not stop the others for good.

Before files are ingested, a note says which. A run that finds such a note knows that an earlier run died with these
files: it ingests all others first, then these, in smaller turns after each death, and at last one by one. A file with
which three runs died alone is put aside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from spark_rollup.bronze.place import Place, put

NOTE = "_trying.json"

PATIENCE = 3
"""How many runs must have died with a file alone before it is put aside: a run may be killed for other reasons."""

R = TypeVar("R")

Files = Mapping[str, int]
"""Path -> size, bytes."""


def ingest_all(
    note: Place,
    fresh: Files,
    ingest: Callable[[Files], R],
    put_aside: Callable[[str, int], R],
    is_deadly: Callable[[BaseException], bool],
    at_once: int,
) -> list[R]:
    """Ingest all files, the suspected ones last.

    Args:
        note: File that outlives a run.
        fresh: What is to be ingested.
        ingest: Ingests some files for good, or raises.
        put_aside: Puts away a file (path, size in bytes) that must not be read.
        is_deadly: Returns whether a failure may be the fault of what was ingested.
        at_once: Most files of one turn; a sixteenth of it after each death.

    Returns:
        What `ingest` and `put_aside` gave, in order.
    """
    died = _read(note, fresh)
    turns: list[tuple[int, dict[str, int]]] = []
    for deaths in sorted({0, *died.values()}):
        paths = [path for path in fresh if died.get(path, 0) == deaths]
        step = max(1, at_once >> 4 * deaths)
        turns += [(deaths, {p: fresh[p] for p in paths[i : i + step]}) for i in range(0, len(paths), step)]
    done = []
    for deaths, files in turns or [(0, {})]:
        if deaths >= PATIENCE and at_once >> 4 * (deaths - PATIENCE) <= 1:  # alone for so many deaths
            done += [put_aside(path, size_bytes) for path, size_bytes in files.items()]
        else:
            _write(note, fresh, died | dict.fromkeys(files, deaths + 1))
            try:
                done.append(ingest(files))
            except BaseException as error:
                if not is_deadly(error):
                    _write(note, fresh, died)
                raise
        died = {path: number for path, number in died.items() if path not in files}
    note.unlink(missing_ok=True)
    return done


def _read(note: Place, fresh: Files) -> dict[str, int]:
    """Read how many runs died with each file; a torn note says nothing, and a file that changed is a new one."""
    try:
        rows = json.loads(note.read_text(encoding="ascii"))
        return {path: int(row["died"]) for path, row in rows.items() if fresh.get(path) == row["bytes"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write(note: Place, fresh: Files, died: Files) -> None:
    if died:
        rows = {path: {"bytes": fresh[path], "died": number} for path, number in died.items()}
        put(note, json.dumps(rows))
    else:
        note.unlink(missing_ok=True)
