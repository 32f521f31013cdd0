"""The scratch database keeps the order of keys and of offsets."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.changelog import Logged
from agent.verify.kinds import Content
from agent.verify.scratch import Scratch, escape, pair, unescape

keys = st.binary(max_size=6) | st.lists(st.sampled_from([b"\0", b"\xff", b"a"]), max_size=5).map(b"".join)


@given(keys, keys, st.binary(max_size=9), st.binary(max_size=9))
def test_escaped_keys_keep_their_order_whatever_follows(one: bytes, other: bytes, a: bytes, b: bytes) -> None:
    """Zero bytes and keys that begin like another one included."""
    assert unescape(escape(one)) == one
    if one != other:
        assert (escape(one) + a < escape(other) + b) == (one < other)


@given(st.dictionaries(keys, st.just([1])), st.dictionaries(keys, st.just([2])))
def test_two_sequences_are_joined_in_order(low: dict[bytes, list], later: dict[bytes, list]) -> None:
    """Every key once, with what each has of it."""
    joined = pair(iter(sorted(low.items())), iter(sorted(later.items())))
    assert list(joined) == [(key, low.get(key), later.get(key)) for key in sorted(low | later)]


@pytest.mark.delivery
def test_records_come_back_by_key_in_the_order_of_offsets(tmp_path: Path) -> None:
    """The last low one, then all later ones; the committed reading of an offset counts."""
    pytest.importorskip("rocksdict", reason="run: make test-services")
    content = Content(7, b"h", b"value")
    with closing(Scratch(tmp_path)) as scratch:
        for key, record in (
            (b"a/k", Logged(1, None, at_ms=3)),
            (b"a/k", Logged(2, content, at_ms=7)),
            (b"b/other", Logged(4, None)),
        ):
            scratch.put(key, record, is_later=False)
        for key, record in (
            (b"a/k", Logged(300, content, at_ms=7)),
            (b"a/k", Logged(5, None, is_committed=False, at_ms=9)),
            (b"a/k", Logged(300, content, is_committed=False, at_ms=7)),
            (b"a/k\0", Logged(6, None)),
        ):
            scratch.put(key, record, is_later=True)
        found = [(key, list(records)) for key, records in scratch.keys(b"a/")]
    assert found == [
        (
            b"k",
            [
                Logged(2, content, at_ms=7),
                Logged(5, None, is_committed=False, at_ms=9),
                Logged(300, content, at_ms=7),
            ],
        ),
        (b"k\0", [Logged(6, None)]),
    ]
    assert list(tmp_path.iterdir()) == []
