"""A record of a changelog becomes these bytes in a store, by kind and column family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import LayoutError
from agent.verify.kinds import (
    DEFAULT,
    SESSION_WITH_HEADERS,
    SHORT_BYTES,
    TIMESTAMPED,
    WINDOW_WITH_HEADERS,
    WITH_HEADERS,
    Content,
    Kind,
    big_endian,
    content_of,
    could_be,
    headers_bytes,
    is_index,
    record_content,
    record_key,
    record_value,
    shorten,
    store_key,
    time_of,
    varint,
)

AT_MS = 1_700_000_000_000
START = big_endian(AT_MS)
SEQUENCE = b"\0\0\0\5"
HEADERS = [("a", b"x"), ("b", None)]
HEADERS_BYTES = b"\x04" + b"\x02a\x02x" + b"\x02b\x01"
WITH_LENGTH = bytes([len(HEADERS_BYTES) * 2]) + HEADERS_BYTES

contents = st.tuples(
    st.integers(0, 1 << 45),
    st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=40)), max_size=3),
    st.binary(max_size=40),
)


@pytest.mark.parametrize(
    ("kind", "family", "value"),
    [
        (Kind.KEY_VALUE, DEFAULT, b"v"),
        (Kind.KEY_VALUE, TIMESTAMPED, START + b"v"),
        (Kind.KEY_VALUE, WITH_HEADERS, WITH_LENGTH + START + b"v"),
        (Kind.WINDOW, DEFAULT, b"v"),
        (Kind.WINDOW, TIMESTAMPED, START + b"v"),
        (Kind.WINDOW, WITH_HEADERS, WITH_LENGTH + START + b"v"),
        (Kind.SESSION, DEFAULT, b"v"),
        (Kind.SESSION, SESSION_WITH_HEADERS, WITH_LENGTH + b"v"),
        (Kind.TIME_FIRST_WINDOW, DEFAULT, START + b"v"),
        (Kind.TIME_FIRST_WINDOW, WINDOW_WITH_HEADERS, WITH_LENGTH + START + b"v"),
        (Kind.TIME_FIRST_SESSION, DEFAULT, b"v"),
    ],
)
def test_an_entry_is_of_the_record_that_made_it(kind: Kind, family: str, value: bytes) -> None:
    """Value, and time and headers where the form keeps them; a digest has the value alone."""
    entry = content_of(kind, family, value)
    assert entry.is_of(record_content(AT_MS, HEADERS, b"v"))
    assert entry.is_of(record_content(AT_MS + 1, HEADERS, b"v")) is (START not in value)
    assert entry.is_of(record_content(AT_MS, [], b"v")) is (WITH_LENGTH not in value)
    assert not content_of(kind, family, value[:-1] + b"w").is_of(record_content(AT_MS, HEADERS, b"v"))
    assert record_value(kind, family, value) == b"v"


def test_no_headers_are_one_zero_byte() -> None:
    """An entry of 4.3 without headers begins with their length, 0."""
    entry = content_of(Kind.KEY_VALUE, WITH_HEADERS, b"\0" + START + b"v")
    assert entry.is_of(record_content(AT_MS, (), b"v"))
    assert record_value(Kind.SESSION, SESSION_WITH_HEADERS, b"\0v") == b"v"


@given(contents)
def test_what_a_store_of_headers_keeps_is_read_back(
    content: tuple[int, list[tuple[str, bytes | None]], bytes],
) -> None:
    """Any time, headers and value, of any length."""
    at_ms, headers, value = content
    packed = headers_bytes(headers)
    entry = content_of(Kind.KEY_VALUE, WITH_HEADERS, varint(len(packed)) + packed + big_endian(at_ms) + value)
    assert entry == Content(at_ms, shorten(packed), shorten(value))
    assert entry.is_of(record_content(at_ms, headers, value))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, b"\0"),
        (-1, b"\1"),
        (1, b"\2"),
        (63, b"\x7e"),
        (64, b"\x80\1"),
        (2**31 - 1, b"\xfe\xff\xff\xff\x0f"),
    ],
)
def test_numbers_have_seven_bits_a_byte(number: int, expected: bytes) -> None:
    """Zig-zag: small numbers of either sign are short."""
    assert varint(number) == expected


@given(st.binary(max_size=30), st.integers(0, 1 << 45), st.integers(0, 1 << 20))
def test_keys_lead_to_the_store_and_back(key: bytes, at_ms: int, span_ms: int) -> None:
    """Each kind's key has its time, and every store key its record's key."""
    window = key + big_endian(at_ms) + SEQUENCE
    session = key + big_endian(at_ms + span_ms) + big_endian(at_ms)
    for kind, record, time_ms in (
        (Kind.WINDOW, window, at_ms),
        (Kind.TIME_FIRST_WINDOW, window, at_ms),
        (Kind.SESSION, session, at_ms + span_ms),
        (Kind.TIME_FIRST_SESSION, session, at_ms + span_ms),
    ):
        assert time_of(kind, record) == time_ms
        assert record_key(kind, store_key(kind, record)) == record


def test_time_first_keys_have_these_bytes() -> None:
    """Base entry: 0, time, key; index: 1 and the record's key."""
    window = b"key" + START + SEQUENCE
    assert store_key(Kind.TIME_FIRST_WINDOW, window) == b"\0" + START + b"key" + SEQUENCE
    session = b"key" + START + START
    assert store_key(Kind.TIME_FIRST_SESSION, session) == b"\0" + START + START + b"key"
    assert is_index(Kind.TIME_FIRST_WINDOW, b"\1" + window)
    assert record_key(Kind.TIME_FIRST_WINDOW, b"\1" + window) == window
    assert not is_index(Kind.WINDOW, b"\1" + window)


def test_a_window_key_is_no_session_key() -> None:
    """The wrong kind shows times that nobody has."""
    window = b"key-12345" + START + b"\0\0\0\0"
    session = b"key-12345" + big_endian(AT_MS + 5000) + START
    assert could_be(Kind.WINDOW, window)
    assert not could_be(Kind.SESSION, window)
    assert could_be(Kind.SESSION, session)
    assert not could_be(Kind.WINDOW, session)


@pytest.mark.parametrize("length", [SHORT_BYTES - 1, SHORT_BYTES, 1000])
def test_long_values_are_kept_as_fingerprints(length: int) -> None:
    """A fingerprint never equals a short value, and another value has another one."""
    assert len(shorten(b"a" * length)) == min(length, SHORT_BYTES)
    assert shorten(b"a" * length) != shorten(b"a" * (length - 1) + b"b")


@pytest.mark.parametrize(
    ("kind", "family", "value"),
    [
        (Kind.KEY_VALUE, TIMESTAMPED, b"short"),
        (Kind.KEY_VALUE, WITH_HEADERS, b"\xff\xff\xff\xff\xff\xff"),
        (Kind.KEY_VALUE, WITH_HEADERS, b"\x7e"),
        (Kind.KEY_VALUE, "somethingNew", b"v"),
    ],
)
def test_what_is_not_of_the_form_is_an_error(kind: Kind, family: str, value: bytes) -> None:
    """Never a guess."""
    for read in (content_of, record_value):
        with pytest.raises(LayoutError):
            read(kind, family, value)
