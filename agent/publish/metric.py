"""What is known about one family of metrics. Values only; the list of families is the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class MetricKind(StrEnum):
    """Type of a family."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"


class Stability(StrEnum):
    """Whether alerts may rely on a family: stable names change only with a major version."""

    STABLE = "stable"
    EXPERIMENTAL = "experimental"


@dataclass(frozen=True, slots=True)
class Metric:
    """One family.

    Args of the dataclass:
        name: As Prometheus shows it, with `_total` or `_info`.
        kind: Type.
        help: One sentence; stable, because scrapers compare it.
        unit: Base unit at the end of the name; empty = a count or a number.
        labels: Label names, in the order in which values are given.
        stability: Whether to build on it.
        initial: Label -> values that exist, as zeros, from the first scrape. `detector` and
            `application_id` are filled in by the collector; a family with any other label that is not listed
            here starts empty.
    """

    name: str
    kind: MetricKind
    help: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    stability: Stability = Stability.STABLE
    initial: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
