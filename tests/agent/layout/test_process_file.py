"""The process metadata file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ProcessFileError
from agent.layout.process_file import MAX_PROCESS_FILE_BYTES, parse_process_file


def test_real_file():
    """A file as Kafka Streams writes it gives its process id."""
    content = b'{"processId":"6f2a3b1c-0d4e-4f5a-8b6c-7d8e9f0a1b2c"}'
    assert parse_process_file(content) == "6f2a3b1c-0d4e-4f5a-8b6c-7d8e9f0a1b2c"


@given(st.uuids(), st.dictionaries(st.text(), st.integers()))
def test_unknown_fields_are_ignored(process_id, others):
    """Fields that later releases add change nothing, and the id is told in lower case."""
    content = json.dumps({**others, "processId": str(process_id).upper()})
    assert parse_process_file(content.encode()) == str(process_id)


MALFORMED = {
    b"": "empty", b" \n": "empty", b"{": "not JSON", b"\xff\xfe": "not JSON", b"[" * 100_000: "not JSON",
    b'{"processId":"6f2a3b1c-0d4e-4f5a-8b6c-7d8e9f0a1b2c': "not JSON", b"[]": "not a JSON object",
    b"null": "not a JSON object", b"{}": "no `processId`", b'{"processId":1}': "no `processId`",
    b'{"processId":"x"}': "no `processId`",
}  # fmt: skip


@pytest.mark.parametrize("content", MALFORMED, ids=lambda x: x[:20])
def test_malformed(content):
    """The reason tells a cut file from a strange one; the file has one line."""
    with pytest.raises(ProcessFileError, match=MALFORMED[content]) as caught:
        parse_process_file(content)
    assert caught.value.line == 1


def test_limit_leaves_room_for_later_fields():
    """The file is one short line; later releases may add to it."""
    assert 1_000 <= MAX_PROCESS_FILE_BYTES <= 1_000_000


@given(st.binary())
def test_garbage_raises_nothing_else(content):
    """Arbitrary bytes are refused with the declared error."""
    with pytest.raises(ProcessFileError):
        parse_process_file(content)
