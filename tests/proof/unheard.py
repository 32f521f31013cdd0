"""Lives of which an agent does not hear all: started late, restarted, or deaf for a while. It sees the disk after that.

A class is what was heard before, what the disk shows then, and what is heard after it. One stretch of each truth that
the stretches of a class have is played: what is confirmed of it must hold for its own lives.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.contract.events import Confidence
from tests.proof.classes import BEGIN, Classes, Lives, Script, kind, twins
from tests.proof.eras import Era
from tests.proof.figures import MORE_WRITES, Miss, missed
from tests.proof.life import NOBODY, Life, size
from tests.proof.play import Lost, Said, Told, Unheard, play


@dataclass(frozen=True)
class Deaf:
    """Which classes are judged: so many words heard, lost, heard again; at most so many with damage, and without."""

    how: Lost
    heard: int
    lost: int
    again: int
    most: int
    most_writes: int = 1


PLANS = (
    Deaf(Lost.BEFORE_IT, heard=0, lost=6, again=2, most=200),
    Deaf(Lost.POLLED, heard=4, lost=3, again=1, most=150),
    Deaf(Lost.TOLD, heard=3, lost=3, again=2, most=150),
    Deaf(Lost.RESTARTED, heard=3, lost=3, again=2, most=150),
)
"""What `make prove` judges."""


class Stretch(NamedTuple):
    """What was heard, and then not; the lives after it."""

    heard: Script
    lost: Script
    lives: Lives


@dataclass
class DeafFigures:
    """What came out. Silence on mixed is right here: of a past that nobody saw most damage looks like none."""

    classes: int = 0
    judged: int = 0
    misses: dict[Miss, list[tuple[Unheard, Script]]] = field(
        default_factory=lambda: {miss: [] for miss in Miss if miss is not Miss.SILENT_MIXED}
    )


def look(life: Life) -> tuple[object, ...]:
    """Give what a disk shows: times, identities and numbers of files are left out."""
    held = life.role != NOBODY
    puts = size(life, life.disk)
    return life.alive, held, life.directory, life.store, life.segment, puts, life.checkpoint, life.status


def judge(era: Era, deaf: Deaf) -> DeafFigures:
    """Play classes of an era, all facts told."""
    classes, found = Classes(era, deaf.most_writes), DeafFigures()
    more_writes = deaf.most_writes + MORE_WRITES
    dice = random.Random(f"{era.name}{deaf}")
    for stretches, again, lives in _chosen(classes, deaf, found, dice):
        for stretch, own in _of_each_kind(classes, dice.sample(stretches, len(stretches)), again):
            first = len(stretch.heard)
            unheard = Unheard(first, first + len(stretch.lost), deaf.how)
            script = stretch.heard + stretch.lost + again
            said = play(era, script, Told.ALL, unheard=unheard)
            found.judged += 1
            for miss, scripts in found.misses.items():
                of = own if miss is Miss.FALSE_CERTAINTY else lives
                if miss in missed(of, said) and miss in missed(twins(era, script, more_writes), said):
                    scripts += [] if _is_let_pass(era, miss, said) else [(unheard, script)]
    return found


def _is_let_pass(era: Era, miss: Miss, said: frozenset[Said]) -> bool:
    """Suspected up to 2.5, because of lives that are longer, or not in the model.

    Whether what was flushed was committed cannot be told by who missed a part of it. KAFKA-8574 leaves an offset beside
    an empty store, and takes two processes.
    """
    last = {x.detector for x in said if x.at_end and x.confidence == Confidence.SUSPECTED}
    every = {x.detector for x in said if x.at_end}
    return (
        era.old
        and miss is Miss.LOUD_BENIGN
        and every == last <= {"skipped-eos-wipe", "resurrected-checkpoint"}
    )


def _chosen(
    classes: Classes, deaf: Deaf, found: DeafFigures, dice: random.Random
) -> Iterator[tuple[list[Stretch], Script, Lives]]:
    severe: list[tuple[list[Stretch], Script, Lives]] = []
    others: list[tuple[list[Stretch], Script, Lives]] = []
    for stretches in _looks(classes, deaf):
        begin = frozenset[Life]().union(*(x.lives for x in stretches))
        for again, lives in ((), begin), *classes.up_to(deaf.again, begin):
            found.classes += 1
            chosen = severe if kind(lives) in ("damaged", "mixed") else others
            chosen.append((stretches, again, lives))
    for some in (severe, others):
        yield from dice.sample(some, min(deaf.most, len(some)))


def _looks(classes: Classes, deaf: Deaf) -> Iterator[list[Stretch]]:
    heard = ((), BEGIN), *(classes.up_to(deaf.heard) if deaf.heard else ())
    for before, begin in heard:
        by_look: dict[object, list[Stretch]] = {}
        for lost, lives in classes.up_to(deaf.lost, begin):
            by_look.setdefault(look(next(iter(lives))), []).append(Stretch(before, lost, lives))
        yield from by_look.values()


def _of_each_kind(
    classes: Classes, stretches: list[Stretch], again: Script
) -> Iterator[tuple[Stretch, Lives]]:
    known = set()
    for stretch in stretches:
        own = classes.along(again, stretch.lives)
        what = kind(own) if own else None
        if what is not None and what not in known:
            known.add(what)
            yield stretch, own


def row(era: Era, found: DeafFigures, how: Lost) -> str:
    """Render what came out for one era."""
    misses = " | ".join(str(len(scripts)) for scripts in found.misses.values())
    return f"| {era.name} | {how} | {found.classes} | {found.judged} | {misses} |\n"


HEAD = """
## Not heard

An agent that was started after six words, that visited a polled volume after each word but three, that lost three
to an overflow, or that missed three while it was restarted with its memory. Of each class (what was heard, what the
disk shows then, what is heard after it) one life of each truth is played; of a past that nobody saw silence on mixed
is right.

| era | agent | classes | judged | false certainty | silent, all damaged | loud, all benign |
|---|---|---:|---:|---:|---:|---:|
"""
