"""Findings and settings -> the rows that pages are made of: incidents, and exposures by release or settings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from agent.contract.alert_text import step_of, summary_of
from agent.contract.events import Status
from agent.contract.finding import Finding
from agent.contract.incidents import Accepts, Configured, Incident
from agent.contract.wording import named
from agent.publish.snapshot import Counts, IncidentRow

INCIDENTS_LISTED = 100  # incidents with a series each at most; what is left out is counted in one series


def incident_rows(
    incidents: Sequence[Incident[Finding]], names: Mapping[str, str] | None = None
) -> tuple[tuple[IncidentRow, ...], int]:
    """List incidents: what raises an alert before what is for reading only, the worst first.

    `incidents`: in the order of people, who see what is over and what the agent does not know last. `names`:
    incident[Finding] -> detector whose alert it raises; without one that of its lead. Gives the rows, and how many
    incidents are in none of them.
    """
    listed = sorted(incidents, key=lambda x: (x.configured_exposure is not Configured.NO, -x.severity.rank))[
        :INCIDENTS_LISTED
    ]
    rows = tuple(_row(x, (names or {}).get(x.id, x.lead.detector)) for x in listed)
    return rows, len(incidents) - len(listed)


def counts(incidents: Iterable[Incident[Finding]]) -> Mapping[tuple[str, str, bool], int]:
    """Count open incidents by application and severity, accepted ones by themselves."""
    return Counter(
        (x.application_id, x.severity.value, x.is_accepted) for x in incidents if x.status is Status.OPEN
    )


def exposures(
    findings: Iterable[Finding], tasks: Mapping[str, int], accepts: Accepts, release: Callable[[str], str]
) -> Counts:
    """Count the tasks that are exposed by release or settings.

    `tasks`: application that is there -> task directories that it has. `release`: application -> the releases that
    it may run. What is about the application as a whole concerns all its tasks.
    """
    exposed: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for finding in findings:
        if finding.lasting:
            exposed[finding.application_id, finding.detector].add(finding.task_id)
    return {
        (name, detector, release(name), "true" if detector in accepts(name) else "false"): (
            tasks.get(name, 0) if None in found else len(found)
        )
        for (name, detector), found in sorted(exposed.items())
    }


def _row(incident: Incident[Finding], alert: str) -> IncidentRow:
    lead = incident.lead.detector
    return IncidentRow(
        incident.application_id, incident.id, named(incident.like_the_lead), alert, incident.severity,
        incident.confidence, incident.lead.level, incident.configured_exposure, incident.do_first,
        "" if alert == lead else lead, summary_of(incident), step_of(incident),
    )  # fmt: skip
