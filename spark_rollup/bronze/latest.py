"""Up to when an audit reads unless configured: the newest event's time, without clocks that are ahead of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agent.contract.reporting import SILENT_AFTER_S
from spark_rollup.clock import SKEW_US
from spark_rollup.columns import MICROS

Pod = tuple[str, str]
"""Namespace and pod."""

TOGETHER_US = SILENT_AFTER_S * MICROS
"""Pods that all run report within this time (microseconds) of each other."""

LEAD_US = 300 * MICROS
"""Two or more pods that fall silent within 90 s of each other are rarer than a clock that is ahead by up to this. A
larger lead shows against our own clock, where an audit follows an ingest."""


@dataclass(frozen=True, slots=True)
class Last:
    """What a pod reported last.

    Args of the dataclass:
        at_us: When, by its own clock; microseconds since the epoch.
        first_us: When it reported first, likewise.
        stopped: Whether its last report was that it stops.
    """

    at_us: int
    first_us: int
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Latest:
    """Up to when an audit reads.

    Args of the dataclass:
        ahead: Pods whose clocks seem to be ahead of that, and how far (microseconds).
    """

    as_of_us: int
    ahead: Mapping[Pod, int] = field(default_factory=dict)


def choose(words: Mapping[Pod, Last], now_us: int, began_us: Callable[[Pod, int], int]) -> Latest:
    """Choose the audit's time.

    Pods that report a time still to come are ignored, as long as others are left. So is a minority that is ahead of at
    least two others that agree on the time, in a way that only a wrong clock explains (`_is_clock`). A pod that goes on
    reporting after all others is believed: the others are silent.
    """
    left = {pod: word for pod, word in words.items() if word.at_us <= now_us + SKEW_US} or dict(words)
    speaking = sorted((word for word in left.values() if not word.stopped), key=lambda word: word.at_us)
    agreed = [word for before, word in pairwise(speaking) if word.at_us - before.at_us <= TOGETHER_US]
    if agreed:
        base_us = agreed[-1].at_us
        company = [word for word in speaking if base_us - TOGETHER_US <= word.at_us <= base_us]
        beyond = {pod: word for pod, word in left.items() if word.at_us > base_us + TOGETHER_US}
        if len(beyond) < len(company) and all(
            word.at_us - began_us(pod, base_us) <= TOGETHER_US or _is_clock(word, company, base_us)
            for pod, word in beyond.items()
        ):
            left = {pod: word for pod, word in left.items() if pod not in beyond}
    as_of_us = max(word.at_us for word in left.values())
    return Latest(as_of_us, {pod: word.at_us - as_of_us for pod, word in words.items() if pod not in left})


def _is_clock(word: Last, company: Sequence[Last], base_us: int) -> bool:
    """Return whether a pod that still reports has a clock that is ahead: a little, or equally far at start and end."""
    if word.first_us > base_us:  # it may have taken the others' place
        return False
    alike = sum(
        abs((word.first_us - other.first_us) - (word.at_us - other.at_us)) <= TOGETHER_US for other in company
    )
    return word.at_us - base_us <= LEAD_US or alike >= 2
