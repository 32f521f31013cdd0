"""Pipeline values -> the immutable snapshot that a scrape reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

from agent import __version__
from agent.contract.events import Severity
from agent.findings.ledger import Finding
from agent.inventory.model import Application, Task
from agent.publish.snapshot import (
    DetectorMetrics,
    FindingCount,
    MetricsSnapshot,
    ShipMetrics,
    SpoolMetrics,
    TaskMetrics,
    WatchMetrics,
)
from agent.runtime.pipeline import Pipeline
from agent.ship.shipper import ShipStats
from agent.ship.stats import SpoolStats
from agent.watch.source import WatchCounters


def take_snapshot(
    pipeline: Pipeline,
    now_us: int,
    watch: WatchCounters,
    spool: SpoolStats | None,
    ship: ShipStats | None,
    *,
    ready: bool,
    delay_s: float,
) -> MetricsSnapshot:
    """Build what the next scrapes report."""
    findings = pipeline.ledger.open_findings()
    worst = _worst(findings)
    tasks = tuple(
        _task_row(application, task, worst.get((application.id, task.id)), now_us)
        for application in pipeline.inventory.applications.values()
        for task in application.tasks.values()
        if task.exists
    )
    counts = Counter((x.application_id, x.detector, x.severity) for x in findings)
    return MetricsSnapshot(
        agent_version=__version__,
        up=True,
        ready=ready,
        applications=tuple(sorted(a.id for a in pipeline.inventory.applications.values() if a.exists)),
        tasks=tasks,
        findings=tuple(FindingCount(*key, count) for key, count in sorted(counts.items())),
        detectors=tuple(
            DetectorMetrics(name, x.runs, x.failures, x.seconds) for name, x in pipeline.stats.items()
        ),
        watch=_watch_row(pipeline, watch, now_us),
        observations={"looked": pipeline.looker.looks},
        last_delay_s=delay_s,
        spool=spool_row(spool, now_us),
        ship=ShipMetrics(ship.shipped_segments, ship.shipped_records, ship.failures)
        if ship
        else ShipMetrics(),
        heartbeat_at_us=now_us,
    )


def _worst(findings: list[Finding]) -> Mapping[tuple[str, str], Severity]:
    worst: dict[tuple[str, str], Severity] = {}
    for finding in findings:
        if finding.task_id is None:
            continue
        key = (finding.application_id, finding.task_id)
        if key not in worst or finding.severity.rank > worst[key].rank:
            worst[key] = finding.severity
    return worst


def _task_row(application: Application, task: Task, worst: Severity | None, now_us: int) -> TaskMetrics:
    checkpoint = task.checkpoint
    return TaskMetrics(
        application_id=application.id,
        task_id=task.id,
        held=task.held,
        checkpoint_offset=max(checkpoint.offsets.values(), default=None) if checkpoint else None,
        checkpoint_written_at_us=checkpoint.written_us if checkpoint else None,
        flushed_puts=sum(store.puts for store in task.stores.values()),
        bytes=sum(db.size_bytes for store in task.stores.values() for db in store.databases.values()),
        incarnation=task.incarnation,
        last_seen_at_us=now_us,
        worst_severity=worst,
    )


def _watch_row(pipeline: Pipeline, watch: WatchCounters, now_us: int) -> WatchMetrics:
    blind_s: dict[str, float] = {}
    for interval in pipeline.inventory.blind:
        end_us = interval.ended_us if interval.ended_us is not None else now_us
        seconds = (end_us - interval.started_us) / 1_000_000
        blind_s[interval.cause] = blind_s.get(interval.cause, 0.0) + seconds
    return WatchMetrics(
        watches=watch.watches,
        events=watch.events,
        queue_overflows=watch.overflows,
        rescans=dict(pipeline.rescans),
        blind_s=blind_s,
        blind_now=frozenset(x.cause for x in pipeline.inventory.blind if x.ended_us is None),
    )


def spool_row(spool: SpoolStats | None, now_us: int) -> SpoolMetrics:
    """Put the spool's state into the snapshot's form; None = there is no spool."""
    if spool is None:
        return SpoolMetrics()
    # a wall clock that was set back must not give a negative age
    age_s = max(0, now_us - spool.oldest_at_us) / 1_000_000 if spool.oldest_at_us is not None else 0.0
    return SpoolMetrics(**asdict(spool), oldest_age_s=age_s)
