"""How well each pod was watched, and what is known about it: rows of the tables `coverage` and `pods`."""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.codec import rfc3339
from spark_rollup.fleet.application import Pod
from spark_rollup.fleet.beats import LastWord
from spark_rollup.fleet.events import MICROS
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.pods import LOST, has_ended, is_silent
from spark_rollup.fleet.rows import Gap


def coverage(namespace: str, pod: Pod, last: LastWord, as_of_us: int, since_us: int) -> Row:
    """Measure how much of a pod's time since the look-back began was really watched.

    A blind interval of one task or application does not count against the whole pod; overlapping ones count once.
    """
    heard = pod.heard
    first_us = max(last.first_us, min(last.last_us, since_us))
    end_us = as_of_us if is_silent(pod, as_of_us) else last.last_us
    span = (end_us - first_us) / MICROS
    unknown = min(_unknown_us(pod.gaps, since_us) / MICROS, span)
    counts = heard is not None and not has_ended(heard, as_of_us)
    return {
        "namespace": namespace, "pod": pod.name,
        "first_seen": rfc3339(first_us), "last_seen": rfc3339(last.last_us),
        "boots": last.boots, "events": last.events,
        "lost_events": sum(x.missing or 0 for x in pod.gaps if x.cause == LOST),
        "missed_criticals": heard.missed_criticals if heard and counts else 0,
        "missed_warnings": heard.missed_warnings if heard and counts else 0,
        "span_seconds": span, "unknown_seconds": unknown,
        "watched_ratio": 1.0 - unknown / span if span > 0 else None,
    }  # fmt: skip


def _unknown_us(gaps: Iterable[Gap], since_us: int) -> int:
    whole = [x for x in gaps if x.application_id is None and x.task_id is None]
    total = reached = 0
    for from_us, to_us in sorted((max(x.from_us, since_us), x.to_us) for x in whole):
        total += max(to_us - max(from_us, reached), 0)
        reached = max(reached, to_us)
    return total


def described(namespace: str, pod: Pod, last: LastWord, held: int, as_of_us: int) -> Row:
    """Describe a pod as last seen; agent_state is `watching`, `stopped` or `silent`."""
    silent = "silent" if is_silent(pod, as_of_us) else "watching"
    return {
        "namespace": namespace, "pod": pod.name, "pod_uid": last.pod_uid, "node": last.node,
        "agent_version": last.agent_version, "agent_state": "stopped" if last.stopped else silent,
        "last_seen": rfc3339(last.last_us), "applications": sorted(pod.applications), "tasks_held": held,
    }  # fmt: skip
