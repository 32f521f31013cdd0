"""Bytes of `kafka-streams-process-metadata` -> process id."""

from __future__ import annotations

import json
import re

from agent.errors import ProcessFileError

MAX_PROCESS_FILE_BYTES = 16 << 10
"""Read no more than this; the file is one line of about 55 bytes."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def parse_process_file(content: bytes) -> str:
    """Read the process id in lower case from one JSON object; later releases may add fields.

    Raises `ProcessFileError`: not JSON, not an object, or no UUID in it.

    Source:
        StateDirectory.StateDirectoryProcessFile (2.6.2+, 2.7.1+, 2.8+).
    """
    if not content.strip():
        raise ProcessFileError("the file is empty (truncated?)", 1)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ProcessFileError(f"not JSON: {error}", 1) from error
    if not isinstance(value, dict):
        raise ProcessFileError("not a JSON object", 1)
    process_id = value.get("processId")
    if not isinstance(process_id, str) or not _UUID.fullmatch(process_id):
        raise ProcessFileError("no `processId` with a UUID in it", 1)
    return process_id.lower()
