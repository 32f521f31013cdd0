"""Judge the classes of an era: how far the agent's words are from the best that the disk allows."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from agent.detectors import DETECTORS
from agent.inventory.bulk_load import COMMITS_COUNTED
from agent.judging.base import Detector
from agent.quantities.verdicts import comes_with, gave_back
from tests.proof.classes import Classes, Lives, Script, kind, twins
from tests.proof.eras import Era
from tests.proof.life import DAMAGED, FEW, UNKNOWN
from tests.proof.play import Said, Told, play

MORE_WRITES = 2
"""With so many writes more, and other groups of them, a class that misses a goal is followed again: for its twin."""


PARTLY_RESTORED = re.compile("rm-open-(segment-)?(flush-|long-)*ckpt")
"""A wiped store claims an offset before it says that it was restored."""
PUTS = ("flush", "shut", "ckpt")
"""Words that end with the puts that reached the disk; up to 4.2."""


IN_STORE = ("flush", "behind", "cut", "shut")
"""The same from 4.3 on: puts before the offset, the offset, puts after it; of a second segment, too."""


class Miss(StrEnum):
    """What a class may miss; the goal of each is 0."""

    FALSE_CERTAINTY = "false certainty"
    SILENT_DAMAGE = "silent, all damaged"
    LOUD_BENIGN = "loud, all benign"
    SILENT_MIXED = "silent, mixed"


@dataclass(frozen=True)
class Plan:
    """Which classes of an era are judged.

    Args of the dataclass:
        all_words: All classes of at most so many words.
        damaged_words: The damaged and mixed ones of at most so many words.
        most_writes: How often records are written in a life.
        sampled: So many of the others of at most `damaged_words`, drawn.
        most: At most so many of the damaged and mixed ones, the shortest first; None = all.
    """

    all_words: int
    damaged_words: int
    most_writes: int = 3
    sampled: int = 0
    most: int | None = None


@dataclass
class Figures:
    """What came out for one era at one level of knowledge."""

    era: Era
    told: Told
    plan: Plan
    lives: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    misses: dict[Miss, list[Script]] = field(default_factory=lambda: {miss: [] for miss in Miss})

    def shortest(self, miss: Miss) -> Script | None:
        """Give the shortest class that misses a goal."""
        return min(self.misses[miss], key=lambda script: (len(script), str(script)), default=None)


def judge(
    era: Era, told: Told, plan: Plan, *, sibling: bool = False, detectors: tuple[Detector, ...] = DETECTORS
) -> Figures:
    """Play the classes of an era that a plan names, and count."""
    classes = Classes(era, plan.most_writes)
    found = Figures(era, told, plan)
    more_writes = plan.most_writes + MORE_WRITES
    for script, lives in _chosen(classes, plan, found):
        said = play(era, script, told, sibling=sibling, detectors=detectors)
        what = kind(lives)
        found.judged[what] += 1
        found.words[_loudest(said)] += 1
        for miss in missed(lives, said):
            if let_pass(era, miss, script) or miss in missed(twins(era, script, more_writes), said):
                found.misses[miss].append(script)
    return found


def _chosen(classes: Classes, plan: Plan, found: Figures) -> Iterator[tuple[Script, Lives]]:
    dice = random.Random(f"{classes.era.name}{plan}")
    left, severe, others = plan.most, [], []
    for script, lives in classes.up_to(max(plan.all_words, plan.damaged_words)):
        what = kind(lives)
        found.classes[what] += 1
        found.lives += len(lives)
        if len(script) <= plan.all_words:
            yield script, lives
        elif what in ("damaged", "mixed"):
            severe.append((script, lives))
        else:
            others.append((script, lives))
    yield from severe if left is None else dice.sample(severe, min(left, len(severe)))
    yield from dice.sample(others, min(plan.sampled, len(others)))


def missed(lives: Lives, said: Iterable[Said]) -> set[Miss]:
    """Tell which goals a class misses."""
    what, misses = kind(lives), set()
    if any(x.is_certain and not _holds_for_all(lives, x) for x in said):
        misses.add(Miss.FALSE_CERTAINTY)
    if what == "damaged" and not said:
        misses.add(Miss.SILENT_DAMAGE)
    if what == "benign" and any(x.at_end for x in said):
        misses.add(Miss.LOUD_BENIGN)
    if what == "mixed" and not said:
        misses.add(Miss.SILENT_MIXED)
    return misses


def _holds_for_all(lives: Lives, said: Said) -> bool:
    """Damage must be there in every life, an exposure must at least have been."""
    return all(DAMAGED in life.truth if said.level == "damage" else life.truth for life in lives)


def _loudest(said: frozenset[Said]) -> str:
    if any(x.is_certain for x in said):
        return "confirmed"
    return "suspected" if said else "silent"


def let_pass(era: Era, miss: Miss, script: Script) -> bool:
    """Nothing on disk decides these, or nothing that the model has.

    A wipe that was interrupted, with no task beside it: a revocation looks the same. KAFKA-16017: records that were
    aborted, or commit markers, make the same offset as records that were not restored; where few are missing,
    `unrestored-store` is silent. A restoration that is suspended writes that offset, too, and goes on, or becomes a
    standby, which reads on from there. It is loud where
    more are missing, but no more than what was wiped held, each with a marker: the model groups them in few ways.
    2.6.0: a task that became a standby flushes beyond its checkpoint for a while, as one that was resumed does.
    Up to 2.5: a store of which no checkpoint has an entry looks like one without a changelog; and a task that was
    closed dirty in a process that lives on, and comes back as a standby, like one that was closed in order. KAFKA-7672:
    what ends a restoring task writes up to three checkpoints, too, and a marker may be all that was not restored; a new
    store that is wiped and not restored may be a standby's; and a windowed one may be restored without a reopen (2.0):
    broken off, and opened again as a standby's, it looks like one that was killed.
    4.3.0: the start-up pass keeps the lock of a task that nobody was given so far. Two segments: commits take sequence
    numbers, too, and a restoration puts records again, so as many puts as offsets prove little: `lost-segment` warns.
    A task whose records were never sent is damaged by that wipe, too, and no other life of so few writes has its
    offset; `data-beyond-changelog` says so where the entries alone are too many.
    """
    names = "-".join(word[0] for word in script)
    of_a_wipe = miss is Miss.SILENT_MIXED or (miss is Miss.SILENT_DAMAGE and era.unsent_corrupts)
    if of_a_wipe and era.in_store and "shut-kill-start-pass-open" in names:
        return any(
            word[0] == "shut" and word[2] is not None and word[2] >= UNKNOWN and not word[3]
            for word in script
        )
    if of_a_wipe and "ckpt-shut-kill-start-open" in names:
        return True
    if miss is Miss.LOUD_BENIGN and era.old and not era.reopens:
        return "segment-shut-open" in names
    quiet = (Miss.SILENT_DAMAGE, Miss.SILENT_MIXED)
    if era.old and miss in quiet:
        came_back = era.remembers and _is_taken_for_restored_in_silence(era, script)
        return not _claims(script) or "shut-open" in names or came_back
    if miss is Miss.LOUD_BENIGN and era.in_store:
        locked = era.keeps_locks and script[-1][0] == "pass"
        return locked or (era.segments > 1 and _all_may_be_on_disk(script))
    if miss is Miss.LOUD_BENIGN and "delck-ckpt" in names:
        return era.eos and era.kept_at_resume
    if not era.stale_recorder:
        return False
    if miss is Miss.LOUD_BENIGN and "shut-rm-" in names:
        return _may_lack_what_was_wiped(script)
    return miss in quiet and PARTLY_RESTORED.search(names) is not None and _lacks_little(script)


def _all_may_be_on_disk(script: Script) -> bool:
    """There are as many puts as the highest offset says, or few less: markers take offsets; 4.3 and later."""
    amounts = [word[n : n + 3] for word in script if word[0] in IN_STORE for n in range(1, len(word), 3)]
    highest = max((offset for _, offset, _ in amounts if offset is not None), default=-1)
    return sum(before + late for before, _, late in amounts) > highest - FEW


def _claims(script: Script) -> list[int]:
    """List the offsets that checkpoints claim before the first kill."""
    heard = script[: next((n for n, word in enumerate(script) if word[0] == "kill"), None)]
    claims = [word[-1] if word[0] == "ended" else word[1] for word in heard if word[0] in ("ckpt", "ended")]
    return [offset for offset in claims if offset != UNKNOWN]


def _is_taken_for_restored_in_silence(era: Era, script: Script) -> bool:
    """KAFKA-7672: a session of a task that came back to its process decides nothing; no windowed one does."""
    opened = [number for number, word in enumerate(script) if word[0] == "open"]
    return any(
        _came_back(script[:begin]) and (era.windowed or _decides_nothing(script[:begin], script[begin:until]))
        for begin, until in pairwise((*opened, len(script)))
    )


def _came_back(before: Script) -> bool:
    started = max(number for number, word in enumerate(before) if word[0] == "start")
    return any(word[0] == "open" for word in before[started:])


def _decides_nothing(before: Script, session: Script) -> bool:
    """It was reopened once, was new, or put nothing; few commits, and about as many puts as they claim.

    A stop amid the restoration of a compacted changelog claims what it had read, as the close of a task that ran does.
    """
    is_new, reopens = before[-1][0] == "rm", sum(word[0] == "reopen" for word in session)
    puts = sum(word[2] if word[0] == "ckpt" else word[1] for word in session if word[0] in (*PUTS, "ended"))
    claims = _claims(session)
    begun = 0 if is_new else (_claims(before) or [0])[-1]
    explained = not claims or comes_with(puts + len(session), claims[-1] - begun)
    closes = [word[0] for word in session if word[0] in ("ckpt", "ended")] == ["ckpt", "ended"]
    explained |= closes and reopens == 1
    unused = not reopens and (is_new or not (puts or claims))
    return (reopens == 1 or unused) and len(claims) < COMMITS_COUNTED and explained


def _around_the_wipe(script: Script) -> tuple[list[int], list[int], list[int]]:
    """Give the puts of each flush before the last wipe and after it, and what checkpoints claim after it."""
    wiped = max(number for number, word in enumerate(script) if word[0] == "rm")
    before, after = ([word[-1] for word in x if word[0] in PUTS] for x in (script[:wiped], script[wiped:]))
    return before, after, [word[1] for word in script[wiped:] if word[0] == "ckpt"]


def _lacks_little(script: Script) -> bool:
    """Where so few records are missing `unrestored-store` is silent; two flushes may be of the same entries."""
    before, after, claims = _around_the_wipe(script)
    return comes_with(sum(after), claims[0]) or gave_back(sum(after), max(before))


def _may_lack_what_was_wiped(script: Script) -> bool:
    """Before KAFKA-16017: an offset says more than the puts since the wipe, and at most two a record of before."""
    before, after, claims = _around_the_wipe(script)
    return bool(claims) and sum(after) < claims[-1] and claims[-1] - sum(after) <= 2 * sum(before)
