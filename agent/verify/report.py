"""Results of comparisons -> lines for people, JSON lines for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from agent.contract.codec import printable
from agent.contract.exit_codes import Exit, answer
from agent.verify.compare import Example
from agent.verify.rule import DAMAGE, Word
from agent.verify.verify import Result

KEY_HASH_BYTES = 8
_SHOWN = (*DAMAGE, Word.UNDECIDABLE, Word.AHEAD, Word.BEHIND, Word.PENDING, Word.EQUAL, Word.EXPIRED)
_NOUNS = {Word.EXTRA: "keys", Word.MISSING: "keys", Word.DIFFERENT: "values"}
_MARGIN = " " * 14


def key_text(key: bytes, *, show_keys: bool) -> str:
    """Write a key: its hash, or in the clear, as text where it is text."""
    if not show_keys:
        return f"key {blake2b(key, digest_size=KEY_HASH_BYTES).hexdigest()}"
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        return f"key 0x{key.hex()}"
    return f"key {printable(text)!r}" if text.isprintable() else f"key 0x{key.hex()}"


def paragraph(result: Result, notes: Mapping[int, str], *, show_keys: bool) -> str:
    """Describe one store for people; `notes` say of some examples, by place, what the changelog says beside."""
    store = result.store
    name = printable(store.path)
    lines = [f"{_headline(result):<14}{name}  {_about(result)}".rstrip()]
    if result.reason:
        lines.append(f"{_MARGIN}{printable(result.reason)}")
    elif result.tally.counts:
        lines.append(_MARGIN + _counted(result.tally.counts))
    if result.note and not result.reason:
        lines.append(f"{_MARGIN}{printable(result.note)}")
    for segment, tally in sorted(result.by_segment.items()):
        offset = result.offsets.get(segment)
        where = (
            "not there" if segment not in result.offsets else f"offset {'none' if offset is None else offset}"
        )
        lines.append(f"{_MARGIN}segment {segment} ({where}): {_counted(tally.counts)}")
    for number, example in enumerate(result.examples):
        beside = f"; {notes[number]}" if number in notes else ""
        lines.append(f"{_MARGIN}{_example(example, show_keys=show_keys)}{beside}")
    if result.is_closed is not True and any(result.tally.counts[x] for x in (Word.EXTRA, Word.DIFFERENT)):
        lines.append(
            f"{_MARGIN}the store was perhaps not closed in order: a write that never reached the changelog looks the"
            " same; let the application run on and verify again"
        )
    return "\n".join(lines) + "\n"


def json_line(result: Result, notes: Mapping[int, str], *, show_keys: bool) -> str:
    """Describe one store as one line of JSON."""
    row = {
        "application_id": result.store.application,
        "task_id": result.store.task,
        "store": result.store.name,
        "kind": result.kind,
        "word": result.word,
        "reason": result.reason or None,
        "note": result.note or None,
        "topic": result.topic or None,
        "partition": None if result.store.is_global or not result.topic else result.store.partition,
        "start_offset": None if result.store.is_global else result.start,
        "end_offset": None if result.store.is_global else result.end,
        "offset": result.offsets.get(0) if result.store.database else None,
        "partitions": [
            {"partition": partition, "start_offset": start, "end_offset": end, "offset": offset}
            for partition, (offset, start, end) in sorted(result.partitions.items())
        ],
        "is_closed": result.is_closed,
        "counts": {word.value: result.tally.counts[word] for word in _SHOWN if result.tally.counts[word]},
        "segments": [
            {
                "start_ms": segment,
                "offset": result.offsets.get(segment),
                "is_there": segment in result.offsets,
                "counts": {word.value: tally.counts[word] for word in _SHOWN if tally.counts[word]},
            }
            for segment, tally in sorted(result.by_segment.items())
        ],
        "examples": [
            {
                "word": example.word,
                "key": key_text(example.key, show_keys=show_keys).removeprefix("key "),
                "offset": example.offset,
                "segment_start_ms": example.segment,
                "note": notes.get(number),
            }
            for number, example in enumerate(result.examples)
        ],
    }
    return json.dumps(row, ensure_ascii=True) + "\n"


def exit_code(results: list[Result], fail_on: frozenset[Word]) -> Exit:
    """Go by the words that are asked for, and by what could not be judged."""
    words = {word for x in results for word in (x.word, *(y for y, count in x.tally.counts.items() if count))}
    return answer(found=bool(words & fail_on), unread=Word.UNDECIDABLE in words)


def _headline(result: Result) -> str:
    return result.word.value.upper() if result.word in (*DAMAGE, Word.UNDECIDABLE) else result.word.value


def _about(result: Result) -> str:
    if result.kind is None:
        return ""
    if result.store.is_global:
        return f"({result.kind}; {printable(result.topic)}, {len(result.partitions)} partitions)"
    if result.store.database:
        offset = result.offsets.get(0)
        at = f"offset {'none' if offset is None else offset}"
    else:
        at = f"{len(result.offsets)} segments"
    changelog = f"{printable(result.topic)}-{result.store.partition} from {result.start} to {result.end}"
    return f"({result.kind}; {changelog}; {at})"


def _counted(counts: Mapping[Word, int]) -> str:
    return ", ".join(
        f"{counts[x]} {_NOUNS.get(x, '')}{' ' if x in _NOUNS else ''}{x.value}" for x in _SHOWN if counts[x]
    )


def _example(example: Example, *, show_keys: bool) -> str:
    where = "" if example.segment is None else f" in segment {example.segment}"
    due = "no record is due" if example.offset is None else f"the changelog has it at offset {example.offset}"
    return f"{example.word}: {key_text(example.key, show_keys=show_keys)}{where}; {due}"
