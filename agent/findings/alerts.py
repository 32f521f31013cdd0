"""Which detector's alert an incident raises: it keeps its name while the incident lasts. Pure.

What is known of an incident grows, and another finding comes to name it. If its alert were called after that one each
time, the same incident would raise one alert after the other, and for a while two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from agent.contract.events import Level, Severity
from agent.contract.finding import Finding
from agent.contract.incidents import Configured, Incident
from agent.judging.base import DetectorMeta

WAIT_M = {Level.DAMAGE: 5, Level.EVENT: 5, Level.EXPOSURE: 15, Level.SELF: 15}
"""Minutes that a warning must last, by level: what a rolling restart shows for a while must not be a ticket."""

INFO_WAIT_M = 60

Names = dict[str, dict[str, str]]  # incident -> severity -> detector whose alert it raises

Waits = Callable[[str, Severity], int | None]
"""Detector, severity -> minutes until its alert; None = it has none of that severity."""


def alerted(highest: Severity) -> tuple[Severity, ...]:
    """List severities with an alert: critical and warning as far as a unit goes, info where it goes no further."""
    if highest is Severity.CRITICAL:
        return (Severity.CRITICAL, Severity.WARNING)
    return (highest,)


def wait_m(level: Level, severity: Severity, alert_after_m: int | None) -> int:
    """Return how many minutes something must last before its alert; what is critical pages at once."""
    if severity is Severity.CRITICAL:
        return 0
    return alert_after_m or (INFO_WAIT_M if severity is Severity.INFO else WAIT_M[level])


def waits(metas: Mapping[str, DetectorMeta]) -> Waits:
    """Look up the wait of a detector's alert."""

    def of(detector: str, severity: Severity) -> int | None:
        meta = metas.get(detector)
        if meta is None or severity not in alerted(meta.severity):
            return None
        return wait_m(meta.level, severity, meta.alert_after_m)

    return of


class AlertNames:
    """Remembers which detector's alert each incident raises."""

    def __init__(self) -> None:
        self.names: Names = {}

    def of(self, incidents: Iterable[Incident[Finding]], wait: Waits) -> dict[str, str]:
        """Name the alerts of all incidents that are shown; others are forgotten.

        A name stays as long as nothing is lost by it: what is more severe has another name, and so has what would
        raise its own alert sooner, such as damage after an exposure.

        `wait`: gives how soon an alert comes.
        """
        before, self.names = self.names, {}
        named = {}
        for incident in incidents:
            known = self.names.setdefault(incident.id, dict(before.get(incident.id, {})))
            lead = incident.lead.detector
            named[incident.id] = lead
            if (
                incident.configured_exposure is not Configured.NO
                and incident.severity is not Severity.CRITICAL
            ):
                continue  # for reading, and counted over all pods: no alert is about it alone
            kept = known.get(incident.severity.value)
            if kept is not None and _is_no_later(kept, lead, incident.severity, wait):
                named[incident.id] = kept
            else:
                known[incident.severity.value] = lead
        return named


def _is_no_later(kept: str, lead: str, severity: Severity, wait: Waits) -> bool:
    kept_m, lead_m = wait(kept, severity), wait(lead, severity)
    return kept_m is not None and (lead_m is None or kept_m <= lead_m)
