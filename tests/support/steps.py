"""How many steps of Python something takes: no clock, and loops count as calls do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """Count calls, lines and turns of loops; what C does by itself (`in`, `sorted`) is not seen.

    Nor is the collector: what other tests left behind has ends in Python, such as those of py4j's objects.
    """
    counted = 0

    def trace(_: FrameType, __: str, ___: object) -> Any:
        nonlocal counted
        counted += 1
        return trace

    before = sys.gettrace()
    gc.collect()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return counted
