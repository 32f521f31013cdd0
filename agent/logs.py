"""The agent's log: standard logging, one JSON object per line on stdout.

Field names are those of the event contract (`detector`, `application_id`, `task_id`, ...) and travel through
`extra`; this module knows none of them by name except `observed_at_us`, which sets the line's time.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import TextIO

from agent.contract.codec import rfc3339

OWN_FIELDS = ("time", "level", "logger", "message", "error")
"""Fields that the formatter fills itself; an `extra` of the same name gets a trailing underscore."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "observed_at_us"}


class JsonLinesFormatter(logging.Formatter):
    """Write a log record as one line of JSON, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Build the line: time, level, logger, message, every `extra`, and the traceback if there is one."""
        at_us = getattr(record, "observed_at_us", None)
        line: dict[str, object] = {
            "time": rfc3339(at_us if isinstance(at_us, int) else int(record.created * 1_000_000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD and value is not None:
                line[f"{name}_" if name in OWN_FIELDS else name] = value
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        # ascii output: a file name that is not UTF-8 must not break the log of the file system's auditor
        return json.dumps(line, separators=(",", ":"), ensure_ascii=True, default=_plain)


def configure(level: str | int = "INFO", stream: TextIO | None = None) -> None:
    """Send everything that is logged to one stream as JSON lines.

    Calling it again replaces what the last call installed; handlers of others stay.

    Args:
        level: Name (any case) or number of the lowest level that is written.
        stream: Where to write; stdout by default.

    Raises:
        ValueError: the level is unknown.
    """
    root = logging.getLogger()
    root.setLevel(level.upper() if isinstance(level, str) else level)
    for handler in list(root.handlers):
        if isinstance(handler.formatter, JsonLinesFormatter):
            root.removeHandler(handler)
    handler = logging.StreamHandler(sys.stdout if stream is None else stream)
    handler.setFormatter(JsonLinesFormatter())
    root.addHandler(handler)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(str(item) for item in value)
    return str(value)
