"""How many records a windowed store must lack, by counting: offsets that went by against sequence numbers given out.

Every record is one put in one segment, and takes a sequence number there; commits take some, too. So a count that
comes out even proves little, and one that is short says that something is missing or was never put: a restoration of
a compacted changelog skips offsets, and a store refuses records that are too late. Pure.
"""

from __future__ import annotations

from agent.inventory.segments import CLOSED, Segment


def shortage(segments: tuple[Segment, ...], one: Segment, speaker: Segment, changelog: str) -> int | None:
    """Count the records behind what a segment holds and up to the store's offset that no other segment can hold.

    Args:
        segments: All of the store, as they are on disk.
        one: The segment whose own offset is behind.
        speaker: The segment that answers for the store.
        changelog: Topic and partition.

    Returns:
        0 or less: all of them may be on disk. None: sequence numbers are not known, or were zeroed by a compaction.

    Source:
        AbstractSegments.commit (4.3.0, 4.3.1): offset and position go to every segment; data is put before them.
    """
    end, reach = speaker.offset(changelog), _reach(one, changelog)
    if end is None or reach is None:
        return None
    left = end - reach
    for other in segments:
        if other is not one:
            held = _held(other, changelog, reach, up_to_offset=other is speaker)
            if held is None:
                return None
            left -= held
    return left


def is_all_on_disk(segments: tuple[Segment, ...], speaker: Segment, changelog: str) -> bool:
    """Return whether the files hold a put for every offset from 0 up to the store's, and no other: nothing is missing.

    An entry in a file is a put, and no two are the same one. Of the speaker those behind its offset are left out; it
    was made since all others ended with a close that wrote the same offset last. Exactly as many as there are offsets:
    a record that was replayed, or put twice, makes more of them, and one that is missing fewer.
    """
    end, sequence = speaker.offset(changelog), _sequence(speaker, changelog)
    others = [one for one in segments if one is not speaker]
    ends = {one.offset(changelog) if one.status == CLOSED and one.offset_last else None for one in others}
    if end is None or not sequence or not speaker.made_in_this_life or len(ends) != 1 or None in ends:
        return False
    if speaker.puts is None:
        return False
    (begin,) = ends
    later = max(0, speaker.puts - max(sequence, speaker.offsets.position_sequence or 0))
    before, since = [one.entries for one in others], speaker.entries
    if begin is None or since is None or None in before:
        return False
    return since - later == end - begin and sum(x for x in before if x is not None) == begin + 1


def _reach(one: Segment, changelog: str) -> int | None:
    """Return the last offset up to which a segment has all that is its own: its data may go on behind its offset."""
    offset, sequence = one.offset(changelog), _sequence(one, changelog)
    if offset is None or offset < 0 or not sequence or one.puts is None:
        return None
    return offset + max(0, one.puts - max(sequence, one.offsets.position_sequence or 0))


def _held(one: Segment, changelog: str, reach: int, *, up_to_offset: bool) -> int | None:
    """Return how many records behind `reach` a segment can have taken since it was opened."""
    base = 0 if one.made_in_this_life else one.opened_sequence
    last, offset, sequence = one.puts, one.offset(changelog), _sequence(one, changelog)
    if up_to_offset:
        last = (sequence or 0) - 1  # the offset's own number is no put; 0 = zeroed
    elif sequence and offset is not None and 0 <= offset <= reach:
        # What it took before its own offset is not behind `reach`.
        base = max(base or 0, sequence, one.offsets.position_sequence or 0)
    return None if base is None or last is None or last < 0 else max(0, last - base)


def _sequence(one: Segment, changelog: str) -> int | None:
    return next((sequence for name, _, sequence in one.offsets.offsets if name == changelog), None)
