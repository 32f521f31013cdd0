"""Spool, shipping, and Kubernetes Events: what becomes of the records."""

from __future__ import annotations

from agent.contract.events import Kind
from agent.publish.kubernetes import OUTCOMES
from agent.publish.metric import Metric, MetricKind, Series, Stability, by, one, seconds
from agent.publish.snapshot import MetricsSnapshot
from agent.ship.drops import UNKNOWN_KIND
from agent.ship.shipper import Outcome

_G, _C = MetricKind.GAUGE, MetricKind.COUNTER


def oldest_age(snapshot: MetricsSnapshot) -> Series:
    """Return how far behind shipping is, in seconds."""
    oldest_us = snapshot.spool.oldest_at_us
    # a wall clock that was set back must not give a negative age
    return one(0 if oldest_us is None else max(0, snapshot.heartbeat_at_us - oldest_us) / 1_000_000)


SHIPPING = (
    Metric(
        "statewarden_agent_spool_records",
        _G,
        "Records that wait to be shipped.",
        lambda s: one(s.spool.records),
    ),
    Metric(
        "statewarden_agent_spool_bytes",
        _G,
        "How much of its cap the spool uses.",
        lambda s: one(s.spool.bytes),
        unit="bytes",
    ),
    Metric(
        "statewarden_agent_spool_segments",
        _G,
        "Spool segments that wait to be shipped.",
        lambda s: one(s.spool.segments),
    ),
    Metric(
        "statewarden_agent_spool_oldest_unshipped_timestamp_seconds",
        _G,
        "When the oldest waiting record was observed; 0 while nothing waits.",
        lambda s: one(seconds(s.spool.oldest_at_us) or 0),
        unit="seconds",
    ),
    Metric(
        "statewarden_agent_spool_oldest_unshipped_age_seconds",
        _G,
        "Age of the oldest waiting record; 0 while nothing waits.",
        oldest_age,
        unit="seconds",
    ),
    Metric(
        "statewarden_agent_spool_aside_files",
        _G,
        "Files kept for inspection: a damaged database, and segments that the sink rejected.",
        lambda s: one(s.spool.aside),
    ),
    Metric(
        "statewarden_agent_spool_drops_total",
        _C,
        "Records dropped before they were shipped.",
        lambda s: by(s.spool.dropped),
        labels=("kind",),
        initial={"kind": (*(kind.value for kind in Kind), UNKNOWN_KIND)},
    ),
    Metric(
        "statewarden_agent_spool_corrupt_segments_total",
        _C,
        "Damage found in the spool: a database was set aside, or records of a segment were dropped.",
        lambda s: one(s.spool.corrupt_segments),
    ),
    Metric(
        "statewarden_agent_spool_write_failures_total",
        _C,
        "Records that the spool's disk refused.",
        lambda s: one(s.spool.write_failures),
    ),
    Metric(
        "statewarden_agent_shipped_segments_total",
        _C,
        "Segments that the sink acknowledged.",
        lambda s: one(s.ship.shipped_segments),
    ),
    Metric(
        "statewarden_agent_shipped_records_total",
        _C,
        "Records in segments that the sink acknowledged.",
        lambda s: one(s.ship.shipped_records),
    ),
    Metric(
        "statewarden_agent_ship_failures_total",
        _C,
        "Failed attempts to ship a segment.",
        lambda s: by(s.ship.failures),
        labels=("cause",),
        initial={"cause": (Outcome.RETRYABLE.value, Outcome.PERMANENT.value, Outcome.UNEXPECTED.value)},
    ),
)

DIGESTS = (
    Metric(
        "statewarden_agent_digests_total",
        _C,
        "Closes of stores, by what became of their digest: made, overtaken by the next open, left-out, failed; absent"
        " where digests are switched off.",
        lambda s: by(s.digests.outcomes) if s.digests else {},
        labels=("outcome",),
        stability=Stability.EXPERIMENTAL,
    ),
    Metric(
        "statewarden_agent_digest_cpu_seconds_total",
        _C,
        "CPU time that making digests has taken; absent where they are switched off.",
        lambda s: one(s.digests.cpu_s if s.digests else None),
        unit="seconds",
        stability=Stability.EXPERIMENTAL,
    ),
)

KUBERNETES = (
    Metric(
        "statewarden_agent_kubernetes_events_total",
        _C,
        "Kubernetes Events about findings, by outcome; 0 where they are switched off.",
        lambda s: by(s.kubernetes_events),
        labels=("outcome",),
        stability=Stability.EXPERIMENTAL,
        initial={"outcome": OUTCOMES},
    ),
)
