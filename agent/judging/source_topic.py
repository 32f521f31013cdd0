"""What a session claims of a source topic that stands in for the changelog of its store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.inventory.model import CLOSES_WITHIN_US, CheckpointClaim, CheckpointFact, Session, Store, Task
from agent.judging.wording import checkpoint_of, where
from agent.layout.names import CHANGELOG_SUFFIX
from agent.quantities.changelog import is_real

REPARTITION_SUFFIX = "-repartition"
"""InternalTopologyBuilder: Kafka Streams purges such topics, so none stands in for a changelog."""


@dataclass(frozen=True, slots=True)
class SourceClaim:
    """What the entry of a source topic says about a session of a store."""

    topic: str  # the source topic
    mark: CheckpointClaim  # newest real offset of the session, and what was flushed then
    before: int | None  # highest offset known of the store before the session; None = none
    place: str  # where the entry is


def source_claim(task: Task, store: Store, session: Session) -> SourceClaim | None:
    """Return what a session claims of its source topic.

    Returns:
        None if its changelog is none, if it is not known which store the entry belongs to, or if nothing is claimed.
    """
    if store.segmented:
        return None
    return _in_store(task, store, session) if store.keeps_offsets else _in_checkpoint(task, store, session)


def _in_checkpoint(task: Task, store: Store, session: Session) -> SourceClaim | None:
    """Up to 4.2 `.checkpoint` names a topic and no store: whose is it?

    It is the store's own where one topic of the partition is no changelog and one key-value store of the task is in no
    entry. Topology optimisation lets a table's source topic stand in for a changelog.

    Source:
        InternalStreamsBuilder.rewriteRepeatedSources, TableSourceNode.reuseSourceTopic;
        ProcessorStateManager.checkpoint (4.2.1) and commit (4.3.1); StreamTask.checkpointableOffsets: such an entry is
        what the task consumed.
    """
    topic = _only(_topics(task))
    if topic is None or _unnamed_stores(task) != [store.name]:
        return None
    until_us = None if session.released_us is None else session.released_us + CLOSES_WITHIN_US
    marks = [
        CheckpointClaim(written_us, offset, store.puts_at(written_us))
        for written_us, offset in _entries(task, topic)
        if written_us >= session.opened_us and (until_us is None or written_us <= until_us)
    ]
    old = [offset for written_us, offset in _entries(task, topic) if written_us < session.opened_us]
    return None if not marks else SourceClaim(topic, marks[-1], max(old, default=None), checkpoint_of(task))


def _in_store(task: Task, store: Store, session: Session) -> SourceClaim | None:
    """A claim is what a close wrote: an open store that is killed is wiped, and a commit writes to memory only."""
    facts = [x.offsets for x in store.databases.values() if x.offsets is not None]
    parts = [name.rpartition("-") for x in facts for name, _, _ in x.offsets]
    topic = _only(name for name, _, number in parts if number == str(task.partition) and _is_source(name))
    if topic is None or session.released_us is None or session.closed is False:
        return None
    if session.stored_offset is None:
        return None
    mark = CheckpointClaim(session.released_us, session.stored_offset, session.puts_at_release)
    known = [
        offset
        for x in store.sessions
        if x.opened_us < session.opened_us
        for offset in (x.stored_offset_at_open, x.stored_offset, x.covering_offset)
        if offset is not None and is_real(offset)
    ]
    return SourceClaim(topic, mark, max(known, default=None), where(task, store))


def _topics(task: Task) -> Iterator[str]:
    return (topic for fact in task.checkpoints for topic in _sources(task, fact))


def _sources(task: Task, fact: CheckpointFact) -> Iterator[str]:
    return (x.topic for x in fact.foreign if x.partition == task.partition and _is_source(x.topic))


def names_source(task: Task, fact: CheckpointFact) -> bool:
    """Return whether a checkpoint names a source topic of the task's partition: which store it is of is not known."""
    return any(True for _ in _sources(task, fact))


def _entries(task: Task, topic: str) -> Iterator[tuple[int, int]]:
    for fact in task.checkpoints:
        for entry in fact.foreign:
            if (entry.topic, entry.partition) == (topic, task.partition) and is_real(entry.offset):
                yield fact.written_us, entry.offset


def _unnamed_stores(task: Task) -> list[str]:
    named = {name for fact in task.checkpoints for name in fact.offsets}
    return [store.name for store in task.stores.values() if not store.segmented and store.name not in named]


def _is_source(topic: str) -> bool:
    return not topic.endswith((CHANGELOG_SUFFIX, REPARTITION_SUFFIX))


def _only(names: Iterable[str]) -> str | None:
    found = set(names)
    return found.pop() if len(found) == 1 else None
