"""What a board consists of. Values only; nothing here knows Grafana's library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a panel shows its data."""

    STAT = "stat"
    SERIES = "timeseries"
    TABLE = "table"
    TIMELINE = "state-timeline"


class Meaning(StrEnum):
    """What the numbers of a panel mean: decides colours and words."""

    PLAIN = "plain"
    BAD_FROM_1 = "bad-from-1"
    WARN_FROM_1 = "warn-from-1"
    SEVERITY = "severity"
    HELD = "held"
    YES_NO = "yes-no"
    RESTART = "restart"
    SHARE = "share"
    AGE = "age"
    LIFE = "life"


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query and the legend of its series."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    kind: Kind
    title: str
    text: str  # what it means and what to do, shown on hover
    queries: tuple[Query, ...]
    width: int = 12
    height: int = 8  # in rows of the grid
    unit: str = "short"
    meaning: Meaning = Meaning.PLAIN
    empty: str = "no data"
    """What is shown while there is no data: silence must not seem a fault, nor a fault like silence."""


@dataclass(frozen=True, slots=True)
class Row:
    """A heading with the panels below it."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that is filled from a label; chained by the selectors in its query."""

    name: str
    label: str
    query: str


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard; `uid` is its address and never changes."""

    uid: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    since: str = "now-6h"


OF_CLUSTER = 'cluster=~"$cluster"'
"""Where one Prometheus has one cluster, nothing carries the label, and `.*` (All) matches that, too."""

OF_NAMESPACE = f'{OF_CLUSTER},namespace=~"$namespace"'
OF_APPLICATION = f'{OF_NAMESPACE},application_id=~"$application"'
OF_POD = f'{OF_NAMESPACE},pod=~"$pod"'
OF_TASK = f'{OF_APPLICATION},task_id=~"$task"'
"""Selectors of the boards."""

CLUSTER = Variable("cluster", "Cluster", "label_values(statewarden_agent_up, cluster)")
NAMESPACE = Variable(
    "namespace", "Namespace", f"label_values(statewarden_agent_up{{{OF_CLUSTER}}}, namespace)"
)
_TASKS = f"statewarden_tasks{{{OF_NAMESPACE}}}"
APPLICATION = Variable("application", "Application", f"label_values({_TASKS}, application_id)")
POD = Variable("pod", "Pod", f"label_values(statewarden_agent_up{{{OF_NAMESPACE}}}, pod)")
TASK = Variable("task", "Task", f"label_values(statewarden_task_severity{{{OF_APPLICATION}}}, task_id)")
"""Each is narrowed by those before it."""


def incidents_of(selector: str) -> str:
    """Ask for open incidents by their ids, the value being the severity (1 to 3), the worst first."""
    by = "cluster, namespace, application_id, pod, incident_id, tasks, detector, named_by, confidence, configured_exposure"
    return _ranked(
        lambda severity: f'max by ({by}) (statewarden_incident_info{{{selector},severity="{severity}"}})'
    )


def _ranked(ask: Callable[[str], str]) -> str:
    parts = (f"{3 - at} * {ask(severity)}" for at, severity in enumerate(("critical", "warning", "info")))
    return f"sort_desc({' or '.join(parts)})"


def open_incidents(selector: str, severity: str) -> str:
    """Ask for the number of open incidents of a severity; accepted ones do not count."""
    return f'sum(statewarden_incidents{{{selector},severity="{severity}"}}) or vector(0)'


def incident_row(selector: str, board: str) -> Row:
    """Make the row that every board begins with: how many incidents are open, and which."""
    what = (
        "One cause, one address, one next step; statewarden explain ID prints all of it. Its alert is the detector's; "
        "named_by names it by now, if another one does. Accepted ones raise no alert."
    )
    return Row(f"Incidents {board}", (
        Panel(Kind.STAT, "Critical incidents", "Each is one page: data is or becomes wrong until an operator acts.",
              (Query(open_incidents(selector, "critical")),), 4, 4, meaning=Meaning.BAD_FROM_1),
        Panel(Kind.STAT, "Warnings", "Each is one incident that needs an operator in working hours.",
              (Query(open_incidents(selector, "warning")),), 4, 4, meaning=Meaning.WARN_FROM_1),
        Panel(Kind.TABLE, "Open incidents", what, (Query(incidents_of(selector)),), 16, 8,
              meaning=Meaning.SEVERITY, empty="no incident is open"),
    ))  # fmt: skip


def worst_first(selector: str, labels: str) -> str:
    """Ask for findings by place and detector, the value being the severity (1 to 3), the worst first."""
    series = "statewarden_task_findings"
    return _ranked(
        lambda severity: f'(sum by ({labels}) ({series}{{{selector},severity="{severity}"}}) > bool 0)'
    )
