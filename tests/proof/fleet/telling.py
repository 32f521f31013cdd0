"""What two agents ship of a script, as events; and what the fleet audit says of events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Level, Origin, Record
from spark_rollup.fleet.events import Event
from spark_rollup.report.restart_answer import HARMLESS, PodAnswer, pod_answers
from tests.proof.classes import Script
from tests.proof.eras import Era
from tests.proof.fleet.lives import PODS
from tests.proof.play import GAP_S, SOON_S, Stage
from tests.spark_rollup.support.plain import event_of, tables
from tests.support.scenario import TIMESTAMPED, Scenario

SETTLED_S = 200
"""Longer than session timeout and probing interval, and than an agent may be silent."""
SETTINGS = {
    "commit_interval_ms": 30_000,
    "state_cleanup_delay_ms": 600_000,
    "delete_retention_ms": 86_400_000,
    "session_timeout_ms": 10_000,
    "max_warmup_replicas": 2,
    "probing_rebalance_interval_ms": 60_000,
}


class Verdict(NamedTuple):
    """A finding of warning or above, about data."""

    detector: str
    level: str
    severity: str
    confidence: str
    pods: tuple[str, ...]
    status: str

    @property
    def is_certain(self) -> bool:
        return (self.severity, self.confidence) == ("critical", "confirmed")


class Answer(NamedTuple):
    """Whether a pod may be restarted, and whose copies that rests on."""

    pod: str
    worst: str
    healthy: tuple[str, ...]
    by_lag: bool
    """Whether some copy is not healthy because it lags."""

    @property
    def is_harmless(self) -> bool:
        """Whether a restart is said to do no harm."""
        return self.worst in HARMLESS


class Audit(NamedTuple):
    """What the fleet says: findings, and of each pod whether it may be restarted."""

    verdicts: frozenset[Verdict]
    answers: tuple[Answer, ...]


def told(era: Era, script: Script, standbys: int | None) -> list[Event]:
    """Let both agents watch a script; returns their events in order of time."""
    runs, records = [], []
    for number in range(len(PODS)):
        run = Scenario(
            era.release, "exactly_once_v2" if era.eos else "at_least_once", standbys, stores={"s": TIMESTAMPED},
            told=SETTINGS,
        )  # fmt: skip
        run._identities = 1_000 * number
        run.world.mkdir(run.application)
        process = b'{"processId":"7f3e2a10-0000-4000-8000-00000000000%d"}' % (2 + number)
        run.world.write(f"{run.application}/kafka-streams-process-metadata", process)
        runs.append(run)
        records.append(run.world.records)
    stages, before = [Stage(run, sibling=False) for run in runs], None
    for pod, name, *amounts in script:
        stage = stages[PODS.index(pod)]
        gap_s = SOON_S.get((stage.before, name), GAP_S) if before is stage else GAP_S
        _wait(runs, gap_s)
        getattr(stage, f"_{name}")(*amounts)
        stage.before, before = name, stage
    _wait(runs, SETTLED_S)
    assert not any(run.world.faults for run in runs)
    return sorted(
        (event for pod, told_by in zip(PODS, records, strict=True) for event in _events(pod, told_by)),
        key=lambda x: (x.observed_at_us, x.pod, x.sequence),
    )


def _wait(runs: Sequence[Scenario], seconds: float) -> None:
    until_us = max(run.world.now_us for run in runs) + round(seconds * 1_000_000)
    for run in runs:
        run.wait((until_us - run.world.now_us) / 1_000_000)


def _events(pod: str, records: Sequence[Record]) -> list[Event]:
    encoder = Encoder(Origin(f"uid-{pod}", "boot-1", f"pod-{pod}", "fleet"))
    first = Record(Kind.LIFECYCLE, records[0].observed_at_us, {"phase": "started", "reason": "start"})
    lines = (encoder.encode(record, number) for number, record in enumerate((first, *records), 1))
    return [event_of(f"{pod}-{number}", json.loads(line)["data"]) for number, line in enumerate(lines)]


def audit(events: Sequence[Event], as_of_us: int | None = None) -> Audit:
    """Ask the rollup's reduction and rules."""
    if not events:
        return Audit(frozenset(), ())
    found = tables(events, max(x.observed_at_us for x in events) if as_of_us is None else as_of_us)
    return Audit(
        frozenset(_verdict(row) for row in found["findings"] if _counts(row)),
        tuple(sorted(_answer(x) for x in pod_answers(found["restarts"], found["known_pods"]))),
    )


def _answer(x: PodAnswer) -> Answer:
    healthy = {pod for row in x.rows for pod in row["healthy_elsewhere"]}  # type: ignore[attr-defined]
    lags = any("records behind" in ill for row in x.rows for ill in row["ill_elsewhere"])  # type: ignore[attr-defined]
    return Answer(str(x.pod["pod"]), x.worst, tuple(sorted(healthy)), lags)


def _counts(row: Any) -> bool:
    return (
        row["severity"] != "info" and row["level"] != Level.SELF.value and row["detector"] != "missing-fact"
    )


def _verdict(row: Any) -> Verdict:
    pods = tuple(sorted({row["pod"]} if row["pod"] else set(row["pods"])))
    return Verdict(row["detector"], row["level"], row["severity"], row["confidence"], pods, row["status"])
