"""The ledger: verdicts over time -> findings with a stable id. Pure; the time is an argument."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agent.contract.digest import hex_digest
from agent.contract.events import Confidence, Level, Severity, Status
from agent.contract.finding import Finding
from agent.findings.alerts import AlertNames
from agent.findings.lineage import Lineage
from agent.findings.proof import decides, with_proof
from agent.judging.base import DetectorMeta, Evidence, Kind, Remedy, Verdict

CLOSED_KEPT = 512  # resolved findings that are remembered, so that an episode is not reported twice


class Place(NamedTuple):
    """Whom a judgement was about; two judgements of one detector on one place replace each other."""

    detector: str
    application_id: str
    task_id: str | None


class Reported(NamedTuple):
    """How many findings were reported, and the id of the newest."""

    times: int
    newest_id: str


_Key = tuple[Place, str | None, str]  # place, store, subject: what makes two verdicts the same finding


class Ledger:
    """Keeps findings; given what every judgement said, it says what changed."""

    def __init__(self) -> None:
        self._findings: dict[_Key, Finding] = {}
        # tuples of few: a set takes 216 bytes, and of a few thousand tasks each may have one
        self._open_at: dict[Place, tuple[_Key, ...]] = {}
        self._still_reported: dict[Place, set[_Key]] = {}  # closed, and the verdict goes on
        self._closed: dict[_Key, None] = {}  # may be forgotten, oldest first
        self._reported: dict[tuple[str, str, Severity], Reported] = {}
        self._pending: dict[tuple[str, str | None], tuple[str, ...]] = {}
        self._lineage = Lineage()
        self._by_id: dict[str, _Key] = {}
        self.alert_names = AlertNames()
        self.set_aside: list[tuple[Place, str, Finding]] = []
        """Open findings of disabled detectors; `resolved_at_us`: when they were said to be closed."""
        self.read_once_us: int | None = None
        """When a directory was read for one answer. What opens then opened for the reader only: no id may depend on
        it, so that two readings of a directory name the same things alike. None = it is watched."""

    def settle(
        self,
        meta: DetectorMeta,
        place: Place,
        verdicts: Iterable[Verdict],
        now_us: int,
        identities: frozenset[str] | None = None,
        ended_us: Sequence[int] = (),
        closed_us: int | None = None,
    ) -> list[Finding]:
        """Take what a detector said of a place.

        `identities`: RocksDB identities that exist at the place now; None = unknown, nothing is replaced.
        `ended_us`: when processes of the application ended. `closed_us`: when the task was last closed in order, if
        no process holds it since. Gives findings that opened, changed or were resolved, in that order.
        """
        changed: list[Finding] = []
        held: set[_Key] = set()
        for verdict in verdicts:
            key = (place, verdict.store, verdict.subject)
            held.add(key)
            finding = self._apply_verdict(meta, place, key, verdict, now_us, ended_us, identities)
            if finding is not None:
                changed.append(finding)
        if place in self._open_at:
            changed += self._resolve(meta, place, held, now_us, identities, closed_us)
        self._note_reported(place, held)
        self._note_pending(place)
        return changed

    def pending(self, application_id: str, task_id: str | None) -> Collection[str]:
        """List the detectors of which something waits there for a verdict or for its end; others need not settle."""
        return self._pending.get((application_id, task_id), ())

    def open_about(self, application_id: str, task_id: str | None) -> list[Finding]:
        """List what is open about a task, or about an application, by detector."""
        places = [
            Place(name, application_id, task_id) for name in sorted(self.pending(application_id, task_id))
        ]
        return [
            self._findings[key] for place in places for key in sorted(self._open_at.get(place, ()), key=str)
        ]

    def withdraw(self, place: Place, finding: Finding, other: Finding, now_us: int) -> Finding:
        """Close an open finding because another one reports the same damage.

        Gives it, as it ended.
        """
        step = Evidence(now_us, f"reported by {other.detector} from here on", f"finding {other.id}")
        key = next(x for x in self._open_at[place] if self._findings[x].id == finding.id)
        ended = replace(
            finding, status=Status.RESOLVED, resolved_at_us=now_us, evidence=(*finding.evidence, step)
        )
        self._findings[key] = ended
        self._closed[key] = None
        self._note_closed(place, key)
        self._note_pending(place)
        return ended

    def put_back(self, application_id: str, task_id: str, identity: str, now_us: int) -> list[Finding]:
        """Open again what closed because its store was gone, which is there again: no detector need remember it."""
        there = frozenset({identity})
        where = (application_id, task_id)
        keys = [x for x in self._closed if x[0][1:] == where and _is_back(self._findings[x], there)]
        for key in keys:
            known = _put_back(self._findings[key], now_us)
            self._findings[key] = replace(known, status=Status.OPEN, resolved_at_us=None)
            del self._closed[key]
            self._note_open(key[0], key)
            self._note_pending(key[0])
        return [self._findings[x] for x in keys]

    def open_findings(self) -> list[Finding]:
        """List findings that are open, in the order in which they opened."""
        return [x for x in self._findings.values() if x.status is Status.OPEN]

    def reported(self) -> Mapping[tuple[str, str, Severity], Reported]:
        """Count by (application, detector, severity at its opening) what was reported since the start."""
        return self._reported

    def closed_since(self, at_us: int) -> list[Finding]:
        """List remembered findings that were resolved at a time or later."""
        return [
            x for x in self._findings.values() if x.resolved_at_us is not None and x.resolved_at_us >= at_us
        ]

    def findings(self) -> list[Finding]:
        """List all remembered findings, each in its final state, in the order in which they opened."""
        return sorted(self._findings.values(), key=lambda x: (x.opened_at_us, x.detector, x.task_id or ""))

    def remembered(self) -> list[tuple[Place, str, Finding]]:
        """List (place, subject, finding) of everything: what a restarted agent needs to go on."""
        known = [(place, subject, finding) for (place, _, subject), finding in self._findings.items()]
        return known + self.set_aside

    def resume(self, place: Place, subject: str, finding: Finding) -> None:
        """Take back one finding of an earlier run; an open one stays open since when it was."""
        key = (place, finding.store, subject)
        self._lineage.remember(finding, finding.incident_id)
        self._findings[key] = finding
        self._by_id[finding.id] = key
        if finding.status is Status.OPEN:
            self._note_open(place, key)
        else:
            self._closed[key] = None
        self._note_pending(place)

    def _note_pending(self, place: Place) -> None:
        where = (place.application_id, place.task_id)
        others = tuple(x for x in self._pending.pop(where, ()) if x != place.detector)
        if place in self._open_at or place in self._still_reported:
            others = (*others, place.detector)
        if others:
            self._pending[where] = others

    def _note_open(self, place: Place, key: _Key) -> None:
        self._open_at[place] = (*self._open_at.get(place, ()), key)

    def _note_closed(self, place: Place, key: _Key) -> None:
        left = tuple(x for x in self._open_at.pop(place) if x != key)
        if left:
            self._open_at[place] = left

    def _apply_verdict(
        self,
        meta: DetectorMeta,
        place: Place,
        key: _Key,
        verdict: Verdict,
        now_us: int,
        ended_us: Sequence[int],
        identities: frozenset[str] | None,
    ) -> Finding | None:
        known = self._findings.get(key)
        if known is None:
            opened = _open(meta, place, verdict, self.read_once_us)
            if self.read_once_us is not None and opened.id in self._by_id:
                # two segments of one store
                opened = replace(opened, id=_hashed((opened.id, verdict.subject)))
            finding = self._with_incident(key, opened, ended_us)
            what = (place.application_id, meta.id, finding.severity)
            self._reported[what] = Reported(
                self._reported[what].times + 1 if what in self._reported else 1, finding.id
            )
            if meta.kind is Kind.EVENT:
                finding = replace(finding, status=Status.RESOLVED, resolved_at_us=now_us)
            else:
                self._note_open(place, key)
            self._findings[key] = finding
            return finding
        if known.status is Status.RESOLVED:
            if not _comes_and_goes(meta, known):
                if not _is_back(known, identities):
                    return None
                known = _put_back(known, now_us)
            known = replace(known, status=Status.OPEN, resolved_at_us=None)
            self._closed.pop(key, None)
            self._note_open(place, key)
        updated = _update(meta, place, known, verdict)
        if updated == self._findings[key]:
            return None
        self._findings[key] = updated
        return updated

    def _with_incident(self, key: _Key, finding: Finding, ended_us: Sequence[int]) -> Finding:
        before = max((x for x in ended_us if x <= finding.opened_at_us), default=None)
        finding = replace(finding, process_ended_at_us=before)
        known = self._by_id.get(self._lineage.latest(finding) or "")  # None = forgotten, or there was none
        latest = self._findings[known] if known is not None else None
        since_us = finding.opened_at_us if before is None else before
        goes_on = latest is not None and (latest.resolved_at_us is None or latest.resolved_at_us >= since_us)
        self._by_id[finding.id] = key
        return replace(finding, incident_id=self._lineage.assign(finding, goes_on=goes_on))

    def _resolve(
        self,
        meta: DetectorMeta,
        place: Place,
        held: set[_Key],
        now_us: int,
        identities: frozenset[str] | None,
        closed_us: int | None,
    ) -> list[Finding]:
        resolved: list[Finding] = []
        for key in sorted({*self._open_at[place]} - held, key=lambda x: (x[1] or "", x[2])):
            known = self._findings[key]
            stays = not _comes_and_goes(meta, known)
            if stays and not _is_replaced(known, identities):
                continue
            end = _replacement(known, now_us) if stays else _expiry(known, closed_us)
            self._findings[key] = replace(
                known, status=Status.RESOLVED, resolved_at_us=now_us, evidence=(*known.evidence, *end)
            )
            self._note_closed(place, key)
            self._closed[key] = None
            resolved.append(self._findings[key])
        return resolved

    def _note_reported(self, place: Place, held: set[_Key]) -> None:
        """A closed finding that is still reported must be remembered: it would be reported as a new one otherwise."""
        known = {key for key in held if self._findings[key].status is Status.RESOLVED}
        for key in self._still_reported.pop(place, set()) - held:
            self._closed[key] = None
        for key in known:
            self._closed.pop(key, None)
        if known:
            self._still_reported[place] = known
        while self._closed and len(self._closed) + len(self._still_reported) > CLOSED_KEPT:
            oldest = next(iter(self._closed))
            self._by_id.pop(self._findings[oldest].id, None)
            del self._closed[oldest], self._findings[oldest]


def _comes_and_goes(meta: DetectorMeta, finding: Finding) -> bool:
    """Return whether a finding lasts while it is reported; so does an exposure that a detector of damage reports."""
    is_before_damage = meta.level is Level.DAMAGE and finding.level is Level.EXPOSURE
    return meta.kind is Kind.CONDITION or (meta.kind is Kind.DAMAGE and is_before_damage)


def _expiry(finding: Finding, closed_us: int | None) -> tuple[Evidence, ...]:
    """Say that an orderly close ended a suspicion: of an exposure only, as no close takes damage back."""
    suspected = finding.level is Level.EXPOSURE and finding.confidence is Confidence.SUSPECTED
    known_us = max((finding.opened_at_us, *(step.at_us for step in finding.evidence)))
    if not suspected or closed_us is None or closed_us <= known_us:
        return ()  # what began with a close, or was seen after it, is not ended by it
    task = f"{finding.application_id}/{finding.task_id}"
    return (Evidence(closed_us, "the task was closed in order: what was suspected ended with it", task),)


def _seen(finding: Finding, how: str, now_us: int) -> Evidence:
    what = f"the damaged store is {how} (RocksDB IDENTITY {finding.identity})"
    return Evidence(now_us, what, f"{finding.application_id}/{finding.task_id}")


def _replacement(finding: Finding, now_us: int) -> tuple[Evidence, ...]:
    return (_seen(finding, "gone from disk", now_us),)


def _is_back(finding: Finding, identities: frozenset[str] | None) -> bool:
    """Return whether the incarnation whose end closed a finding is there again: a backup, a directory moved back."""
    is_there = identities is not None and finding.identity in identities
    return is_there and finding.evidence[-1:] == _replacement(finding, finding.resolved_at_us or 0)


def _put_back(finding: Finding, now_us: int) -> Finding:
    """Say that it is back instead of that it was gone: moving it often must not make the finding long."""
    back = _seen(finding, "back on disk", now_us)
    kept = tuple(step for step in finding.evidence[:-1] if step.what != back.what)
    return replace(finding, evidence=(*kept, back))


def _is_replaced(finding: Finding, identities: frozenset[str] | None) -> bool:
    return identities is not None and finding.identity is not None and finding.identity not in identities


def _open(meta: DetectorMeta, place: Place, verdict: Verdict, read_once_us: int | None = None) -> Finding:
    is_of_reading = read_once_us is not None and verdict.opened_at_us >= read_once_us
    parts = (
        meta.id, place.application_id, place.task_id or "", verdict.store or "",
        verdict.began_with or verdict.identity or verdict.subject, "" if is_of_reading else str(verdict.opened_at_us),
    )  # fmt: skip
    is_ahead = verdict.level is Level.EXPOSURE
    next_action = with_proof(
        verdict.step(meta), meta, verdict.confidence, place.application_id, place.task_id, verdict.store,
        is_ahead=is_ahead,
    )  # fmt: skip
    remedy = verdict.remedy_by(meta)
    if remedy is Remedy.RESTORE and not is_ahead and decides(meta, verdict.confidence, place.task_id):
        remedy = Remedy.CHECK_FIRST
    own = verdict.upstream or verdict.mechanism
    return Finding(
        id=_hashed(parts), detector=meta.id, level=verdict.level or meta.level, severity=verdict.severity,
        confidence=verdict.confidence, status=Status.OPEN, application_id=place.application_id,
        task_id=place.task_id, store=verdict.store, identity=verdict.identity, opened_at_us=verdict.opened_at_us,
        resolved_at_us=None, upstream=verdict.upstream if own else tuple(x.key for x in meta.upstream),
        affected=verdict.affected, missing_facts=verdict.missing_facts, summary=verdict.summary,
        evidence=tuple(sorted(verdict.evidence, key=lambda step: step.at_us)), next_action=next_action,
        mechanism=verdict.mechanism.slug if verdict.mechanism else meta.mechanism_slug, lasting=verdict.lasting,
        remedy=remedy,
    )  # fmt: skip


def _hashed(parts: Sequence[str]) -> str:
    return hex_digest("\x00".join(parts).encode(errors="surrogateescape"))[:16]


def _update(meta: DetectorMeta, place: Place, known: Finding, verdict: Verdict) -> Finding:
    """Refresh a finding; damage never gets quieter nor less sure.

    What decided earlier stays in the evidence, but for what the verdict now says of the same moment in the same file.
    """
    stays = meta.kind is Kind.DAMAGE and not _comes_and_goes(meta, known)
    if stays and verdict.severity.rank < known.severity.rank:
        return known
    if stays and verdict.severity is known.severity and known.confidence is Confidence.CONFIRMED:
        return known  # what proved it may be gone since
    if meta.refreshed and verdict.summary != known.summary:
        fresh = _open(meta, place, verdict)
        known = replace(
            known, summary=verdict.summary, evidence=verdict.evidence, missing_facts=verdict.missing_facts,
            next_action=fresh.next_action, remedy=fresh.remedy,
        )  # fmt: skip
    if all(getattr(verdict, x) == getattr(known, x) for x in ("severity", "confidence", "store", "lasting")):
        return known
    read_again = {(step.at_us, step.where) for step in verdict.evidence}
    earlier = tuple(step for step in known.evidence if (step.at_us, step.where) not in read_again)
    fresh = _open(meta, place, verdict)
    return replace(
        fresh, id=known.id, identity=known.identity, opened_at_us=known.opened_at_us, upstream=known.upstream,
        incident_id=known.incident_id, process_ended_at_us=known.process_ended_at_us,
        evidence=tuple(sorted((*earlier, *verdict.evidence), key=lambda step: step.at_us)),
    )  # fmt: skip
