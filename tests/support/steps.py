"""How many steps of Python something takes: no clock, and loops count as calls do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """Count calls, lines and turns of loops; what C does by itself (`in`, `sorted`) is not seen."""
    counted = 0

    def trace(_: FrameType, __: str, ___: object) -> Any:
        nonlocal counted
        counted += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted
