"""What a fleet's events would have shown Prometheus over time, and which alerts the committed rules make of it.

Values and text, but for the one call of promtool: its rule engine is Prometheus' own, `for` and staleness included.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.contract.events import Status
from agent.contract.finding import Finding
from agent.contract.incidents import gather
from agent.detectors import BY_ID
from agent.findings.alerts import AlertNames, waits
from agent.judging.base import Kind
from agent.publish.rows import EVENT_SHOWN_US, incident_rows
from agent.publish.snapshot import INCIDENT_LABELS, IncidentRow

REPOSITORY = Path(__file__).resolve().parents[2]
MINUTE_US = 60_000_000
_WAITS = waits({id_: x.meta for id_, x in BY_ID.items()})
NAMESPACE = "shop"

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What one finding event of an agent says, as much as a series shows."""

    pod: str
    at_us: int
    finding: Finding


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


def incident_spans(told: Iterable[Told], end_us: int) -> list[Span]:
    """Turn finding events into rows of `statewarden_incident_info`, as `agent/publish/rows.py` shows them.

    What is open when the recording ends stays open to the end of the time: an alert has every chance to fire.
    """
    by_pod: dict[str, list[Told]] = defaultdict(list)
    for one in told:
        by_pod[one.pod].append(one)
    return [span for pod, events in by_pod.items() for span in _of_pod(pod, events, end_us)]


def _of_pod(pod: str, events: list[Told], end_us: int) -> list[Span]:
    events.sort(key=lambda one: one.at_us)
    ends = {one.at_us + EVENT_SHOWN_US for one in events if _is_moment(one.finding)}
    spans: list[Span] = []
    shown: dict[Labels, int] = {}
    known: dict[str, Told] = {}
    names = AlertNames()
    for at_us in sorted({one.at_us for one in events} | {x for x in ends if x < end_us}):
        known.update((one.finding.id, one) for one in events if one.at_us == at_us)
        incidents = gather(_visible(known.values(), at_us), lambda _: ())
        rows, _ = incident_rows(incidents, names.of(incidents, _WAITS))
        now = {labels_of(pod, row) for row in rows}
        spans += [Span(labels, shown.pop(labels), at_us) for labels in shown.keys() - now]
        shown.update(dict.fromkeys(now - shown.keys(), at_us))
    return spans + [Span(labels, since_us, end_us) for labels, since_us in shown.items()]


def _visible(known: Iterable[Told], at_us: int) -> Iterator[Finding]:
    for one in known:
        if one.finding.status is Status.OPEN or (
            _is_moment(one.finding) and at_us < one.at_us + EVENT_SHOWN_US
        ):
            yield one.finding


def _is_moment(finding: Finding) -> bool:
    return BY_ID[finding.detector].meta.kind is Kind.EVENT


def labels_of(pod: str, row: IncidentRow) -> Labels:
    """Give the labels of an incident's series."""
    place = {"__name__": "statewarden_incident_info", "namespace": NAMESPACE, "pod": pod}
    labels = place | dict(zip(INCIDENT_LABELS, row, strict=False))
    return tuple((name, str(value)) for name, value in labels.items() if value)


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


RULES = REPOSITORY / "deploy" / "alerts"
_ANNOTATIONS = re.compile(r"^    annotations:\n(?:      .*\n)+", re.MULTILINE)


def bare_rules(work: Path) -> Path:
    """Copy the committed rules without their texts, which decide nothing and cost promtool more than all conditions."""
    folder = work / "rules"
    folder.mkdir()
    for path in RULES.glob("*.rules.yaml"):
        text, number = _ANNOTATIONS.subn("", path.read_text(encoding="utf-8"))
        assert (number, text.count("{{")) == (text.count("  - alert: "), 0), path
        (folder / path.name).write_text(text, encoding="utf-8")
    return folder


def promtool_says(
    work: Path,
    spans: Iterable[Span],
    origin_us: int,
    minutes: int,
    asked: str,
    *,
    times_m: Iterable[int] = (),
    every_m: int = 1,
) -> str:
    """Ask promtool one question about the committed rules, at the end or at these minutes.

    It tells what it found by way of contradiction: the test expects nothing.
    """
    promtool = shutil.which("promtool")
    assert promtool, "no promtool: apt-get install prometheus"
    series: dict[Labels, list[Span]] = defaultdict(list)
    for span in spans:
        series[span.labels].append(span)
    inputs = [
        {"series": _selector(labels), "values": notation(own, origin_us, minutes)}
        for labels, own in series.items()
    ]
    questions = [
        {"expr": asked, "eval_time": f"{at_m}m", "exp_samples": []}
        for at_m in tuple(times_m) or (minutes - 1,)
    ]
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": questions}
    rules = f"{bare_rules(work)}/*.rules.yaml"
    content = {"rule_files": [rules], "evaluation_interval": f"{every_m}m", "tests": [test]}
    path = work / "noise.test.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True)
    return done.stdout + done.stderr


def _selector(labels: Labels) -> str:
    words = ",".join(f"{name}={json.dumps(value)}" for name, value in labels if name != "__name__")
    return f"{dict(labels)['__name__']}{{{words}}}"


def alerts_fired(spans: Iterable[Span], origin_us: int, minutes: int, work: Path) -> set[Fired]:
    """Evaluate all committed rules at every minute, and list what fired at any of them.

    The dead man's alert at least always fires: without it something else is wrong.
    """
    asked = (
        "count by (alertname, severity, application_id, pod) "
        f'(count_over_time(ALERTS{{alertstate="firing"}}[{minutes}m]))'
    )
    said = promtool_says(work, spans, origin_us, minutes, asked)
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
