"""Alert noise of a fleet on a release that exposes it: 200 pods, exactly-once, 3.9.1, over three days.

    python tests/prove/exposed_fleet.py     prints the table that docs/monitoring.md shows

20 applications of 10 pods. Each pod's tasks are exposed from 10 minutes after a start. Every night each application is
restarted pod by pod, in order; on the first day one pod in four applications is killed for its memory, and started
again at once: one task of it then is suspected to hold uncommitted records, until it is proved or refuted.
Prometheus' rule engine evaluates the committed rules without those about the rollup; routes turn what fires into
notifications.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.events import Affected, Confidence, Level, Severity, Status  # noqa: E402 - path first
from agent.contract.finding import Finding  # noqa: E402
from agent.detectors import BY_ID  # noqa: E402
from tests.support.noise import MINUTE_US, NAMESPACE, Labels, Span, Told, incident_spans, promtool_says  # noqa: E402
from tests.support.notified import Route, notified  # noqa: E402

APPLICATIONS, PODS, TASKS, DAYS = 20, 10, 2, 3
KILLED = (2, 7, 11, 16)
"""Applications with a kill on the first day; its time is the number, in hours."""

DAY_M, STEP_M = 1_440, 15
EXPOSED_AFTER_M, RESTART_M, NIGHT_M = 10, 3, 1_200
EXPOSED, DAMAGED = "stale-eos-checkpoint", "skipped-eos-wipe"

HOUR_M = 60
BY_APPLICATION = ("alertname", "namespace", "application_id")
ROUTES = (
    Route("pages", {"severity": "critical"}, ("namespace", "application_id", "incident_id"), 12 * HOUR_M, 5),
    Route("for reading", {"repeat": "weekly"}, (*BY_APPLICATION, "release"), 168 * HOUR_M, 24 * HOUR_M),
    Route("for reading", {"severity": "info"}, BY_APPLICATION, 12 * HOUR_M, 5),
    Route("tickets", {"severity": "warning"}, BY_APPLICATION, 12 * HOUR_M, 5),
)
"""As in deploy/alerts/alertmanager.yaml."""


@dataclass(frozen=True, slots=True)
class Row:
    """Notifications of one receiver, by day."""

    receiver: str
    by_day: tuple[int, ...]


def lives(application: int, pod: int) -> list[tuple[int, int, bool]]:
    """List a pod's processes: from and to, in minutes, and whether the end was orderly."""
    ends = [(day * DAY_M + NIGHT_M + pod * RESTART_M, True) for day in range(DAYS)]
    if application in KILLED and pod == 3:
        ends.append((application * HOUR_M, False))
    rows, since_m = [], 0
    for end_m, orderly in sorted(ends):
        rows.append((since_m, end_m, orderly))
        since_m = end_m + RESTART_M
    return [*rows, (since_m, DAYS * DAY_M, True)]


def told() -> Iterator[Told]:
    """List what the agents report."""
    for application in range(APPLICATIONS):
        for pod in range(PODS):
            name = f"orders-{application}-{pod}"
            for start_m, end_m, orderly in lives(application, pod):
                at_m = start_m + EXPOSED_AFTER_M
                for task in range(TASKS):
                    found = _exposed(application, name, task, at_m)
                    yield Told(name, at_m * MINUTE_US, found)
                    over = replace(found, status=Status.RESOLVED, resolved_at_us=end_m * MINUTE_US)
                    yield Told(name, end_m * MINUTE_US, over)
                    if not orderly and task == 0:
                        yield Told(name, (end_m + 1) * MINUTE_US, _damaged(found, end_m + 1))


def _exposed(application: int, pod: str, task: int, at_m: int) -> Finding:
    return Finding(
        id=f"{pod}-{task}-{at_m}", detector=EXPOSED, level=Level.EXPOSURE, severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED, status=Status.OPEN, application_id=f"orders-{application}",
        task_id=f"0_{task}", store="totals",
        identity=None, opened_at_us=at_m * MINUTE_US, resolved_at_us=None, upstream=("KAFKA-20685",),
        affected=Affected.YES, missing_facts=(), summary="", evidence=(), next_action="",
        mechanism="uncommitted-data", incident_id=f"i-{pod}-{at_m}", lasting=True,
    )  # fmt: skip


