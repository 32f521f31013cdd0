"""What an alert is, and how it reads as a Prometheus rule and as promtool tests. Values and text only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.contract.runbooks import address_of

RUNBOOKS = "https://example.com/statewarden"
DASHBOARDS = "https://example.com/grafana/d"
"""Bases of the links in the committed files: placeholders, which the chart or `sed` replaces.

The annotation `runbook` says how to read the page without any.
"""

INCIDENTS, FLEET_INCIDENTS = "statewarden_incident_info", "statewarden_rollup_incident_info"
"""Series of incidents, of agents and of the fleet audit."""

TEXTS = {"agent": "statewarden_incident_text", "fleet": "statewarden_rollup_incident_text"}
"""Who reports an incident -> the series with its text.

What an incident says changes while it lasts: as labels its texts would make an alert another one, beside the old one.
"""

NAMES = {"agent": ("pod", "incident_id"), "fleet": ("incident_id",)}
"""Who reports an incident -> the labels that name it: agents of copied volumes give one id."""

WHERE = {
    "<application>": "{{ $labels.application_id }}",
    "<namespace>": "{{ $labels.namespace }}",
    "<pod>": "{{ $labels.namespace }}/{{ $labels.pod }}",
    "<incident>": "{{ $labels.incident_id }}",
    "<release>": "{{ with $labels.release }}, Kafka Streams {{ . }}{{ end }}",
    "<count>": "{{ $value }}",
}
"""Placeholders of an alert's texts -> Prometheus template."""

_STEP = " Next: "


@dataclass(frozen=True, slots=True)
class Case:
    """One promtool test of an alert."""

    name: str
    series: Mapping[str, str]  # series -> values in promtool's notation, one per minute
    at_m: int  # when the alert is checked, minutes
    labels: Mapping[str, str] | None = None
    """Labels of the alert that must fire (with what the rule adds); None = it must not."""
    says: Mapping[str, str] = field(default_factory=dict)  # placeholder -> text that the alert must show
    text: tuple[str, ...] = ()
    """Summary and next step of the incident when the alert is checked; empty = no series has them."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert."""

    name: str  # CamelCase, beginning with Statewarden
    expr: str
    severity: str  # `critical` pages, `warning` is a ticket, `info` is for reading; `none` is the dead man's
    for_m: int
    summary: str  # one line; of an alert about an incident what it says where the incident's own is missing
    description: str
    """What it is about and what follows, then `Next: ` and the step, as it is where the incident's own is missing; with
    placeholders."""
    runbook: str  # what `statewarden explain` prints: `detectors/ID` or `rules/ID`
    board: str  # uid of the dashboard to open
    cases: tuple[Case, ...]
    keep_m: int = 0  # how long it stays after the series is gone, minutes
    place: str = ""  # of an alert about an incident, where it is: a placeholder
    labels: Mapping[str, str] = field(default_factory=dict)


def notification(
    alert: Alert, words: Mapping[str, str] = WHERE, text: Sequence[str] | None = None
) -> dict[str, str]:
    """Everything that a notification shows; the links are attached here and nowhere else.

    `words`: for placeholders. `text`: the incident's, where it is known whether there is one; else it is asked for.
    """
    description, _, step = alert.description.partition(_STEP)
    shown = {"summary": alert.summary, "description": description, "next_step": step[:1].upper() + step[1:]}
    reporter = alert.labels.get("reporter", "")
    if reporter:
        for label, known in zip(("summary", "next_step"), text or ("", ""), strict=True):
            shown[label] = _exported(reporter, label, shown[label]) if text is None else known or shown[label]
        shown["summary"] = f"{alert.place}: {shown['summary']}"
    return {
        **{name: fill(said, words) for name, said in shown.items() if said},
        "runbook": f"statewarden explain {alert.runbook} (in any agent's container)",
        "runbook_url": f"{RUNBOOKS}/{address_of(alert.runbook, '.html')}",
        "dashboard_url": f"{DASHBOARDS}/{alert.board}{_chosen(alert)}",
    }


