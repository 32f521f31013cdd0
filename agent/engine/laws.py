"""A law yields to a detector of a known fault that reports the same damage: one cause, one finding."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agent.contract.events import Level, Severity
from agent.contract.finding import Finding
from agent.findings.ledger import Ledger, Place
from agent.judging.base import Detector, Verdict


def laws_last(detectors: Iterable[Detector]) -> list[Detector]:
    """Put detectors into the order in which they are judged: what laws yield to is settled before them."""
    return sorted(detectors, key=lambda detector: detector.meta.is_law)


def give_way(
    ledger: Ledger, place: Place, verdicts: Iterable[Verdict], judged_before: Collection[str], now_us: int
) -> tuple[list[Verdict], list[Finding]]:
    """Take out what another detector reports already.

    `ledger`: its findings of the law that others report by now are closed. `place`: the law, and whom it judged.
    `judged_before`: detectors that it yields to; those behind it yield to it. Gives what it says all the same, and
    what was closed.
    """
    known = ledger.open_about(place.application_id, place.task_id)
    others = [finding for finding in known if finding.detector in judged_before]
    closed = [
        ledger.withdraw(place, finding, other, now_us)
        for finding in known
        if finding.detector == place.detector and (other := _same_damage(finding, others))
    ]
    return [x for x in verdicts if not x.gives_way or _same_damage(x, others) is None], closed


def _same_damage(said: Verdict | Finding, findings: Iterable[Finding]) -> Finding | None:
    """Return the finding about the same store, or the whole task, that reports damage at least as severe."""
    for known in findings:
        is_same_store = None in (known.store, said.store) or known.store == said.store
        is_damage = known.level is Level.DAMAGE and known.severity is not Severity.INFO
        if is_same_store and is_damage and known.severity.rank >= said.severity.rank:
            return known
    return None