def _damaged(found: Finding, at_m: int) -> Finding:
    return replace(
        found, id=f"{found.id}-damage", detector=DAMAGED, level=Level.DAMAGE, confidence=Confidence.SUSPECTED,
        opened_at_us=at_m * MINUTE_US, lasting=False,
    )  # fmt: skip


def exposure_spans(events: Iterable[Told], end_us: int) -> Iterator[Span]:
    """Give rows of `statewarden_exposed_tasks`: one per pod, while its first task is exposed."""
    opened: dict[str, Told] = {}
    first = (x for x in events if x.finding.lasting and x.finding.task_id == "0_0")
    for one in sorted(first, key=lambda x: x.at_us):
        if one.finding.status is Status.OPEN:
            opened[one.finding.id] = one
        else:
            yield _exposure(opened.pop(one.finding.id), one.at_us)
    yield from (_exposure(one, end_us) for one in opened.values())


def _exposure(one: Told, to_us: int) -> Span:
    labels: Labels = (
        ("__name__", "statewarden_exposed_tasks"), ("namespace", NAMESPACE), ("pod", one.pod),
        ("application_id", one.finding.application_id), ("detector", one.finding.detector), ("release", "3.9.1"),
        ("accepted", "false"),
    )  # fmt: skip
    return Span(labels, one.at_us, to_us, TASKS)


def firing(spans: Sequence[Span], work: Path) -> list[list[Mapping[str, str]]]:
    """Evaluate the committed rules every 5 minutes; list what fires, by steps of `STEP_M`."""
    minutes = DAYS * DAY_M
    times = range(STEP_M, minutes, STEP_M)
    asked = 'ALERTS{alertstate="firing",alertname!~"StatewardenDeadMan|StatewardenRollup.+"}'
    said = promtool_says(work, spans, 0, minutes, asked, times_m=times, every_m=5)
    at = dict(_minutes_and_rows(said))
    assert at, said[-3000:]
    return [at.get(step, []) for step in times]


def _minutes_and_rows(said: str) -> Iterator[tuple[int, list[Mapping[str, str]]]]:
    """Read promtool's words: it expected nothing, and says what it got, and when."""
    for time, got in re.findall(r"time: ([0-9dhms]+),\s*\n\s*exp:[^\n]*\n\s*got:\s*([^\n]*)", said):
        parts = {unit: int(number) for number, unit in re.findall(r"(\d+)([dhms])", time)}
        rows: list[Mapping[str, str]] = [
            dict(re.findall(r'(\w+)="([^"]*)"', row)) for row in re.findall(r"\{([^}]*)\}", got)
        ]
        yield parts.get("d", 0) * DAY_M + parts.get("h", 0) * HOUR_M + parts.get("m", 0), rows


def measure(work: Path) -> list[Row]:
    """Count notifications."""
    events, end_us = list(told()), DAYS * DAY_M * MINUTE_US
    assert BY_ID[EXPOSED].meta.lowers_risk
    spans = [*incident_spans(events, end_us), *exposure_spans(events, end_us)]
    spans += [Span((("__name__", "statewarden_agent_up"), ("namespace", NAMESPACE)), 0, end_us)]
    sent = notified(ROUTES, firing(spans, work), STEP_M)
    steps = DAY_M // STEP_M
    return [
        Row(x, tuple(sum(told == x and at // steps == day for at, told in sent) for day in range(DAYS)))
        for x in ("pages", "tickets", "for reading")
    ]


def render(rows: Iterable[Row]) -> str:
    """Write the table of docs/monitoring.md."""
    lines = ["| receiver | day 1 | day 2 | day 3 |", "|---|---|---|---|"]
    lines += [f"| {x.receiver} | {' | '.join(map(str, x.by_day))} |" for x in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="statewarden-exposed-") as place:
        sys.stdout.write(render(measure(Path(place))))
