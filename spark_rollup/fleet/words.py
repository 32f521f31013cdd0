"""Sentences, times and evidence of findings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal

from agent.contract.audited import FLEET
from agent.contract.codec import rfc3339
from agent.contract.events import Affected, Confidence, Status
from agent.contract.remedy import Remedy
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.rows import Entry, Said


def whole_seconds(duration_us: int) -> str:
    """Write a duration in microseconds as whole seconds, halves up."""
    return str(Decimal(duration_us).scaleb(-6).quantize(Decimal(1), ROUND_HALF_UP))


def place(*parts: str | None) -> str:
    """Join what is known of application, task and store."""
    return "/".join(part for part in parts if part is not None)


def of_store(store: str | None) -> str:
    """Name a store for a sentence; nothing where the statement is about the whole task."""
    return "" if store is None else f", store {store}"


def entry(at_us: int, what: str, where: str | None) -> Entry:
    """Build one entry of an evidence chain."""
    return Entry(rfc3339(at_us), what, where or "")


def chain(*entries: Entry | None, then: Iterable[Entry] = ()) -> list[Entry]:
    """Put evidence into the order of time, without repeats and what is not known (None)."""
    return sorted({one for one in (*entries, *then) if one is not None})


def lowered(confidence: str, *, doubtful: bool) -> str:
    """Take `confirmed` down to `suspected` where something in between was not watched."""
    sure = confidence == Confidence.CONFIRMED.value
    return Confidence.SUSPECTED.value if sure and doubtful else confidence


def words_of_agent(said: Said) -> Row:
    """Take over from a local finding what the fleet does not know better."""
    return {
        "severity": said.severity,
        "confidence": said.confidence,
        "status": said.status,
        "upstream": None if said.upstream is None else list(said.upstream),
        "affected": said.affected,
        "missing_facts": None if said.missing_facts is None else list(said.missing_facts),
        "ended_us": said.resolved_at_us,
        "remedy": said.remedy,
        "seen_at": rfc3339(said.observed_at_us),
    }


def finding(meta: RuleMeta, where: tuple[str, str | None], opened_at_us: int, **columns: object) -> Row:
    """Shape what a rule found into a row of `FINDING`, and give it its stable id.

    The rule gives detector, level and defaults; `columns` must have `summary`, `evidence` and `next_action`, and may
    have `ended_us` for what is resolved.
    """
    namespace, application = where
    pod = columns.get("pod")
    row: Row = {
        "detector": meta.id, "level": meta.level.value, "severity": meta.severity.value,
        "confidence": Confidence.CONFIRMED.value, "status": Status.OPEN.value,
        "namespace": namespace, "application_id": application, "task_id": None, "store": None, "identity": None,
        "pod": pod, "opened_at": rfc3339(opened_at_us), "upstream": list(meta.upstream),
        "affected": Affected.POSSIBLY.value, "missing_facts": [], "pods": [pod],
        "confirms": [], "refutes": [], "explains": [], "reported_by": FLEET, "resolved_at": None,
        "mechanism": meta.mechanism.slug if meta.mechanism else meta.id, "incident_id": None, "local_incidents": None,
        "ended_us": None, "remedy": Remedy.OTHER.value, "seen_at": None,
    } | columns  # fmt: skip
    key = ("detector", "namespace", "application_id", "task_id", "store", "pod", "identity")
    parts = [*(_text(row[name]) for name in key), str(opened_at_us)]
    row["id"] = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
    ended_us = row.pop("ended_us")
    if row["status"] == Status.RESOLVED.value and ended_us is not None:
        row["resolved_at"] = rfc3339(ended_us)
    row["lineage"] = [key for names in meta.joined_by for key in _lineage(row, names)]
    return row


def _lineage(row: Row, names: Sequence[str]) -> list[str]:
    """Write what findings of one incident have in common: one key, or one for each pod in it."""
    parts = [_text(row[name]) for name in names if name != "pods"]
    if "pods" not in names:
        return ["/".join(parts)]
    return ["/".join((*parts, pod)) for pod in row["pods"]]


def _text(value: object) -> str:
    return "" if value is None else str(value)
