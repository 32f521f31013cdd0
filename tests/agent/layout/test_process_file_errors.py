"""Process metadata: size, and where an error is."""

from __future__ import annotations

import pytest

from agent.errors import ProcessFileError
from agent.layout.process_file import MAX_PROCESS_FILE_BYTES, parse_process_file


def test_limit_leaves_room_for_later_fields():
    """The file is one short line; later releases may add to it."""
    assert 1_000 <= MAX_PROCESS_FILE_BYTES <= 1_000_000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"processId": 7}', "no `processId`"),
        (b'{"processId": "x"}', "no `processId`"),
        (b"{}", "no `processId`"),
    ],
)
def test_every_error_says_why_and_where(content, reason):
    """The reason tells a cut file from a strange one; the file has one line."""
    with pytest.raises(ProcessFileError, match=reason) as caught:
        parse_process_file(content)
    assert caught.value.line == 1
