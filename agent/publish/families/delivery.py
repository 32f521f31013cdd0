"""Spool, shipping, and Kubernetes Events: what becomes of the records."""

from __future__ import annotations

from agent.contract.events import Kind
from agent.publish.kubernetes import OUTCOMES
from agent.publish.metric import Metric, Stability, by, seconds
from agent.publish.snapshot import MetricsSnapshot
from agent.ship.drops import UNKNOWN_KIND
from agent.ship.shipper import Outcome


def oldest_age(snapshot: MetricsSnapshot) -> float:
    """Return how far behind shipping is, in seconds."""
    oldest_us = snapshot.spool.oldest_at_us
    # a wall clock that was set back must not give a negative age
    return 0 if oldest_us is None else max(0, snapshot.heartbeat_at_us - oldest_us) / 1_000_000


# fmt: off
SHIPPING = (
    Metric("statewarden_agent_spool_records", "Records waiting to be shipped.", lambda s: s.spool.records),
    Metric("statewarden_agent_spool_bytes", "How much of its cap the spool uses.", lambda s: s.spool.bytes),
    Metric("statewarden_agent_spool_segments", "Spool segments waiting to be shipped.", lambda s: s.spool.segments),
    Metric("statewarden_agent_spool_oldest_unshipped_timestamp_seconds",
           "When the oldest waiting record was observed; 0 while nothing waits.",
           lambda s: seconds(s.spool.oldest_at_us) or 0),
    Metric("statewarden_agent_spool_oldest_unshipped_age_seconds",
           "Age of the oldest waiting record; 0 while nothing waits.", oldest_age),
    Metric("statewarden_agent_spool_aside_files",
           "Files kept for inspection: a damaged database, and segments that the sink rejected.",
           lambda s: s.spool.aside),
    Metric("statewarden_agent_spool_drops_total", "Records dropped before they were shipped.",
           lambda s: by(s.spool.dropped), labels=("kind",),
           initial={"kind": (*(kind.value for kind in Kind), UNKNOWN_KIND)}),
    Metric("statewarden_agent_spool_corrupt_segments_total",
           "Damage found in the spool: a database was set aside, or records of a segment were dropped.",
           lambda s: s.spool.corrupt_segments),
    Metric("statewarden_agent_spool_write_failures_total", "Records that the spool's disk refused.",
           lambda s: s.spool.write_failures),
    Metric("statewarden_agent_shipped_segments_total", "Segments that the sink acknowledged.",
           lambda s: s.ship.shipped_segments),
    Metric("statewarden_agent_shipped_records_total", "Records in segments that the sink acknowledged.",
           lambda s: s.ship.shipped_records),
    Metric("statewarden_agent_ship_failures_total", "Failed attempts to ship a segment.",
           lambda s: by(s.ship.failures), labels=("cause",),
           initial={"cause": (Outcome.RETRYABLE.value, Outcome.PERMANENT.value, Outcome.UNEXPECTED.value)}),
)

DIGESTS = (
    Metric(
        "statewarden_agent_digests_total",
        "Closed stores by outcome of their digest: made, overtaken, left-out, failed; absent where digests are off.",
        lambda s: by(s.digests.outcomes) if s.digests else {},
        labels=("outcome",),
        stability=Stability.EXPERIMENTAL,
    ),
    Metric("statewarden_agent_digest_cpu_seconds_total",
           "CPU time of digests; absent where they are off.",
           lambda s: s.digests.cpu_s if s.digests else None, stability=Stability.EXPERIMENTAL),
)

KUBERNETES = (
    Metric("statewarden_agent_kubernetes_events_total",
           "Kubernetes Events about findings, by outcome; 0 where they are off.",
           lambda s: by(s.kubernetes_events), labels=("outcome",), stability=Stability.EXPERIMENTAL,
           initial={"outcome": OUTCOMES}),
)
# fmt: on