def _exported(reporter: str, label: str, instead: str) -> str:
    """Join a text of the incident, as it is now."""
    asked = ",".join(f"{name}=%q" for name in NAMES[reporter])
    given = " ".join(f"$labels.{name}" for name in NAMES[reporter])
    found = f"with printf `{TEXTS[reporter]}{{{asked}}}` {given} | query"
    return f'{{{{ {found} }}}}{{{{ . | first | label "{label}" }}}}{{{{ else }}}}{instead}{{{{ end }}}}'


_CLUSTER = "{{ with $labels.cluster }}&var-cluster={{ . }}{{ end }}"


def _chosen(alert: Alert) -> str:
    """Fill in the variables of the alert's board, as far as the alert has the labels."""
    text = f"{alert.place} {alert.description}"
    if "<pod>" in text:
        chosen = "?var-namespace={{ $labels.namespace }}&var-pod={{ $labels.pod }}"
    elif "<namespace>" in text:
        chosen = "?var-namespace={{ $labels.namespace }}&var-application={{ $labels.application_id }}"
    else:
        return ""
    return f"{chosen}{_CLUSTER}"


def fill(text: str, words: Mapping[str, str]) -> str:
    """Put words in the place of placeholders."""
    return re.sub(r"<[a-z]+>", lambda found: words[found[0]], text)


def rule_file(group: str, alerts: Iterable[Alert], note: str) -> str:
    """Render a rule file of one group."""
    lines = [f"# {note}", "groups:", f"- name: {group}", "  rules:"]
    for alert in alerts:
        lines += [f"  - alert: {alert.name}", f"    expr: {quoted(alert.expr)}"]
        if alert.for_m:
            lines.append(f"    for: {alert.for_m}m")
        if alert.keep_m:
            lines.append(f"    keep_firing_for: {alert.keep_m}m")
        lines += ["    labels:", f"      severity: {quoted(alert.severity)}"]
        lines += [f"      {name}: {quoted(value)}" for name, value in alert.labels.items()]
        lines.append("    annotations:")
        lines += [f"      {key}: {quoted(value)}" for key, value in notification(alert).items()]
    return "\n".join(lines) + "\n"


def test_file(rules: str, alerts: Iterable[Alert], note: str) -> str:
    """Render the promtool tests of a rule file, which is one directory up."""
    lines = [f"# {note}", "rule_files:", f"- ../{rules}", "evaluation_interval: 1m", "tests:"]
    for alert in alerts:
        for case in alert.cases:
            lines += _case_lines(alert, case)
    return "\n".join(lines) + "\n"


def _case_lines(alert: Alert, case: Case) -> list[str]:
    lines = [f"- name: {quoted(f'{alert.name} ({alert.severity}) {case.name}')}", "  interval: 1m"]
    lines.append("  input_series:" if case.series else "  input_series: []")
    for series, values in case.series.items():
        lines += [f"  - series: {quoted(series)}", f"    values: {quoted(values)}"]
    lines += ["  alert_rule_test:", f"  - eval_time: {case.at_m}m", f"    alertname: {alert.name}"]
    if case.labels is None:
        return lines
    lines += ["    exp_alerts:", "    - exp_labels:"]
    labels = {**case.labels, "severity": alert.severity, **alert.labels}
    lines += [f"        {name}: {quoted(value)}" for name, value in labels.items()]
    lines.append("      exp_annotations:")
    shown = notification(alert, case.says, case.text)
    lines += [f"        {key}: {quoted(_as_shown(value, labels))}" for key, value in shown.items()]
    return lines


def _as_shown(text: str, labels: Mapping[str, str]) -> str:
    """Fill in labels as Prometheus does."""
    text = text.replace(_CLUSTER, f"&var-cluster={labels['cluster']}" if "cluster" in labels else "")
    return re.sub(r"{{ \$labels\.([a-z_]+) }}", lambda found: labels.get(found[1], ""), text)


def quoted(text: str) -> str:
    """Write a YAML string: single quotes where double ones are in it, else as JSON, whose strings are YAML's."""
    if '"' in text and "\\" not in text and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)
