"""The exposition: one custom collector over the latest snapshot. Sole importer of prometheus_client.

Fresh families are built per scrape, so nothing can be emitted twice or linger. A family that cannot be
computed is left empty and counted; it never takes the scrape with it.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from agent.publish.catalogue import CATALOGUE
from agent.publish.metric import Metric, MetricKind
from agent.publish.snapshot import MetricsSnapshot, StoreMetrics, TaskMetrics

_LOG = logging.getLogger(__name__)
_END = b"# EOF\n"
_ERRORS = "statewarden_agent_collector_errors_total"

Series = dict[tuple[str, ...], float]
"""Label values, in the order of the catalogue, -> value."""

Reader = Callable[[MetricsSnapshot], Series]


class Exposition:
    """What `/metrics` answers."""

    def __init__(self, snapshot: Callable[[], MetricsSnapshot], detectors: Sequence[str]) -> None:
        """Prepare; nothing is computed before the first scrape.

        Args:
            snapshot: Gives the latest snapshot, without waiting.
            detectors: Ids of all detectors: their series exist from the first scrape.
        """
        self._collector = _SnapshotCollector(snapshot, tuple(detectors))

    def render(self, openmetrics: bool = False) -> tuple[str, bytes]:
        """Compute the answer to one scrape.

        Args:
            openmetrics: Whether the scraper asked for OpenMetrics 1.0; else Prometheus text 0.0.4.

        Returns:
            Content type and body.
        """
        if not openmetrics:
            parts = (exposition.generate_latest(_One(family)) for family in self._collector.collect())
            return exposition.CONTENT_TYPE_PLAIN_0_0_4, b"".join(parts)
        ended = (
            openmetrics_exposition.generate_latest(_One(family))  # type: ignore[no-untyped-call]
            for family in self._collector.collect()
        )
        body = b"".join(part.removesuffix(_END) for part in ended) + _END
        return openmetrics_exposition.CONTENT_TYPE_LATEST, body


class _One(CollectorRegistry):
    """One family at a time is made text: of ten thousand tasks all lines together would take 20 MiB."""

    def __init__(self, family: Family) -> None:
        super().__init__()
        self._family = family

    def collect(self) -> Iterator[Family]:
        """Yield the family."""
        yield self._family


class _SnapshotCollector(Collector):
    """Builds all families of the catalogue from one snapshot."""

    def __init__(self, snapshot: Callable[[], MetricsSnapshot], detectors: tuple[str, ...]) -> None:
        self._snapshot = snapshot
        self._detectors = detectors
        self._errors = 0

    def describe(self) -> Iterable[Family]:
        """Declare nothing: the catalogue is the declaration, and a scrape is the only time to compute."""
        return ()

    def collect(self) -> Iterator[Family]:
        """Yield every family of the catalogue once, in its order."""
        snapshot = self._snapshot()
        for metric in CATALOGUE:
            if metric.name != _ERRORS:
                yield self._family(metric, snapshot)
        errors = next(metric for metric in CATALOGUE if metric.name == _ERRORS)
        yield _fill(errors, {(): float(self._errors)})

    def _family(self, metric: Metric, snapshot: MetricsSnapshot) -> Family:
        try:
            series = _zeros(metric, _applications(snapshot), self._detectors)
            series.update(READERS[metric.name](snapshot))
            exemplars = EXEMPLARS.get(metric.name)
            return _fill(metric, series, exemplars(snapshot) if exemplars else {})
        except Exception:  # noqa: BLE001 - a fence: one broken family must not blind the others
            self._errors += 1
            _LOG.exception("metric family left empty", extra={"metric": metric.name})
            return _fill(metric, {})


def _applications(snapshot: MetricsSnapshot) -> tuple[str, ...]:
    of_tasks = (task.application_id for task in snapshot.tasks)
    of_findings = (row.application_id for row in snapshot.findings)
    # findings about the agent itself name no application; their series need no zeros
    return tuple(dict.fromkeys(filter(None, (*snapshot.applications, *of_tasks, *of_findings))))


def _zeros(metric: Metric, applications: tuple[str, ...], detectors: tuple[str, ...]) -> Series:
    """Make the series that exist whether or not anything happened; none if a label has no known values."""
    if metric.kind is MetricKind.INFO or not metric.labels:
        return {}  # one series at most, and its reader decides whether it can be told
    known = {**metric.initial, "application_id": applications, "detector": detectors}
    if any(label not in known for label in metric.labels):
        return {}
    return dict.fromkeys(itertools.product(*(known[label] for label in metric.labels)), 0.0)


def _fill(
    metric: Metric, series: Series, exemplars: Mapping[tuple[str, ...], Exemplar] | None = None
) -> Family:
    # escaped names may coincide, and one duplicate series would fail the whole scrape: so escape the keys
    shown = {tuple(map(_printable, values)): one for values, one in (exemplars or {}).items()}
    series = {tuple(map(_printable, values)): float(value) for values, value in series.items()}
    if any(len(values) != len(metric.labels) for values in series):
        raise ValueError(f"{metric.name} takes the labels {metric.labels}, got {list(series)}")
    if metric.kind is MetricKind.INFO:
        info = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=())
        for values in series:
            info.add_metric((), dict(zip(metric.labels, values, strict=True)))
        return info
    name = metric.name.removesuffix("_total")
    unit = metric.unit if name.endswith(f"_{metric.unit}") else ""
    if metric.kind is MetricKind.COUNTER:
        counter = CounterMetricFamily(name, metric.help, labels=metric.labels, unit=unit)
        for values, value in series.items():
            counter.add_metric(values, value, exemplar=shown.get(values))
        return counter
    gauge = GaugeMetricFamily(name, metric.help, labels=metric.labels, unit=unit)
    for values, value in series.items():
        gauge.add_metric(values, value)
    return gauge


def _printable(value: str) -> str:
    """Escape what is not UTF-8, as a hostile directory name may bring; distinct names stay distinct."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _one(value: float) -> Series:
    return {(): float(value)}


