"""What a fleet's events would have shown Prometheus over time, and which alerts the committed rules make of it.

Values and text, but for the one call of promtool: its rule engine is Prometheus' own, `for` and staleness included.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.contract.events import Status
from agent.detectors import BY_ID
from agent.judging.base import Kind
from agent.publish.finding_rows import EVENT_SHOWN_US

REPOSITORY = Path(__file__).resolve().parents[2]
MINUTE_US = 60_000_000
NAMESPACE = "shop"

Labels = tuple[tuple[str, str], ...]
Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Told:
    """One finding event of an agent, as much as a series shows."""

    pod: str
    finding_id: str
    application_id: str
    task_id: str
    detector: str
    severity: str
    status: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Span:
    """A series had a value from one time to another, microseconds since the epoch, both included."""

    labels: Labels
    from_us: int
    to_us: int
    value: float = 1.0


@dataclass(frozen=True, slots=True)
class Fired:
    """An alert that fired: name, severity, application (empty where the alert has none), pod."""

    alert: str
    severity: str
    application_id: str
    pod: str


def finding_spans(told: Iterable[Told], end_us: int) -> list[Span]:
    """Turn finding events into rows of `statewarden_task_findings`, as `agent/publish/finding_rows.py` shows them.

    What is open when the recording ends stays open to the end of the time: an alert has every chance to fire.
    """
    spans: list[Span] = []
    by_finding: dict[tuple[str, str], list[Told]] = defaultdict(list)
    for one in told:
        by_finding[one.pod, one.finding_id].append(one)
    for events in by_finding.values():
        events.sort(key=lambda one: one.at_us)
        nexts = [*(one.at_us for one in events[1:]), end_us]
        for one, next_us in zip(events, nexts, strict=True):
            if BY_ID[one.detector].meta.kind is Kind.EVENT:
                spans.append(_row(one, one.at_us + EVENT_SHOWN_US))
            elif one.status == Status.OPEN.value:
                spans.append(_row(one, next_us))
    return spans


def _row(one: Told, to_us: int) -> Span:
    labels = {
        "__name__": "statewarden_task_findings",
        "namespace": NAMESPACE,
        "pod": one.pod,
        "application_id": one.application_id,
        "task_id": one.task_id,
        "detector": one.detector,
        "severity": one.severity,
    }
    return Span(tuple(labels.items()), one.at_us, to_us)


def notation(spans: Sequence[Span], origin_us: int, minutes: int) -> str:
    """Write one series in promtool's notation, one value a minute.

    A minute in which the series existed for a moment counts whole: no scrape interval can hide anything.
    """
    values: list[float | None] = [None] * minutes
    for span in spans:
        first = max((span.from_us - origin_us) // MINUTE_US, 0)
        last = min((span.to_us - origin_us) // MINUTE_US, minutes - 1)
        values[first : last + 1] = [span.value] * (last + 1 - first)
    words: list[str] = []
    start = 0
    for here in range(1, minutes + 1):
        if here < minutes and values[here] == values[start]:
            continue
        words += _run(values[start], here - start, first=start == 0)
        start = here
    return " ".join(words)


def _run(value: float | None, length: int, *, first: bool) -> list[str]:
    if value is not None:
        return [f"{value!r}x{length - 1}"]  # `1x3` is four values
    if first:
        return [f"_x{length}"]  # `_x3` is three gaps
    # a scrape that lacks the series ends it at once
    return ["stale", *([f"_x{length - 1}"] if length > 1 else [])]


def promtool_test(spans: Iterable[Span], origin_us: int, minutes: int, asked: str) -> str:
    """Write a promtool test over all committed rules, which asks one question at the end. JSON is YAML."""
    series: dict[Labels, list[Span]] = defaultdict(list)
    for span in spans:
        series[span.labels].append(span)
    inputs = [
        {"series": _selector(labels), "values": notation(own, origin_us, minutes)}
        for labels, own in series.items()
    ]
    question = {"expr": asked, "eval_time": f"{minutes - 1}m", "exp_samples": []}
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": [question]}
    rules = str(REPOSITORY / "deploy" / "alerts" / "*.rules.yaml")
    return json.dumps({"rule_files": [rules], "evaluation_interval": "1m", "tests": [test]})


def _selector(labels: Labels) -> str:
    words = ",".join(f"{name}={json.dumps(value)}" for name, value in labels if name != "__name__")
    return f"{dict(labels)['__name__']}{{{words}}}"


def alerts_fired(
    promtool: str, spans: Iterable[Span], origin_us: int, minutes: int, work: Path
) -> set[Fired]:
    """Evaluate all committed rules at every minute, and list what fired at any of them.

    promtool tells what it found by way of contradiction: the test expects nothing, and the dead man's alert at
    least always fires.

    Raises:
        AssertionError: promtool said something else, for example that a rule failed.
    """
    asked = (
        "count by (alertname, severity, application_id, pod) "
        f'(count_over_time(ALERTS{{alertstate="firing"}}[{minutes}m]))'
    )
    path = work / "noise.test.yaml"
    path.write_text(promtool_test(spans, origin_us, minutes, asked), encoding="utf-8")
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True)
    said = done.stdout + done.stderr
    got = re.findall(r"^\s+got: (.*)$", said, re.MULTILINE)
    assert len(got) == 1, said[-4000:]
    fired = {_fired(found) for found in re.findall(r"\{([^}]*)\} [0-9.E+]+", got[0])}
    dead_man = {one for one in fired if one.alert == "StatewardenDeadMan"}
    assert dead_man, said[-4000:]
    return fired - dead_man


def _fired(words: str) -> Fired:
    labels = dict(re.findall(r'(\w+)="([^"]*)"', words))
    return Fired(
        labels["alertname"], labels["severity"], labels.get("application_id", ""), labels.get("pod", "")
    )
