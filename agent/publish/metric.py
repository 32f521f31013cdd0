"""One family of metrics: its name, its meaning, and how it is read from a snapshot. Values only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agent.engine.rows import StoreRow, TaskRow
from agent.publish.snapshot import MetricsSnapshot

Series = Mapping[tuple[str, ...], float]  # label values, in the order of the family's labels -> value

Exemplars = Mapping[tuple[str, ...], Mapping[str, str]]  # label values -> labels of the exemplar


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
    """One family; its name says type (`_total`, `_info`, else a gauge) and base unit."""

    name: str  # as Prometheus shows it
    help: str  # one sentence; stable, because scrapers compare it
    read: Callable[[MetricsSnapshot], Series | float | None]
    """Reads its series from a snapshot, or its one value where it has no labels; unknown values are left out."""
    labels: tuple[str, ...] = ()  # in the order in which values are given
    stability: Stability = Stability.STABLE  # whether to build on it
    initial: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Label -> values that exist, as zeros, from the first scrape. `detector` and `application_id` are filled in by the
    exposition, as far as a series can become more; a family with any other label that is not listed here starts
    empty."""
    only_open: bool = False  # it counts what is open: a detector whose findings close at once has no series
    exemplars: Callable[[MetricsSnapshot], Exemplars] | None = None
    """Reads exemplars by series, for scrapers that ask for OpenMetrics; counters only."""

    @property
    def kind(self) -> MetricKind:
        """Type."""
        if self.name.endswith("_total"):
            return MetricKind.COUNTER
        return MetricKind.INFO if self.name.endswith("_info") else MetricKind.GAUGE

    @property
    def unit(self) -> str:
        """Base unit; empty = a count or a number."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in ("seconds", "bytes") else ""

    def series(self, snapshot: MetricsSnapshot) -> Series:
        """Read its series."""
        found = self.read(snapshot)
        return found if isinstance(found, Mapping) else {} if found is None else {(): found}


def by(values: Mapping[str, float]) -> Series:
    """Make the series of a family with one label."""
    return {(label,): value for label, value in values.items()}


def flags(labels: Iterable[tuple[str, ...]]) -> Series:
    """Make a series of value 1 for each of these values of the family's labels."""
    return dict.fromkeys(labels, 1.0)


def of_tasks(read: Callable[[TaskRow], float | None]) -> Callable[[MetricsSnapshot], Series]:
    """Make a reader with one series per task; of two rows for one task the last one with a value counts."""

    def reader(snapshot: MetricsSnapshot) -> Series:
        values = ((task.application_id, task.task_id, read(task)) for task in snapshot.tasks)
        return {(application, task): value for application, task, value in values if value is not None}

    return reader


def of_stores(read: Callable[[StoreRow], float | None]) -> Callable[[MetricsSnapshot], Series]:
    """Make a reader with one series per store."""

    def reader(snapshot: MetricsSnapshot) -> Series:
        rows = ((task, store, read(store)) for task in snapshot.tasks for store in task.stores)
        return {
            (task.application_id, task.task_id, store.store): value
            for task, store, value in rows
            if value is not None
        }

    return reader


def seconds(at_us: int | None) -> float | None:
    """Turn a time in microseconds into Prometheus' unit."""
    return None if at_us is None else at_us / 1_000_000
