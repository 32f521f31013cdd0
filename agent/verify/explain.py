"""Where the values of some keys came from: the changelog read once more, for these keys only."""

from __future__ import annotations

from collections.abc import Iterator

from agent.verify.changelog import Changelogs, Record
from agent.verify.compare import Example
from agent.verify.kinds import record_content
from agent.verify.rule import Word
from agent.verify.verify import Result

ASKED = frozenset({Word.EXTRA, Word.DIFFERENT, Word.AHEAD})


def notes_of(result: Result, changelogs: Changelogs) -> dict[int, str]:
    """Say of each example with a value that should not be there which record wrote it.

    Gives place among the examples -> a sentence; examples that lack a value have none, nor has a global store. Raises
    `UsageError`: a broker refuses, or answers no more.
    """
    asked = {number: x for number, x in enumerate(result.examples) if x.word in ASKED}
    if not asked or result.store.is_global:
        return {}
    keys = {x.key for x in asked.values()}
    written = {x.offset: x for x in _records(result, changelogs, keys, committed=False)}
    committed = {x.offset for x in _records(result, changelogs, keys, committed=True)}
    return {number: _note(example, written, committed) for number, example in asked.items()}


def _records(
    result: Result, changelogs: Changelogs, keys: set[bytes], *, committed: bool
) -> Iterator[Record]:
    partition = result.store.partition
    for batch in changelogs.read(result.topic, partition, result.start, result.end, committed=committed):
        yield from (record for record in batch if record.key in keys)


def _note(example: Example, written: dict[int, Record], committed: set[int]) -> str:
    own = [x for x in written.values() if x.key == example.key]
    same = [x for x in own if _wrote(x, example)]
    if same:
        last = max(same, key=lambda x: x.offset)
        if last.offset not in committed:
            return f"it holds the value of offset {last.offset}, of a transaction that was aborted or has not ended"
        after = [x.offset for x in own if x.offset > last.offset and x.offset in committed]
        return f"it holds the value of offset {last.offset}" + (
            f", which offset {after[-1]} replaced" if after else ""
        )
    deleted = [x.offset for x in own if x.value is None and x.offset in committed]
    if deleted:
        return f"deleted by offset {deleted[-1]}; no record that is still there has the value"
    return "no record that is still there has the value" if own else "no record of the key is there"


def _wrote(record: Record, example: Example) -> bool:
    if record.value is None or example.have is None:
        return False
    return example.have.is_of(record_content(record.at_ms, record.headers, record.value))
