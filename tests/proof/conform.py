"""Is what was recorded a run of the model? Order, and amounts as far as they decide what comes next.

Amounts are compared by what they mean: whether a checkpoint is the first, unknown, went on by up to 10,000 offsets or
by more, stayed, or fell; whether puts went with it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from tests.proof.disk import is_due
from tests.proof.eras import MANY_OFFSETS, Era
from tests.proof.life import (
    COMMITTED,
    GONE,
    GONE_ALONE,
    NOBODY,
    OPEN,
    UNKNOWN,
    Life,
    Word,
    lasts,
    newest_window,
    of,
)
from tests.proof.steps import moves

NO_LIMIT = 1_000_000


class Seen(NamedTuple):
    """What of the words before decides how the next one is read."""

    offset: int = -1
    held: bool = False
    behind: int = -1
    """The offset of the older of two segments."""


def sketch(word: Word, seen: Seen) -> tuple[Word | None, Seen]:
    """Give the meaning of a word; None = a file system does not show it."""
    match word:
        case ("age",) | ("long",) | ("tick",):
            return None, seen
        case ("open", _):
            return word, seen._replace(held=True)
        case ("reopen", _) | ("dirty", _) | ("ended", _, _):
            return sketch_up_to_2_5(word, seen)
        case ("segment", _) | ("behind", *_) | ("cut", *_) | ("shut", _, _, _, _, _, _):
            return sketch_of_segments(word, seen)
        case ("flush", _):
            return ("flush",), seen
        case ("shut", puts):
            return ("shut", puts > 0), seen._replace(held=False)
        case ("flush" | "shut" as name, puts, offset, late):
            how, seen = moved(offset, seen)
            return (name, puts + late > 0, how, late > 0), seen._replace(held=seen.held and name == "flush")
        case ("pass", None):
            return ("refused",), seen
        case ("pass", offset):
            how, seen = moved(offset, seen)
            return ("pass", how), seen._replace(behind=seen.offset)
        case ("ckpt", offset, puts):
            how, seen = moved(offset, seen)
            return ("ckpt", how, puts > 0), seen
        case ("kill",) | ("exit",):
            return ("kill" if seen.held else "exit",), seen._replace(held=False)
    return word, seen


def sketch_up_to_2_5(word: Word, seen: Seen) -> tuple[Word, Seen]:
    """Give the meaning of a reopening, and of two ways to close."""
    name, puts = word[:2]
    if name == "reopen":
        return (name, puts > 0), seen
    if name == "dirty":
        return (name, puts > 0), seen._replace(held=False)
    how, seen = moved(word[2], seen)
    return (name, puts > 0, how), seen._replace(held=False)


def sketch_of_segments(word: Word, seen: Seen) -> tuple[Word, Seen]:
    """Give the meaning of what one of two segments does, or both."""
    if word[0] == "segment":
        return word, seen._replace(behind=-1) if word[1] == 0 else seen._replace(
            offset=-1, behind=seen.offset
        )
    puts, offset, late = word[-3:]
    how, other = moved(offset, seen._replace(offset=seen.behind))
    meaning, seen = (puts + late > 0, how, late > 0), seen._replace(behind=other.offset)
    if word[0] == "shut":
        newest, seen = sketch(word[:4], seen)
        return (*(newest or ()), *meaning), seen
    return (word[0], *meaning), seen


def moved(offset: int | None, seen: Seen) -> tuple[str, Seen]:
    """Tell what an offset means after the one before."""
    if offset is None:
        return "as before", seen
    if offset == UNKNOWN:
        return "unknown", seen
    if offset in (GONE, GONE_ALONE):
        return "gone", seen._replace(offset=-1)
    by = offset - seen.offset
    how = "many" if by > MANY_OFFSETS else "few" if by > 0 else "none" if by == 0 else "back"
    return how, seen._replace(offset=offset)


def sketched(words: Sequence[Word]) -> list[Word]:
    """Give the meanings of a recording's words."""
    found, seen = [], Seen()
    for word in words:
        meaning, seen = sketch(word, seen)
        found += [meaning] if meaning is not None else []
    return found


def accepts(era: Era, text: Sequence[Word]) -> int | None:
    """Follow a recording through the model: None = it is a run; else how many words were understood.

    Args:
        era: The era.
        text: The meanings of its words (`sketched`).
    """
    count = itertools.count()
    front = [(0, 0, next(count), Life(), Seen())]
    known = {_key(era, 0, Life(), Seen())}
    furthest = 0
    while front:  # the furthest first, of these the one with the shortest changelog
        at, life, seen = -front[0][0], *heapq.heappop(front)[3:]
        if at == len(text):
            return None
        for move in moves(era, life, NO_LIMIT):
            step = _matches(text, at, move.seen, seen)
            if step is None:
                continue
            furthest = max(furthest, step[0])
            key = _key(era, step[0], move.life, step[1])
            if key not in known:
                known.add(key)
                heapq.heappush(front, (-step[0], len(move.life.log), next(count), move.life, step[1]))
    return furthest


def _matches(text: Sequence[Word], at: int, words: Sequence[Word], seen: Seen) -> tuple[int, Seen] | None:
    for word in words:
        meaning, seen = sketch(word, seen)
        if meaning is None:
            continue
        if at >= len(text) or text[at] != meaning:
            return None
        at += 1
    return at, seen


def _key(era: Era, at: int, life: Life, seen: Seen) -> tuple[object, ...]:
    """Tell lives apart as far as what may come next differs."""
    ends, committed = lasts(life.log), of(life, COMMITTED)
    known = max(life.position, -1 if life.checkpoint is None or life.role != NOBODY else life.checkpoint)
    todo = [x for x in committed if ends[x] > known]
    step = life.position - seen.offset
    return (
        at, life.role, life.alive, life.directory, life.store, life.paused, is_due(era, life), bool(life.memory),
        life.checkpoint is None or (life.checkpoint >= 0, life.checkpoint == life.position),
        life.recorded is None, life.forgot and life.opened >= 0, life.forgot, life.remembered,
        min(len(todo), 5 if era.in_store else 2), min(len(of(life, OPEN)), 2),
        min(sum([ends[x] <= seen.offset for x in committed]), 2), (step > 0) - (step < 0),
        step > MANY_OFFSETS, life.position < 0, any(life.log[x].records > MANY_OFFSETS for x in todo),
        _step(life.offset, seen.offset), life.offset == life.position, bool(life.late), bool(life.buffer), life.status,
        life.segment, life.window, life.locked, newest_window(life), _key_of_older(life, seen),
        tuple(life.log[x].window for x in todo[:3]), frozenset(life.log[x].window for x in of(life, OPEN)),
        frozenset(life.log[x].window for x in life.buffer),
    )  # fmt: skip


def _key_of_older(life: Life, seen: Seen) -> tuple[object, ...] | None:
    """Tell lives apart by the older of two segments."""
    if life.older is None:
        return None
    _, memory, checkpoint, offset, late, status = life.older
    known = checkpoint is None or (checkpoint >= 0, checkpoint == life.position)
    return bool(memory), known, _step(offset, seen.behind), offset == life.position, bool(late), status


def _step(offset: int | None, before: int) -> tuple[bool, int, bool] | int | None:
    """Tell what an offset in the memtable will mean once it is flushed."""
    if offset is None or offset < 0:
        return offset
    return True, (offset > before) - (offset < before), offset - before > MANY_OFFSETS
