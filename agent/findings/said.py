"""What was said of findings, and when: an open one is said again and again, or who lost one event never knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.reporting import OPEN_IDS, REPEAT_S

REPEAT_US = REPEAT_S * 1_000_000
AT_ONCE = 500  # so many are repeated with one heartbeat: thousands that are open take some minutes


class Said:
    """When each open finding was said for the first time, in its present words, and when for the last time."""

    def __init__(self) -> None:
        self.first_us: dict[str, int] = {}
        """By id, when the present words were said first; a restarted agent goes on with it."""
        self._last_us: dict[str, int] = {}

    def note(self, finding: Finding, now_us: int) -> None:
        """Take down that a finding is said now, and that it is news."""
        if finding.status is Status.OPEN:
            self.first_us[finding.id] = self._last_us[finding.id] = now_us
        else:
            self.first_us.pop(finding.id, None)
            self._last_us.pop(finding.id, None)

    def due(self, open_: Iterable[Finding], now_us: int) -> list[dict[str, object]]:
        """Take the findings to say again: bodies of `finding` records, those not said since the start first."""
        waiting = (x for x in open_ if now_us - self._last_us.get(x.id, now_us - REPEAT_US) >= REPEAT_US)
        bodies: list[dict[str, object]] = []
        for finding in islice(waiting, AT_ONCE):
            self._last_us[finding.id] = now_us
            bodies.append(
                finding.body() | {"said_us": self.first_us.setdefault(finding.id, finding.opened_at_us)}
            )
        return bodies

    def shift(self, by_us: int) -> None:
        """Move the times from which repetitions count: the clock was set."""
        self._last_us = {id_: at_us + by_us for id_, at_us in self._last_us.items()}


def level_of(open_: Iterable[Finding]) -> Mapping[str, object]:
    """Count what is open and needs an operator, as a heartbeat says it."""
    ids: dict[Severity, list[str]] = {Severity.CRITICAL: [], Severity.WARNING: []}
    for finding in open_:
        if finding.severity in ids:
            ids[finding.severity].append(finding.id)
    criticals, warnings = ids[Severity.CRITICAL], ids[Severity.WARNING]
    return {
        "open_criticals": len(criticals),
        "open_warnings": len(warnings),
        "open_ids": [*criticals, *warnings][:OPEN_IDS],
    }