def _by(values: Mapping[str, float]) -> Series:
    return {(label,): float(value) for label, value in values.items()}


def _optional(value: float | None) -> Series:
    return {} if value is None else _one(value)


def _seconds(at_us: int | None) -> float | None:
    return None if at_us is None else at_us / 1_000_000


def _task(read: Callable[[TaskMetrics], float | None]) -> Reader:
    def reader(snapshot: MetricsSnapshot) -> Series:
        rows = ((task, read(task)) for task in snapshot.tasks)
        return {(task.application_id, task.task_id): value for task, value in rows if value is not None}

    return reader


def _store(read: Callable[[StoreMetrics], float | None]) -> Reader:
    def reader(snapshot: MetricsSnapshot) -> Series:
        rows = ((task, store, read(store)) for task in snapshot.tasks for store in task.stores)
        return {
            (task.application_id, task.task_id, store.store): value
            for task, store, value in rows
            if value is not None
        }

    return reader


def _severity(task: TaskMetrics) -> float | None:
    if not task.exists:
        return None
    return task.worst_severity.rank + 1 if task.worst_severity else 0


def _told(snapshot: MetricsSnapshot) -> Series:
    return {(row.application_id, row.detector, row.severity.value): row.count for row in snapshot.told}


def _task_findings(snapshot: MetricsSnapshot) -> Series:
    return {
        (row.application_id, row.task_id or "", row.detector, row.severity.value): row.count
        for row in snapshot.task_findings
    }


def _tasks(snapshot: MetricsSnapshot) -> Series:
    counts: Series = {}
    for application, _ in {(task.application_id, task.task_id) for task in snapshot.tasks if task.exists}:
        counts[application,] = counts.get((application,), 0.0) + 1
    return counts


def _findings(snapshot: MetricsSnapshot) -> Series:
    counts: Series = {}
    for row in snapshot.findings:
        key = (row.application_id, row.detector, row.severity.value)
        counts[key] = counts.get(key, 0.0) + row.count
    return counts


