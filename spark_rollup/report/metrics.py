"""The rollup's metrics as data, and their Prometheus text: for a textfile collector or a Pushgateway. Values only.

An audit is a job that ends, so it cannot be scraped: it leaves `metrics.prom` beside its tables, whole or not at
all, and may push the same text. Namespace and pod of what was audited have their own label names, because
those of the scrape belong to the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from agent.contract.audited import AGENT, FLEET, FleetFinding, FleetIncident
from agent.contract.events import Severity
from agent.contract.incidents import step_of, summary_of
from agent.contract.wording import named
from spark_rollup import __version__
from spark_rollup.errors import UsageError
from spark_rollup.fleet.restarts import UNDECIDED
from spark_rollup.report.missed import missed
from spark_rollup.report.page import PageData
from spark_rollup.report.page.data import counts_as

FILE = "metrics.prom"
ROWS_LISTED = 500  # series of findings by task at most, the worst first
INCIDENTS_LISTED = 100  # incidents with a series each at most
PUSH_TIMEOUT_S = 10.0
_PUSH_PATH = "/metrics/job/statewarden-rollup"
_PUSH_HEADERS = {"Content-Type": "text/plain; version=0.0.4"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a run has to report."""

    data: PageData  # what the page shows
    rules: Mapping[str, Severity]
    """All rules by id, with the highest severity of each: their series exist whatever is found."""
    finished_us: int  # when the audit ended


