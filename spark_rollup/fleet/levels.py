"""What an agent says is open, by its newest heartbeat, against the findings that are in the input. About one pod.

A finding is an event, and an event can be lost, or be older than the input. A heartbeat counts what is open: where it
counts more than is known here, "nothing found" means unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from agent.contract import finding
from agent.contract.events import Affected, Confidence, Kind, Level, Severity, Status
from spark_rollup.fleet.beats import LastWord
from spark_rollup.fleet.beats import Level as Counts
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
        level=_known(x.level, Level, Level.EVENT),
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


def settled(said: Iterable[Said], level: Counts, open_ids: Sequence[str]) -> list[Said]:
    """Close open findings that a later heartbeat of the same boot no longer names: the event of their end is lost.

    An agent that was restarted may have forgotten them: what an earlier boot said last stays as it was.
    """
    said = list(said)
    last, at_us = level.last, level.us
    if last is None or at_us is None or len(open_ids) != _total(level):
        return said
    return [
        x._replace(status=Status.RESOLVED.value, resolved_at_us=at_us, observed_at_us=at_us)
        if x.status == Status.OPEN.value and x.severity != Severity.INFO.value and x.heard_boot == level.boot_id
        and x.heard_sequence < last and x.finding_id not in open_ids
        else x
        for x in said
    ]  # fmt: skip


def _total(level: Counts) -> int | None:
    if level.criticals is None or level.warnings is None:
        return None
    return level.criticals + level.warnings


def heard(
    pod: str, last: LastWord, level: Counts, open_ids: Sequence[str], said: Iterable[Said], seen: int
) -> Heard:
    """Say what a pod's agent counts as open and what of that is not known; `seen`: how many tasks its events name.

    Of findings that were resolved later than the heartbeat it is known that they were open. Where a heartbeat names
    fewer ids than it counts, the counts decide.
    """
    known = [
        x for x in said
        if x.severity != Severity.INFO.value and (x.status == Status.OPEN.value or _is_later(x, level))
    ]  # fmt: skip
    ids = {x.finding_id for x in known}
    criticals = {x.finding_id for x in known if x.severity == Severity.CRITICAL.value}
    first = open_ids if level.criticals is None else open_ids[: max(level.criticals, 0)]
    more = _missing(level.criticals, first, criticals)
    both = _missing(_total(level), open_ids, ids)
    missed = list(dict.fromkeys(x for x in open_ids if x not in ids))
    return Heard(
        pod, last.last_us, last.stopped, level.boot_us, level.us, more, max(both - more, 0), missed,
        max((level.tasks or 0) - seen, 0), level.tasks, open_ids,
    )  # fmt: skip


def _is_later(x: Said, level: Counts) -> bool:
    if level.us is None or level.last is None:
        return False
    return x.heard_sequence > level.last if x.heard_boot == level.boot_id else x.heard_us >= level.us


def _missing(number: int | None, ids: Iterable[str], known: Collection[str]) -> int:
    """Return how many of so many, some of which are named, are not known; 0 where nothing was counted."""
    return max((number or 0) - len(known), len(set(ids) - set(known)), 0)
