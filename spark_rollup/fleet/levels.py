"""What an agent says is open, by its newest heartbeat, against the findings that are in the input. About one pod.

A finding is an event, and an event can be lost, or be older than the input. A heartbeat counts what is open: where it
counts more than is known here, "nothing found" means unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from agent.contract import events as contract
from agent.contract import finding
from agent.contract.events import Affected, Confidence, Kind, Severity, Status
from agent.contract.levels import Counted
from spark_rollup.fleet.beats import LastWord, Level
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.rows import Entry, Heard, Said


def last_words(events: Iterable[Event]) -> list[Said]:
    """Keep the last word about each finding. A repetition is the same word: it was said when it was said first."""
    findings = (x for x in events if x.kind == Kind.FINDING.value and not x.routine)
    last = finding.last_words(
        findings, lambda x: x.finding_id, lambda x: (x.boot_id, x.sequence, x.observed_at_us)
    )
    return [_said(x) for x in last]


def _said(x: Event) -> Said:
    return Said(
        x.finding_id or "", x.detector or "",
        level=_known(x.level, contract.Level, contract.Level.EVENT),
        severity=_known(x.severity, Severity, Severity.WARNING),
        confidence=_known(x.confidence, Confidence, Confidence.UNKNOWN),
        status=_known(x.status, Status, Status.OPEN),
        task_id=x.task_id, store=x.store, pod=x.pod, identity=x.identity,
        opened_at_us=x.opened_at_us or 0,
        observed_at_us=x.observed_at_us if x.said_us is None else x.said_us,
        resolved_at_us=x.resolved_at_us, upstream=x.upstream,
        affected=_known(x.affected, Affected, Affected.POSSIBLY),
        missing_facts=x.missing_facts, summary=x.summary or "",
        # an agent of another version may leave parts out
        evidence=[Entry(one.at or "", one.what or "", one.where or "") for one in x.evidence or ()],
        next_action=x.next_action or "", mechanism=x.mechanism, incident_id=x.incident_id,
        application_id=x.application_id, heard_us=x.observed_at_us, heard_boot=x.boot_id, heard_sequence=x.sequence,
        remedy=x.remedy,
    )  # fmt: skip


def _known(word: str | None, values: type[StrEnum], default: StrEnum) -> str:
    """Read a word that this version may not know: a newer minor version of the contract may add some."""
    return word if word in {value.value for value in values} else default.value


def settled(said: Iterable[Said], counted: Iterable[Counted]) -> list[Said]:
    """Close open findings that a later heartbeat of the same boot no longer names: the event of their end is lost."""
    of_boot = {x.boot: x for x in counted}

    def one(x: Said) -> Said:
        level = of_boot.get(x.heard_boot)
        is_urgent = x.status == Status.OPEN.value and x.severity != Severity.INFO.value
        if level is None or not is_urgent or not level.ends(x.finding_id, x.heard_boot, x.heard_sequence):
            return x
        return x._replace(
            status=Status.RESOLVED.value, resolved_at_us=level.at_us, observed_at_us=level.at_us
        )

    return [one(x) for x in said]


def heard(
    pod: str, last: LastWord, level: Level, counted: Counted | None, said: Iterable[Said], seen: int
) -> Heard:
    """Say what a pod's agent counts as open and what of that is not known; `seen`: how many tasks its events name.

    Of findings that were resolved later than the heartbeat it is known that they were open.
    """
    known = [
        x for x in said
        if x.severity != Severity.INFO.value and (
            x.status == Status.OPEN.value
            or (counted is not None and counted.is_before(x.heard_boot, x.heard_sequence, x.heard_us))
        )
    ]  # fmt: skip
    ids = {x.finding_id for x in known}
    criticals = {x.finding_id for x in known if x.severity == Severity.CRITICAL.value}
    more = counted.missed(criticals, ids) if counted else (0, 0)
    open_ids = counted.ids if counted else ()
    missed = list(dict.fromkeys(x for x in open_ids if x not in ids))
    return Heard(
        pod, last.last_us, last.stopped, level.boot_us, level.us, *more, missed,
        max((level.tasks or 0) - seen, 0), level.tasks, open_ids,
    )  # fmt: skip
