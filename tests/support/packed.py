"""Read the buckets of a digest, written independently, from the description in `agent.contract.buckets`."""

from __future__ import annotations

from base64 import b64decode

from agent.contract.buckets import Bucket

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
