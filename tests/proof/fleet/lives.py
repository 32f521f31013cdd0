"""Two pods on one changelog with one task: each is a life of the one-task model, and what the group allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from tests.proof.classes import Classes
from tests.proof.disk import shut
from tests.proof.eras import Era
from tests.proof.life import (
    ABORTED,
    DAMAGED,
    MARKER,
    NOBODY,
    OPEN,
    RESTORING,
    RUNNING,
    SUSPENDED,
    UNSENT,
    Block,
    Life,
    Move,
    Word,
    missing,
    of,
)
from tests.proof.steps import moves

PODS = ("a", "b")
OWNERS = (RESTORING, RUNNING, SUSPENDED)
OTHERS, LATE = "other's", "late"
"""Kinds of blocks beside those of `life`: of a transaction that the other pod has open; written under at-least-once by
an owner that has lost the task: its input is processed again, so that nobody lacks it."""
SEEN_FROM_THE_OTHER = {OPEN: OTHERS, OTHERS: OPEN}
KEPT = (
    "assigned", "restored", "restores all", "processes many", "commits", "flush", "SIGKILL", "a process starts",
    "revoked", "stopped", "promoted", "fenced", "checkpoint by timer", "corrupted",
)  # fmt: skip
"""Steps of one task that matter for the other pod, by their names' beginnings; the others are judged with one pod."""
BEGIN = ("assigned", "restored, runs")
CUT_OFF = ("processes", "flush", "SIGKILL", "fenced")
"""What an owner does that does not know that it has lost its task: a commit would tell it."""


class Fleet(NamedTuple):
    """Two lives; `cut_off` = number of the one that the group has expelled and that does not know it yet."""

    pods: tuple[Life, ...]
    cut_off: int | None = None
    split: bool = False
    """Whether two processes ever worked on the task at once."""

    @property
    def truth(self) -> frozenset[str]:
        """What was ever the case on any pod."""
        return frozenset[str]().union(*(life.truth for life in self.pods))


class FleetClasses(Classes):
    """Classes of lives of two pods; a word names the pod first."""

    def moves(self, life: Life) -> tuple[Move, ...]:
        """Give the steps of one life; the first one begins both processes."""
        found = self._moves.get(life)
        if found is None:
            found = self._moves[life] = tuple(_moves(self.era, life, self.most_writes))
        return found


def _moves(era: Era, life: Life | Fleet, most_writes: int) -> Iterator[Move]:
    if isinstance(life, Life):
        yield _begun(era)
        return
    fleet = life
    for number, pod in enumerate(PODS):
        for move in steps(era, fleet, number, most_writes):
            after = _after(era, fleet, number, move.life)
            if after is not None:
                seen: tuple[Word, ...] = tuple((pod, *word) for word in move.seen)
                yield Move(f"{pod}: {move.name}", seen, cast("Life", after))


def _begun(era: Era) -> Move:
    """Both processes start, and the first one gets the task."""
    fleet, seen = Fleet((Life(alive=True),) * len(PODS)), [(pod, "start") for pod in PODS]
    for name in BEGIN:
        move = next(x for x in moves(era, fleet.pods[0], 1) if x.name == name)
        fleet = fleet._replace(pods=(move.life, fleet.pods[1]))
        seen += [(PODS[0], *word) for word in move.seen]
    return Move("both processes start, a gets the task", tuple(seen), cast("Life", fleet))


def steps(era: Era, fleet: Fleet, number: int, most_writes: int) -> Iterator[Move]:
    """Give what one pod may do, but for what the other one is asked to do in the model of one task."""
    own = fleet.pods[number]
    for move in moves(era, own, most_writes):
        if not move.name.startswith(KEPT) or "few" in move.name or _has_two_open(own, move):
            continue
        if fleet.cut_off != number or move.name.startswith(CUT_OFF):
            yield move
    if fleet.cut_off == number and not era.eos:
        # TaskManager.handleLostAll (2.6.0 to 4.4.0): closed dirty; a commit has failed, so no checkpoint is written
        seen, after = shut(era, own)
        yield Move("expelled, closed", seen, after)


def _has_two_open(own: Life, move: Move) -> bool:
    """Offsets of what comes after an open block must not move."""
    return move.name == "commits record by record" and own.log[-1].kind != OPEN


def _after(era: Era, fleet: Fleet, number: int, own: Life) -> Fleet | None:
    """Give the fleet after one pod's step; None = the group does not allow it.

    A pod becomes the owner when the other one is none, or has been expelled: it runs on until it asks the group.
    """
    cut_off, split = fleet.cut_off, fleet.split
    other = fleet.pods[1 - number]
    if cut_off == number:
        own = _in_vain(era, own)
        cut_off = None if own.role == NOBODY else number
    if own.role in OWNERS and other.role in OWNERS and cut_off is None:
        if fleet.pods[number].role in OWNERS or other.role != RUNNING:
            return None
        cut_off, split = 1 - number, True
    other = other._replace(log=_from_the_other(own.log))
    if cut_off == 1 - number:
        other = _in_vain(era, other)
        own = own._replace(log=_from_the_other(other.log))
    pods = (own, other) if number == 0 else (other, own)
    return Fleet(pods, cut_off, split)


def _from_the_other(log: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(x._replace(kind=SEEN_FROM_THE_OTHER.get(x.kind, x.kind)) for x in log)


def _in_vain(era: Era, life: Life) -> Life:
    """What an expelled owner sends: its transaction is aborted by timeout; under at-least-once it is in the log."""
    if not of(life, OPEN):
        return life
    kind, marker = (ABORTED, (Block(MARKER, 1),)) if era.eos else (LATE, ())
    log = tuple(x._replace(kind=kind) if x.kind == OPEN else x for x in life.log)
    return life._replace(log=log + marker)


def is_wrong(era: Era, life: Life) -> bool:
    """Tell whether a copy that is held is damaged now, or one at rest would be by the next start."""
    if life.role == NOBODY:
        at_rest = life._replace(alive=True, truth=frozenset())
        return any(DAMAGED in x.life.truth for x in moves(era, at_rest, 0) if x.name.startswith("assigned"))
    return bool(missing(life) or (era.eos and (life.disk | life.memory) & of(life, ABORTED, UNSENT)))
