"""The account of records that never reach the sink, and the `drop` records that announce them. Pure.

An announcement that is itself given up hands its content on: the next one says both. So every hole in the
sequence is announced as long as anything gets through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agent.contract.events import Kind, Record

UNKNOWN_KIND = "unknown"
_BOOT = "; boot "


class Cause(StrEnum):
    """Why records were given up; the beginning of a drop record's `reason`."""

    CAP = "spool-cap"
    CORRUPT = "corrupt-segment"
    OTHER_FORMAT = "other-format"
    REJECTED = "rejected-by-sink"
    WRITE_FAILED = "write-failed"


class DropKey(NamedTuple):
    """What one line of the account is about; sequences only mean something within one boot.

    The cause is empty as long as the records are not given up yet.
    """

    boot_id: str
    kind: str
    cause: str


@dataclass(frozen=True, slots=True)
class Span:
    """How many records were given up, and the first and last sequence among them."""

    count: int
    first: int
    last: int


Account = dict[DropKey, Span]


def add(account: Account, key: DropKey, span: Span) -> None:
    """Enter a span; spans of one key become one, from the lowest to the highest sequence."""
    known = account.get(key)
    if known is not None:
        span = Span(known.count + span.count, min(known.first, span.first), max(known.last, span.last))
    account[key] = span


def add_all(account: Account, other: Mapping[DropKey, Span], cause: Cause) -> None:
    """Enter another account, whose records are given up now; what they announced keeps its own cause."""
    for key, span in other.items():
        add(account, key if key.cause else key._replace(cause=cause), span)


def add_record(account: Account, boot_id: str, sequence: int, kind: str, body: Mapping[str, object]) -> None:
    """Enter one record, and what it announces if it is a drop record itself.

    The record's own line has no cause yet.
    """
    add(account, DropKey(boot_id, kind, ""), Span(1, sequence, sequence))
    if kind == Kind.DROP.value:
        cause, _, boot = str(body.get("reason", "")).partition(_BOOT)
        numbers = (body.get(x) for x in ("dropped_count", "first_sequence", "last_sequence"))
        count, first, last = (number if isinstance(number, int) else 0 for number in numbers)
        add(
            account,
            DropKey(boot or boot_id, str(body.get("dropped_kind", UNKNOWN_KIND)), cause or Cause.CAP),
            Span(count, first, last),
        )


def own_counts(account: Mapping[DropKey, Span]) -> dict[str, int]:
    """Count records by kind, without those that were only announced."""
    counts: dict[str, int] = {}
    for key, span in account.items():
        if not key.cause:
            counts[key.kind] = counts.get(key.kind, 0) + span.count
    return counts


def announcement(key: DropKey, span: Span, at_us: int) -> Record:
    """Write one line of the account as a drop record."""
    body = {
        "dropped_kind": key.kind,
        "dropped_count": span.count,
        "first_sequence": span.first,
        "last_sequence": span.last,
        "reason": f"{key.cause}{_BOOT}{key.boot_id}",
    }
    return Record(Kind.DROP, at_us, body)