Series = dict[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """One family, a gauge: its name, help, how it is read off the facts, labels, and whether alerts may rely on it."""

    name: str
    help: str
    read: Callable[[Facts], Series]
    unit: str = ""
    label_names: str = ""
    stability: str = "stable"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of labels, in the order of the values."""
        return tuple(self.label_names.split())


def _one(value: float) -> Series:
    return {(): float(value)}


def _by_rule(facts: Facts) -> Series:
    counts: Series = {
        (rule, severity.value, FLEET): 0.0
        for rule, highest in facts.rules.items()
        for severity in Severity
        if severity.rank <= highest.rank
    }
    for row in facts.data.open_findings():
        key = (str(row["detector"]), str(row["severity"]), str(row["reported_by"]))
        counts[key] = counts.get(key, 0.0) + 1
    return counts


def _by_task(facts: Facts) -> Series:
    of_task = ("namespace", "application_id", "task_id", "detector", "severity", "reported_by")
    counts = Counter(tuple(str(row[name] or "") for name in of_task) for row in facts.data.open_findings())
    worst = sorted(counts, key=lambda key: (-Severity(key[4]).rank, key))
    return {key: float(counts[key]) for key in worst[:ROWS_LISTED]}


def _incidents(facts: Facts) -> Series:
    counted = Counter(map(counts_as, facts.data.open_incidents()))
    return {(word,): float(counted[word]) for word in (*(x.value for x in Severity), UNDECIDED)}


def _incident_info(facts: Facts) -> Series:
    return {_names(one, facts.rules): 1.0 for one in _listed(facts)}


def _incident_text(facts: Facts) -> Series:
    return {(x.application_id, x.id, summary_of(x), step_of(x)): 1.0 for x in _listed(facts)}


def _listed(facts: Facts) -> list[FleetIncident]:
    # what agents report alone has alerts without this list: it must not keep out what only the audit knows
    return sorted(
        facts.data.open_incidents(), key=lambda x: (x.severity is not Severity.CRITICAL, x.lead.link.by_agent)
    )[:INCIDENTS_LISTED]


def _unlisted(facts: Facts) -> Series:
    return _one(max(0, len(facts.data.open_incidents()) - INCIDENTS_LISTED))


def _names(one: FleetIncident, rules: Collection[str]) -> tuple[str, ...]:
    cluster, _, namespace = one.namespace.rpartition("/")
    alert, lead, by_agent = _alert(one, rules), one.lead.detector, one.lead.link.by_agent
    return (
        cluster, namespace, one.application_id, one.id, named(one.like_the_lead), named(one.pods), alert,
        one.severity.value, one.confidence.value, AGENT if by_agent else FLEET, "" if alert == lead else lead,
    )  # fmt: skip


def _alert(one: FleetIncident, rules: Collection[str]) -> str:
    """Choose the rule whose alert an incident raises: the first of those that are as severe, so that it stays the same.

    An audit does not know what the one before it said. What has no alert is passed over, and an exposure and damage,
    whose tickets wait for different times, are not mixed.
    """
    if one.lead.link.by_agent:
        return one.lead.detector

    def said(found: FleetFinding) -> tuple[object, ...]:
        level = None if one.severity is Severity.CRITICAL else found.level
        return found.link.by_agent, found.status, found.severity, level

    own = {x.id for x in one.members}
    alike = (x.detector for _, x in one.findings if x.id in own and said(x) == said(one.lead))
    return next((name for name in alike if name in rules), one.lead.detector)


def _watched(facts: Facts) -> Series:
    span_s, unknown_s = facts.data.watched()
    return _one(1 - unknown_s / span_s) if span_s else {}


def _missing(facts: Facts) -> Series:
    found = facts.data.expected
    return {(what,): float(number) for what, number in found.counts().items()} if found else {}


def _missed(facts: Facts) -> Series:
    counts = missed(facts.data.coverage)
    return {(level.value,): float(counts.get(level, 0)) for level in (Severity.CRITICAL, Severity.WARNING)}


CATALOGUE: tuple[Metric, ...] = (
    Metric(
        "statewarden_rollup_last_success_timestamp_seconds",
        "When the last audit that succeeded ended.",
        lambda facts: _one(facts.finished_us / 1_000_000),
        "seconds",
    ),
    Metric(
        "statewarden_rollup_watermark_timestamp_seconds",
        "Up to when the last audit read events: the time of its newest event, or the configured end.",
        lambda facts: _one(facts.data.as_of_us / 1_000_000),
        "seconds",
    ),
    Metric(
        "statewarden_rollup_findings_open",
        "Open findings of the rule or, with reported_by=agent, of an agent's detector that no rule settles.",
        _by_rule,
        label_names="rule severity reported_by",
    ),
    Metric(
        "statewarden_rollup_task_findings",
        "Open findings of the task, the worst 500 series; no task = the application or pod.",
        _by_task,
        label_names="audited_namespace application_id task_id rule severity reported_by",
    ),
    Metric(
        "statewarden_rollup_incidents",
        "Open incidents of the fleet, by severity, or undecided.",
        _incidents,
        label_names="severity",
    ),
    Metric(
        "statewarden_rollup_incident_info",
        "An open incident of the fleet, by the finding that names it; rule: whose alert it is; the worst 100.",
        _incident_info,
        label_names="audited_cluster audited_namespace application_id incident_id tasks pods rule severity confidence "
        "reported_by named_by",
    ),
    Metric(
        "statewarden_rollup_incident_text",
        "Alert text and next step of each incident in statewarden_rollup_incident_info.",
        _incident_text,
        label_names="application_id incident_id summary next_step",
    ),
    Metric(
        "statewarden_rollup_incidents_unlisted",
        "Incidents not listed in statewarden_rollup_incident_info; the report has all.",
        _unlisted,
    ),
    Metric("statewarden_rollup_pods", "Pods in the input.", lambda facts: _one(len(facts.data.coverage))),
    Metric(
        "statewarden_rollup_missing",
        "Pods of --expect without an agent that is heard, and tasks that no pod has; absent without --expect.",
        _missing,
        label_names="what",
        stability="experimental",
    ),
    Metric(
        "statewarden_rollup_watched_ratio",
        "Share of the pods' time that was watched; absent without any.",
        _watched,
        "ratio",
    ),
    Metric(
        "statewarden_rollup_lost_events",
        "Events that agents numbered and that are not in the input.",
        lambda facts: _one(sum(row["lost_events"] for row in facts.data.coverage)),
        stability="experimental",
    ),
    Metric(
        "statewarden_rollup_missed_findings",
        "Open findings that agents count and that are not in the input.",
        _missed,
        label_names="severity",
        stability="experimental",
    ),
    Metric(
        "statewarden_rollup_quarantined_lines",
        "Lines and files of the input that could not be used.",
        lambda facts: _one(sum(facts.data.quarantine.values())),
    ),
    Metric(
        "statewarden_rollup_build_info",
        "Version of the rollup.",
        lambda facts: {(__version__,): 1.0},
        label_names="version",
    ),
)
"""Every family, in the order of the text and of the docs page."""


def render(facts: Facts) -> str:
    """Write the Prometheus text of a run."""
    lines: list[str] = []
    for metric in CATALOGUE:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} gauge"]
        for values, value in metric.read(facts).items():
            words = ",".join(f'{x}="{_escaped(y)}"' for x, y in zip(metric.labels, values, strict=True))
            lines.append(f"{metric.name}{{{words}}} {value!r}" if words else f"{metric.name} {value!r}")
    return "\n".join(lines) + "\n"


def write(facts: Facts, target: Path) -> None:
    """Write the text to a file, by a rename: a collector never reads half of it.

    Raises:
        UsageError: it cannot be written.
    """
    partial = target.with_name(f"_{target.name}.tmp")
    try:
        partial.write_text(render(facts), encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from error


def push(facts: Facts, url: str) -> None:
    """Replace what the Pushgateway at a base address holds of this job.

    Raises:
        UsageError: it did not take it; the audit itself is done and written.
    """
    parts = urlsplit(url)
    connect = {"http": HTTPConnection, "https": HTTPSConnection}.get(parts.scheme)
    if connect is None or not parts.netloc:
        raise UsageError(
            f"Pushgateway {url!r} must be an http or https address, such as http://localhost:9091"
        )
    connection = connect(parts.netloc, timeout=PUSH_TIMEOUT_S)
    try:
        connection.request(
            "PUT", f"{parts.path.rstrip('/')}{_PUSH_PATH}", render(facts).encode(), _PUSH_HEADERS
        )
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        raise UsageError(f"Pushgateway {url} refused the metrics: {error}") from error
    finally:
        connection.close()
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        raise UsageError(f"Pushgateway {url} refused the metrics: it answered {status}")


def _escaped(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
