"""What an alert is, and how it reads as a Prometheus rule and as promtool tests. Values and text only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.contract.runbooks import address_of

RUNBOOKS = "https://example.com/statewarden"
DASHBOARDS = "https://example.com/grafana/d"
"""Bases of the links in the committed files: placeholders, which the chart or `sed` replaces.

The annotation `runbook` says how to read the page without any.
"""

INCIDENTS, FLEET_INCIDENTS = "statewarden_incident_info", "statewarden_rollup_incident_info"
"""Series of incidents, of agents and of the fleet audit."""

_CONFIRMED = '(printf `FAMILY{incident_id=%q,confidence="confirmed"}` $labels.incident_id | query)'
"""How sure an incident is changes while it lasts: as a label it would make an alert another one, beside the old one."""

_TASKS = (
    "{{ with printf `FAMILY{incident_id=%q}` $labels.incident_id | query }}"
    '{{ with . | first | label "tasks" }}task{{ if match ", " . }}s{{ end }} {{ . }} of {{ end }}{{ end }}'
)
"""The tasks of an incident change while it lasts: as a label they would make an alert another one each time."""

_LEAD = (
    '{{ $lead := "" }}{{ with printf `FAMILY{incident_id=%q}` $labels.incident_id | query }}'
    '{{ $lead = . | first | label "named_by" }}{{ end }}'
)
"""What names an incident changes while it lasts: the alert stays the same and says what it is by now."""

WHERE = {
    "<application>": "{{ $labels.application_id }}",
    "<namespace>": "{{ $labels.namespace }}",
    "<pod>": "{{ $labels.namespace }}/{{ $labels.pod }}",
    "<incident>": "{{ $labels.incident_id }}",
    "<release>": "{{ with $labels.release }}, Kafka Streams {{ . }}{{ end }}",
    "<tasks>": _TASKS.replace("FAMILY", INCIDENTS),
    "<audited>": _TASKS.replace("FAMILY", FLEET_INCIDENTS),
    "<count>": "{{ $value }}",
    "<lead>": "{{ $lead }}",
}
"""Placeholders of a description -> Prometheus template."""


@dataclass(frozen=True, slots=True)
class Case:
    """One promtool test of an alert.

    Args of the dataclass:
        series: Series -> values in promtool's notation, one per minute.
        at_m: When the alert is checked, minutes.
        labels: Labels of the alert that must fire (with what the rule adds); None = it must not.
        says: Placeholder -> text that the description must show.
        confirmed: Whether the incident is confirmed when the alert is checked.
    """

    name: str
    series: Mapping[str, str]
    at_m: int
    labels: Mapping[str, str] | None = None
    says: Mapping[str, str] = field(default_factory=dict)
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Args of the dataclass:
        name: CamelCase, beginning with Statewarden.
        severity: `critical` pages, `warning` is a ticket, `info` is for reading; `none` is the dead man's.
        keep_m: How long it stays after the series is gone, minutes.
        suspected: The description where the incident is not confirmed; empty = the same.
        led: The description where the finding of another unit names the incident by now, which is `<lead>`.
        description: Task, pod, bug, consequence, next safe action; with placeholders.
        runbook: What `statewarden explain` prints: `detectors/ID` or `rules/ID`.
        board: Uid of the dashboard to open.
    """

    name: str
    expr: str
    severity: str
    for_m: int
    summary: str
    description: str
    runbook: str
    board: str
    cases: tuple[Case, ...]
    keep_m: int = 0
    suspected: str = ""
    led: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def template(self) -> str:
        """Write the description as Prometheus takes it: by what names it now, how sure, and whose step comes first."""
        if not self.suspected:
            return fill(self.description, WHERE)
        texts = [self.led, self.description, self.suspected]
        if self.labels.get("reporter") == "agent":  # the audit has put together what belongs together
            texts = [_yielding(x) for x in texts]
        led, sure, unsure = (fill(x, WHERE) for x in texts)
        family = FLEET_INCIDENTS if self.labels.get("reporter") == "fleet" else INCIDENTS
        by_confidence = f"{{{{ else if {_CONFIRMED} }}}}{sure}{{{{ else }}}}{unsure}{{{{ end }}}}"
        return f"{_LEAD}{{{{ if $lead }}}}{led}{by_confidence}".replace("FAMILY", family)

    def said(self, words: Mapping[str, str], *, confirmed: bool = True) -> str:
        """Write the description as it reads with these words for the placeholders."""
        text = self.suspected if self.suspected and not confirmed else self.description
        if words.get("<lead>"):
            text = self.led
        if words.get("<first>"):
            text = f"{text.partition(_STEP)[0]}{_STEP}{_first(words['<first>'])}"
        return fill(text, words)


def notification(alert: Alert) -> dict[str, str]:
    """Everything that a notification shows; the links are attached here and nowhere else."""
    variables = [
        f"var-{name}={{{{ $labels.{label} }}}}"
        for name, label, word in _VARIABLES
        if word in alert.description
    ]
    board = f"{DASHBOARDS}/{alert.board}"
    return {
        "summary": alert.summary,
        "description": alert.template(),
        "runbook": f"statewarden explain {alert.runbook} (in any agent's container)",
        "runbook_url": f"{RUNBOOKS}/{address_of(alert.runbook, '.html')}",
        "dashboard_url": f"{board}?{'&'.join(variables)}" if variables else board,
    }


_VARIABLES = (
    ("namespace", "namespace", "<pod>"),
    ("namespace", "namespace", "<namespace>"),
    ("application", "application_id", "<application>"),
    ("pod", "pod", "<pod>"),
)
"""Variable of the boards, label that fills it, placeholder that shows that the alert has the label."""


_STEP = " Next: "
_FIRST = "{{ $first }}"
_ASKS_FIRST = (
    '{{ $first := "" }}{{ with printf `statewarden_incident_info{incident_id=%q}` $labels.incident_id | query }}'
    '{{ $first = . | first | label "do_first" }}{{ end }}'
)
"""As a label it would make an alert another one: beside it the old one, with the old step, would go on for a while."""


def _first(named: str) -> str:
    return f"first do what {named} asks for (`statewarden explain {named}`); remove nothing before."


def _yielding(text: str) -> str:
    """Let the step yield to that of the incident that comes first."""
    head, _, step = text.partition(_STEP)
    condition = f"{_ASKS_FIRST}{{{{ if $first }}}}{_first(_FIRST)}{{{{ else }}}}{step}{{{{ end }}}}"
    return f"{head}{_STEP}{condition}"


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
    shown = notification(alert)
    shown["description"] = alert.said(case.says, confirmed=case.confirmed)
    lines += [f"        {key}: {quoted(_as_shown(value, labels))}" for key, value in shown.items()]
    return lines


def _as_shown(text: str, labels: Mapping[str, str]) -> str:
    """Fill in labels as Prometheus does."""
    return re.sub(r"{{ \$labels\.([a-z_]+) }}", lambda found: labels.get(found[1], ""), text)


def quoted(text: str) -> str:
    """Write a YAML string: single quotes where double ones are in it, else as JSON, whose strings are YAML's."""
    if '"' in text and "\\" not in text and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)
