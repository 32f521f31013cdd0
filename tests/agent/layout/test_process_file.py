"""The process metadata file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ProcessFileError
from agent.layout.process_file import parse_process_file


def test_real_file():
    """A file as Kafka Streams writes it gives its process id."""
    content = b'{"processId":"6f2a3b1c-0d4e-4f5a-8b6c-7d8e9f0a1b2c"}'
    assert parse_process_file(content) == "6f2a3b1c-0d4e-4f5a-8b6c-7d8e9f0a1b2c"


@given(st.uuids(), st.dictionaries(st.text(), st.integers()))
def test_unknown_fields_are_ignored(process_id, others):
    """Fields that later releases add change nothing, and the id is told in lower case."""
    content = json.dumps({**others, "processId": str(process_id).upper()})
    assert parse_process_file(content.encode()) == str(process_id)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"processId":1}',
        b'{"processId":"x"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"processId":"6f2a3b1c-0d4e-4f5a-8b6c-7d8e9f0a1b2c',
    ],
)
def test_malformed(content):
    """Anything else is refused with a reason."""
    with pytest.raises(ProcessFileError, match=r"line 1: .|no `processId`"):
        parse_process_file(content)


@given(st.binary())
def test_garbage_raises_nothing_else(content):
    """Arbitrary bytes are refused with the declared error."""
    with pytest.raises(ProcessFileError):
        parse_process_file(content)
