"""A digest that travels as an event is the line that the command writes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agent.contract.buckets import Bucket, Database, StoreDigest, StoreKind, StoreState, to_line
from agent.contract.codec import Encoder, decode
from agent.contract.events import Kind, Origin, Record
from agent.verify.shipped import body_of
from tests.support.packed import line_of

ROW = Bucket(3, 2, -5, 2**63 - 1, -(2**63))
ONE = Database(None, 9, True, 1_700_000_000_000_000, 2, (ROW,))
DIGEST = StoreDigest(
    None, "shop", "orders-0", "orders", "0_1", "totals", StoreKind.KEY_VALUE, StoreState.CLOSED,
    "orders-totals-changelog", 1, 9, 1_700_000_000_000_001, "0.1.0", 4, (ONE,),
)  # fmt: skip
SEGMENTS = (
    replace(ONE, segment_ms=60_000),
    replace(ONE, segment_ms=120_000, offset=None, buckets=(), entries=0),
)


@pytest.mark.parametrize(
    "digest",
    [
        DIGEST,
        replace(DIGEST, cluster="eu-1", state=StoreState.KILLED, offset=None),
        replace(DIGEST, kind=StoreKind.WINDOW, databases=SEGMENTS),
        replace(DIGEST, kind=StoreKind.WINDOW, databases=()),
    ],
    ids=["plain", "cluster", "segments", "no segment"],
)
def test_the_event_says_what_the_line_says(digest: StoreDigest) -> None:
    """Field by field, through the codec and back."""
    origin = Origin(
        "uid", "boot", digest.pod, digest.namespace, "", digest.agent_version, digest.cluster or ""
    )
    event = decode(Encoder(origin).encode(Record(Kind.DIGEST, digest.made_us, body_of(digest)), 1))
    assert line_of(event) == json.loads(to_line(digest))
