"""Compare a global store with every partition of its topic.

Source:
    GlobalStateManagerImpl, GlobalStateUpdateTask (2.6.0 to 4.3.1): the topic is the one that the application names, its
    offsets are the next to be read, of every partition; each record with a key is put by a processor, a restoration
    puts its bytes, or gives it to the processor, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from agent.contract.changelog import Logged
from agent.errors import LayoutError, UsageError
from agent.verify.compare import Example, contents
from agent.verify.fold import Plan, Progress, prefix_of
from agent.verify.kinds import Content, Kind
from agent.verify.rule import DAMAGE, KnownKeys, Word, judge, sum_up
from agent.verify.scratch import Scratch, pair
from agent.verify.shape import kind_of_one
from agent.verify.stores import CLOSED, Opened
from agent.verify.verify import Comparison

_HARMLESS = (Word.EQUAL, Word.BEHIND, Word.PENDING, Word.AHEAD)
Found = tuple[bytes, int, Iterable[Logged[Content]]]


class GlobalComparison(Comparison):
    """The same steps, partition by partition.

    A store that differs is `undecidable` unless its kind is given: one with its own processor need not hold what
    its topic says, and nothing on disk says which it is.
    """

    def run(self, now_s: float, progress: Progress) -> None:
        """Take every step; offsets, then files, then the topic's ends."""
        if not self._store.database:
            raise LayoutError("a global store of segments is not compared")
        self._opened = Opened(self._store, self._work, self._stack)
        result = self._result
        claims = self._opened.claims[0]
        result.is_closed = None if claims is None or claims.status is None else claims.status == CLOSED
        result.topic = self._topic_of_all()
        result.kind = kind_of_one([x for _, x in self._opened.samples()])
        if result.kind is not Kind.KEY_VALUE:
            raise LayoutError(f"a global store of kind {result.kind} is not compared")
        is_fresh = self._is_fresh(self._changelogs.settings(result.topic), now_s)
        plans = [self._plan_of(x) for x in range(self._changelogs.partitions(result.topic))]
        scratch = self._stack.enter_context(closing(Scratch(self._work)))
        known = [
            folded.known(plan, plan.offset_of(0), is_fresh=is_fresh)
            for plan, folded in (self._fold(plan, scratch, progress) for plan in plans)
        ]
        for example in self._judged(scratch, known):
            result.tally.add(example)
        result.word = sum_up(result.tally.counts)
        if self._store.name not in self._given.kinds:
            self._doubt()

    def _topic_of_all(self) -> str:
        given = self._given.topics.get(self._store.name)
        if given is not None:
            return given
        claims, topics = self._opened.claims[0], {topic for topic, _ in self._opened.checkpointed}
        topics = topics if claims is None else {x.rpartition("-")[0] for x in claims.offsets}
        if len(topics) != 1:
            raise UsageError(f"{len(topics)} topics could be its own: give --topic STORE=TOPIC")
        return topics.pop()

    def _plan_of(self, partition: int) -> Plan:
        result, claims = self._result, self._opened.claims[0]
        if claims is None:
            offset = self._opened.checkpointed.get((result.topic, partition), -1)
        else:
            offset = claims.offsets.get(f"{result.topic}-{partition}", 0) - 1
        start, end = self._changelogs.range(result.topic, partition)
        self._require(offset, start, end)
        own = None if offset < 0 else offset
        result.partitions[partition] = (own, start, end)
        return Plan(result.topic, partition, start, end, Kind.KEY_VALUE, None, {0: own}, None, partition)

    def _judged(self, scratch: Scratch, known: list[KnownKeys]) -> Iterator[Example]:
        """Judge every key of store and topic."""
        logged = heapq.merge(*(_of(scratch, x) for x in range(len(known))), key=itemgetter(0))
        held = contents(self._opened.databases[0], Kind.KEY_VALUE)
        for key, value, found in pair(held, groupby(logged, key=itemgetter(0))):
            if found is None:
                assert value is not None
                yield self._without_record(key, value, known)
            else:
                said = [judge(value, records, known[partition]) for _, partition, records in found]
                yield _example(key, value, said)

    def _without_record(self, key: bytes, content: Content, known: list[KnownKeys]) -> Example:
        words = {judge(content, (), one)[0] for one in known}
        return Example(words.pop() if len(words) == 1 else Word.UNDECIDABLE, key, None, content)

    def _doubt(self) -> None:
        """Take back what is only true of a store without its own processor."""
        result, counts = self._result, self._result.tally.counts
        found = {word: counts[word] for word in DAMAGE if counts[word]}
        if not found:
            return
        said = ", ".join(f"{count} {word}" for word, count in found.items())
        result.note = (
            f"not what its topic says ({said}), which a global store with its own processor need not be, nor"
            f" one that skips records or reads those of aborted transactions; if it has none, give --kind"
            f" {self._store.name}={Kind.KEY_VALUE}"
        )
        for word in found:
            counts[Word.UNDECIDABLE] += counts.pop(word)
        result.tally.examples = [
            replace(x, word=Word.UNDECIDABLE) if x.word in DAMAGE else x for x in result.tally.examples
        ]
        result.word = Word.UNDECIDABLE


def _of(scratch: Scratch, partition: int) -> Iterator[Found]:
    for key, records in scratch.keys(prefix_of(partition)):
        yield key, partition, records


def _example(key: bytes, value: Content | None, said: list[tuple[Word, int | None]]) -> Example:
    """Say one word of a key; of one that is in several partitions it is not known which record came last."""
    word, offset = min(said, key=lambda x: x[0] not in _HARMLESS)
    if len(said) > 1 and word not in _HARMLESS:
        word = Word.UNDECIDABLE
    return Example(word, key, offset, value)
