"""All lives up to a length, by what an agent sees of them.

A script is the words that an agent sees; a class is a script with all hidden lives behind it. Steps that cannot be seen
are followed to the end, up to a number of writes: so a class is complete within that bound, however long its lives are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tests.proof.eras import BEFORE, Era
from tests.proof.life import DAMAGED, EXPOSED, Life, Move, Word
from tests.proof.steps import moves

MOST_WRITES = 3
Script = tuple[Word, ...]
Lives = frozenset[Life]
BEGIN: Lives = frozenset({Life()})
IDLE = {((("start",),), (("exit",),)), ((("start",),), (("kill",),)), ((("long",),), (("long",),))}
"""Words after which nothing is new: they are not told twice, and of no process that did nothing."""


@dataclass
class Classes:
    """The classes of an era: lives are followed once for all scripts that share them.

    `wide`: other pods group their records in every way.
    """

    era: Era
    most_writes: int = MOST_WRITES
    wide: bool = False
    _moves: dict[Life, tuple[Move, ...]] = field(default_factory=dict)
    _closed: dict[Lives, Lives] = field(default_factory=dict)
    _next: dict[Lives, dict[Script, Lives]] = field(default_factory=dict)

    def up_to(self, words: int, begin: Lives = BEGIN) -> Iterator[tuple[Script, Lives]]:
        """Give every class of at most so many words, the shortest first."""
        waiting: dict[int, dict[Script, Lives]] = {0: {(): begin}}
        for length in range(words + 1):
            for script, lives in waiting.pop(length, {}).items():
                if script:
                    yield script, lives
                for seen, after in self.after(lives).items():
                    if len(seen) + length > words or (script[-1:], seen) in IDLE:
                        continue
                    at = waiting.setdefault(length + len(seen), {})
                    longer = script + seen
                    at[longer] = at.get(longer, frozenset()) | after

    def along(self, script: Script, begin: Lives = BEGIN) -> Lives:
        """Give the class of one script."""
        waiting: dict[int, Lives] = {0: begin}
        for at in range(len(script)):
            for seen, after in self.after(waiting.pop(at, frozenset())).items():
                if script[at : at + len(seen)] == seen:
                    waiting[at + len(seen)] = waiting.get(at + len(seen), frozenset()) | after
        return waiting.get(len(script), frozenset())

    def after(self, lives: Lives) -> dict[Script, Lives]:
        """Follow every step that is seen: words -> lives after it."""
        found = self._next.get(lives)
        if found is None:
            by_words: dict[Script, set[Life]] = {}
            for life in self.closed(lives):
                for move in self.moves(life):
                    if move.seen:
                        by_words.setdefault(move.seen, set()).add(move.life)
            found = self._next[lives] = {
                words: frozenset(by_words[words]) for words in sorted(by_words, key=str)
            }
        return found

    def closed(self, lives: Lives) -> Lives:
        """Follow every step that is not seen."""
        found = self._closed.get(lives)
        if found is None:
            every = set(lives)
            front = list(lives)
            while front:
                new = {m.life for life in front for m in self.moves(life) if not m.seen} - every
                every |= new
                front = list(new)
            found = self._closed[lives] = frozenset(every)
        return found

    def moves(self, life: Life) -> tuple[Move, ...]:
        """Give the steps of one life."""
        found = self._moves.get(life)
        if found is None:
            found = self._moves[life] = tuple(moves(self.era, life, self.most_writes, wide=self.wide))
        return found

    def shortest(self, script: Script, truth: frozenset[str]) -> tuple[str, ...] | None:
        """Tell the shortest life of a class of which this is true: the names of its steps."""
        front: dict[tuple[int, Life], tuple[str, ...]] = {(0, Life()): ()}
        seen = set(front)
        while front:
            after: dict[tuple[int, Life], tuple[str, ...]] = {}
            for (at, life), names in front.items():
                if at == len(script) and life.truth == truth:
                    return names
                for move in self.moves(life):
                    key = (at + len(move.seen), move.life)
                    if key not in seen and script[at : key[0]] == move.seen:
                        seen.add(key)
                        after[key] = (*names, move.name)
            front = after
        return None


def kind(lives: Iterable[Life]) -> str:
    """Tell what a class is: damaged, mixed, exposed or benign."""
    truths = [life.truth for life in lives]
    damaged = [DAMAGED in truth for truth in truths]
    if any(damaged):
        return "damaged" if all(damaged) else "mixed"
    return "exposed" if any(EXPOSED in truth for truth in truths) else "benign"


def twins(era: Era, script: Script, most_writes: int) -> Lives:
    """Give the lives of a script with so many writes, whatever groups other pods write.

    With those in which the release before went up to an end of the process: no agent sees which of the two runs.
    """
    found = set(_wide(era, most_writes).along(script))
    for number, word in enumerate(script) if era in BEFORE else ():
        if word[0] in ("kill", "exit"):
            older = _wide(BEFORE[era], most_writes).along(script[: number + 1])
            found |= _wide(era, most_writes).along(script[number + 1 :], older)
    return frozenset(found)


@lru_cache(maxsize=2)
def _wide(era: Era, most_writes: int) -> Classes:
    return Classes(era, most_writes, wide=True)
