"""Read what `agent.contract.packed` packs, written independently, from its description."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from agent.contract.buckets import Bucket
from agent.contract.packed import OF_EVENT

WIDTHS = (4, 4, 8, 8, 8)


def unpack(packed: str) -> list[Bucket]:
    """Give the buckets of one database."""
    data = b64decode(packed, validate=True)
    found = []
    for start in range(0, len(data), sum(WIDTHS)):
        numbers, at = [], start
        for place, width in enumerate(WIDTHS):
            numbers.append(int.from_bytes(data[at : at + width], "big", signed=place > 1))
            at += width
        found.append(Bucket(*numbers))
    return found


def line_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Make the line of a digest file of an event's data."""
    (digest,) = event["digests"]
    databases = [
        {name: value for name, value in one.items() if name != "packed"}
        | {"buckets": [bucket._asdict() for bucket in unpack(one["packed"])]}
        for one in digest["databases"]
    ]
    return {name: event.get(name) for name in OF_EVENT} | digest | {"databases": databases}