READERS: Mapping[str, Reader] = {
    "statewarden_tasks": _tasks,
    "statewarden_findings_open": _findings,
    "statewarden_findings_total": _told,
    "statewarden_task_findings": _task_findings,
    "statewarden_task_findings_unlisted": lambda s: _one(s.unlisted),
    "statewarden_task_severity": _task(_severity),
    "statewarden_task_held": _task(lambda t: t.held),
    "statewarden_task_checkpoint_offset": _task(lambda t: t.checkpoint_offset),
    "statewarden_task_checkpoint_written_timestamp_seconds": _task(
        lambda t: _seconds(t.checkpoint_written_at_us)
    ),
    "statewarden_task_flushed_puts": _task(lambda t: t.flushed_puts),
    "statewarden_task_bytes": _task(lambda t: t.bytes),
    "statewarden_task_incarnation": _task(lambda t: t.incarnation),
    "statewarden_task_last_seen_timestamp_seconds": _task(lambda t: _seconds(t.last_seen_at_us)),
    "statewarden_store_held": _store(lambda x: x.held),
    "statewarden_store_offset": _store(lambda x: x.offset),
    "statewarden_store_flushed_puts": _store(lambda x: x.flushed_puts),
    "statewarden_store_bytes": _store(lambda x: x.bytes),
    "statewarden_agent_watches": lambda s: _one(s.watch.watches),
    "statewarden_agent_watch_events_total": lambda s: _one(s.watch.events),
    "statewarden_agent_queue_overflows_total": lambda s: _one(s.watch.queue_overflows),
    "statewarden_agent_rescans_total": lambda s: _by(s.watch.rescans),
    "statewarden_agent_missed_changes_total": lambda s: _by(s.watch.missed_changes),
    "statewarden_agent_blind_seconds_total": lambda s: _by(s.watch.blind_s),
    "statewarden_agent_blind": lambda s: _by(dict.fromkeys(s.watch.blind_now, 1.0)),
    "statewarden_agent_slowed": lambda s: _by(dict.fromkeys(s.watch.slowed_now, 1.0)),
    "statewarden_agent_watches_needed": lambda s: _one(s.watch.watches + s.watch.unwatched),
    "statewarden_agent_unwatched_directories": lambda s: _one(s.watch.unwatched),
    "statewarden_agent_inotify_limit": lambda s: _by(s.watch.limits),
    "statewarden_agent_watch_restarts_total": lambda s: _one(s.watch.restarts),
    "statewarden_agent_canary": lambda s: _one(s.watch.canary),
    "statewarden_agent_canaries_missed_total": lambda s: _one(s.watch.canaries_missed),
    "statewarden_agent_mailbox_waiting": lambda s: _one(s.watch.waiting),
    "statewarden_agent_mailbox_coalesced_total": lambda s: _one(s.watch.coalesced),
    "statewarden_agent_mailbox_dropped_total": lambda s: _one(s.watch.dropped),
    "statewarden_agent_reconcile_entries_total": lambda s: _one(s.watch.reconcile_entries),
    "statewarden_agent_reconcile_round_seconds": lambda s: _one(s.watch.reconcile_round_s),
    "statewarden_agent_clock_steps_total": lambda s: _one(s.watch.clock_steps),
    "statewarden_agent_self_limited": lambda s: _by(dict.fromkeys(s.watch.self_limited, 1.0)),
    "statewarden_agent_baselines_written_total": lambda s: _one(s.watch.baselines_written),
    "statewarden_agent_baseline_failures_total": lambda s: _one(s.watch.baseline_failures),
    "statewarden_agent_observations_total": lambda s: _by(s.observations),
    "statewarden_agent_observation_delay_seconds": lambda s: _one(s.last_delay_s),
    "statewarden_agent_spool_records": lambda s: _one(s.spool.records),
    "statewarden_agent_spool_bytes": lambda s: _one(s.spool.bytes),
    "statewarden_agent_spool_segments": lambda s: _one(s.spool.segments),
    "statewarden_agent_spool_oldest_unshipped_timestamp_seconds": lambda s: _one(
        _seconds(s.spool.oldest_at_us) or 0.0
    ),
    "statewarden_agent_spool_oldest_unshipped_age_seconds": lambda s: _one(s.spool.oldest_age_s),
    "statewarden_agent_spool_aside_files": lambda s: _one(s.spool.aside),
    "statewarden_agent_spool_drops_total": lambda s: _by(s.spool.dropped),
    "statewarden_agent_spool_torn_tails_total": lambda s: _one(s.spool.torn_tails),
    "statewarden_agent_spool_corrupt_segments_total": lambda s: _one(s.spool.corrupt_segments),
    "statewarden_agent_spool_write_failures_total": lambda s: _one(s.spool.write_failures),
    "statewarden_agent_shipped_segments_total": lambda s: _one(s.ship.shipped_segments),
    "statewarden_agent_shipped_records_total": lambda s: _one(s.ship.shipped_records),
    "statewarden_agent_ship_failures_total": lambda s: _by(s.ship.failures),
    "statewarden_agent_kubernetes_events_total": lambda s: _by(s.kubernetes_events),
    "statewarden_agent_build_info": lambda s: {(s.agent_version,): 1.0},
    "statewarden_agent_up": lambda s: _one(s.up),
    "statewarden_agent_ready": lambda s: _one(s.ready),
    "statewarden_agent_preflight": lambda s: _by(s.preflight),
    "statewarden_agent_heartbeat_timestamp_seconds": lambda s: _one(s.heartbeat_at_us / 1_000_000),
    "statewarden_agent_detector_runs_total": lambda s: {(d.detector,): d.runs for d in s.detectors},
    "statewarden_agent_detector_failures_total": lambda s: {(d.detector,): d.failures for d in s.detectors},
    "statewarden_agent_detector_duration_seconds_total": lambda s: {
        (d.detector,): d.duration_s for d in s.detectors
    },
    "statewarden_agent_resident_memory_bytes": lambda s: _optional(s.resident_memory_bytes),
}
"""Family -> how it is read off a snapshot; the collector's own error count is the one family without."""


def _newest_findings(snapshot: MetricsSnapshot) -> dict[tuple[str, ...], Exemplar]:
    return {
        (row.application_id, row.detector, row.severity.value): Exemplar({"finding_id": row.newest_id}, 1.0)
        for row in snapshot.told
    }


EXEMPLARS: Mapping[str, Callable[[MetricsSnapshot], dict[tuple[str, ...], Exemplar]]] = {
    "statewarden_findings_total": _newest_findings,
}
"""Family -> exemplars by series, shown where a scraper asks for OpenMetrics."""
