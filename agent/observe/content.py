"""What was read of a database -> fields of a reading."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from agent.inventory.copied import dated
from agent.inventory.observations import Flush, StoreOffsets
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.replay import ManifestView, Origin
from agent.observe.rocksdb.store import StoreFacts


def of_unread(why: Unread) -> dict[str, Any]:
    """Fields of a reading that came to nothing."""
    return {
        "manifest_problem": why.problem or why.unseen.value,
        "problems": (why.problem,) if why.problem else (),
        "goes_on": why.goes_on,
        "waits": why.waits,
        "offsets_unread": True,
    }


def of_content(facts: StoreFacts, announced_us: Mapping[int, int], ahead_us: int) -> dict[str, Any]:
    """Fields of a reading by what the files say; a reading is made once, with all of them."""
    view = facts.manifest
    # what was written when all sequence numbers are 0: no more was written than was given out at the open
    floor = view.opened_sequence or 0 if view.has_zeroed else 0
    written_us = _written_us(facts, announced_us, ahead_us)
    offsets_unread = facts.offsets is not None and bool(facts.offsets.problems)
    return {
        "manifest": view.number,
        "manifest_problem": view.problem,
        "problems": facts.problems,
        "puts": view.flushed_sequence,
        "zeroed_puts": floor,
        "opened_puts": max(view.snapshot_sequence, floor),
        "opened_sequence": view.opened_sequence,
        "flushes": _flushes(view, written_us),
        "families_in_use": view.families_in_use,
        "files": len(view.names),
        "size_bytes": sum(x.size_bytes for x in view.live) + sum(x.size_bytes for x in view.blobs),
        "entries_low": facts.live.low if facts.live else None,
        "entries_high": facts.live.high if facts.live else None,
        "deletions": facts.deletions,
        "missing_files": facts.missing_files,
        "oldest_data_us": _oldest_data_us(facts),
        "offsets": None if offsets_unread else _offsets(facts, written_us),
        "offsets_unread": offsets_unread,
    }


def _written_us(facts: StoreFacts, announced_us: Mapping[int, int], ahead_us: int) -> dict[int, int]:
    """Date the data files, by number, as far as that is known."""
    seen = ((x.file.number, x.mtime_us - ahead_us) for x in facts.files if x.mtime_us is not None)
    return {**announced_us, **{number: dated(at_us, announced_us.get(number, 0)) for number, at_us in seen}}


def _flushes(view: ManifestView, written_us: Mapping[int, int]) -> tuple[Flush, ...]:
    """Data files with the time at which each was written, as far as it is known at the time of the reading."""
    flushes = [
        Flush(
            added.number,
            added.largest_sequence,
            written_us.get(added.number),
            compacted=added.origin is Origin.COMPACTION,
        )
        for added in view.data_files
    ]
    return tuple(sorted(flushes, key=attrgetter("sequence", "number")))


def _oldest_data_us(facts: StoreFacts) -> int:
    """Take the earliest time that a live file knows of its own data; a compaction keeps that of its inputs."""
    known = [one.properties for one in facts.files if one.properties is not None]
    times_s = (
        x for one in known for x in (one.creation_time_s, one.oldest_key_time_s, one.file_creation_time_s)
    )
    return min((x for x in times_s if x), default=0) * 1_000_000


def _offsets(store: StoreFacts, written_us: Mapping[int, int]) -> StoreOffsets | None:
    """Keep what decides: values, their sequence numbers, and the newest file they lie in."""
    facts = store.offsets
    if facts is None:
        return None
    file = max((x.file_number for _, x in facts.offsets), default=0)
    return StoreOffsets(
        status=facts.status.value if facts.status else None,
        status_sequence=facts.status.sequence if facts.status else 0,
        offsets=tuple((name, x.value, x.sequence) for name, x in facts.offsets),
        position_sequence=facts.position_sequence,
        offset_file=file,
        removed_sequence=facts.removed_sequence,
        written_us=written_us.get(file, 0),
    )
