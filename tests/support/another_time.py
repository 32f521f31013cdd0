"""A pytest plugin for collecting only: it is another day, and the names of all tests go to a file.

Loaded with `-p tests.support.another_time` in a process of its own, before any test module is imported.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LATER_S = 400 * 86_400 + 3_661.25
"""Another year, month, day, hour, minute and second."""

NAMES_TO = "STATEWARDEN_TEST_NAMES_TO"


class _LikeTheRealOne(type):
    """Lets what C code makes count as an instance."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.__bases__[0])


class _Later(datetime.datetime, metaclass=_LikeTheRealOne):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
        return _NOW(tz) + datetime.timedelta(seconds=LATER_S)

    @classmethod
    def utcnow(cls) -> datetime.datetime:  # type: ignore[override]
        return _NOW(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=LATER_S)


_NOW = datetime.datetime.now


def _later(clock: Callable[[], Any], by: float) -> Callable[[], Any]:
    return lambda: clock() + by


if NAMES_TO in os.environ:  # who only imports this keeps the time
    time.time = _later(time.time, LATER_S)
    time.time_ns = _later(time.time_ns, int(LATER_S * 1_000_000_000))
    datetime.datetime = _Later  # type: ignore[misc]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the names."""
    Path(os.environ[NAMES_TO]).write_text(json.dumps([item.nodeid for item in session.items]), "utf-8")
