"""Recording rules: what the fleet board asks over every pod at every refresh, computed once."""

from __future__ import annotations

from tools.alerts.model import quoted

RECORDED = {
    "cluster_namespace_application:statewarden_task_severity:max": (
        "max by (cluster, namespace, application_id) (statewarden_task_severity)"
    ),
    "cluster_namespace_application:statewarden_tasks:sum": "sum by (cluster, namespace, application_id) (statewarden_tasks)",
    "cluster_namespace_application_detector_severity:statewarden_findings_open:sum": (
        "sum by (cluster, namespace, application_id, detector, severity) (statewarden_findings_open > 0)"
    ),
}
"""Recorded series -> what it is made of."""


def recording_file(note: str) -> str:
    """Render the rule file."""
    lines = [f"# {note}", "groups:", "- name: statewarden-recording", "  rules:"]
    for name, expr in RECORDED.items():
        lines += [f"  - record: {name}", f"    expr: {quoted(expr)}"]
    return "\n".join(lines) + "\n"


def recording_tests(note: str) -> str:
    """Render a promtool test: two pods of one application in one cluster give one series each."""
    severity, tasks, findings = RECORDED
    common = 'cluster="north",namespace="shop",application_id="orders"'
    both = 'detector="torn-store",severity="warning"'
    series = {
        f'statewarden_task_severity{{{common},pod="orders-0",task_id="0_0"}}': "0x9",
        f'statewarden_task_severity{{{common},pod="orders-1",task_id="0_1"}}': "3x9",
        f'statewarden_tasks{{{common},pod="orders-0"}}': "4x9",
        f'statewarden_tasks{{{common},pod="orders-1"}}': "5x9",
        f'statewarden_findings_open{{{common},pod="orders-0",{both}}}': "1x9",
        f'statewarden_findings_open{{{common},pod="orders-1",{both}}}': "2x9",
        f'statewarden_findings_open{{{common},pod="orders-1",detector="orphaned-task",severity="info"}}': "0x9",
    }
    expected = {
        severity: (f"{severity}{{{common}}}", 3),
        tasks: (f"{tasks}{{{common}}}", 9),
        findings: (f"{findings}{{{common},{both}}}", 3),
    }
    lines = [f"# {note}", "rule_files:", "- ../recording.rules.yaml", "evaluation_interval: 1m", "tests:"]
    lines += ["- interval: 1m", "  input_series:"]
    for name, values in series.items():
        lines += [f"  - series: {quoted(name)}", f"    values: {quoted(values)}"]
    lines.append("  promql_expr_test:")
    for expr, (labels, value) in expected.items():
        lines += [f"  - expr: {quoted(expr)}", "    eval_time: 5m", "    exp_samples:"]
        lines += [f"    - labels: {quoted(labels)}", f"      value: {value}"]
    return "\n".join(lines) + "\n"
