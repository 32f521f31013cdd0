"""Steps 5 and 6: ask every detector of a scope, and settle what they say. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from agent.contract.events import Confidence, Level, Severity
from agent.contract.finding import Finding
from agent.detectors.undecided import META as UNDECIDED
from agent.engine.profiles import Profiles
from agent.engine.unchanged import ALL, Around, NotedCase, NotedSettings, Unchanged, around
from agent.findings.ledger import Ledger, Place
from agent.inventory.blind_causes import BY_SLUG, CLOCK_DIFFERS
from agent.inventory.blindness import is_blind
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import ApplicationSettings, SettingsBook
from agent.inventory.task_changes import orderly_close_us
from agent.judging.base import (
    AgentCase,
    ApplicationCase,
    Detector,
    DetectorMeta,
    Kind,
    Scope,
    TaskCase,
    Verdict,
)
from agent.judging.decision import Decision
from agent.judging.wording import concerned
from agent.layout.profile import Profile

TIMED = 16
"""Every so many judgements the detectors are timed, and what they took counts so often: a clock has its price, too."""


@dataclass(slots=True)
class DetectorStats:
    """How a detector fared: its own health is a metric."""

    runs: int = 0
    failures: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class JudgementContext:
    """What holds for all judgements of an application while the inventory stays as it is."""

    settings: ApplicationSettings
    profile: Profile
    around: Around
    answers: dict[Any, Any] = field(default_factory=dict)
    in_worlds: dict[object, Batch] = field(default_factory=dict)  # the same in each possible world


Batch = dict[str, JudgementContext]  # by application; kept as long as the inventory does not change


@dataclass(slots=True)
class DetectorRunner:
    """All detectors, and what they said."""

    detectors: Sequence[Detector]  # those that are asked
    inventory: Inventory  # what they judge
    settings: SettingsBook  # what the operator said
    profiles: Profiles  # which releases wrote what
    ledger: Ledger  # where their verdicts are settled
    say: Callable[[Finding, int], None]
    """Takes (finding, time) of every finding that opened, changed or was resolved."""
    on_fault: Callable[[str, Exception], None]  # takes (detector id, exception) when a detector fails
    stopwatch: Callable[[], float]  # gives seconds that go on; measures what a detector costs
    unchanged: Unchanged | None = None  # who need not be asked again; None = all are, each time
    stats: dict[str, DetectorStats] = field(default_factory=dict)
    _by_scope: dict[Scope, tuple[Detector, ...]] = field(default_factory=dict)
    _not_silent: dict[tuple[str, Scope], tuple[Profile, tuple[Detector, ...]]] = field(default_factory=dict)
    _before: dict[str, frozenset[str]] = field(default_factory=dict)
    _judged: int = 0

    def __post_init__(self) -> None:
        """Put the detectors into their order."""
        self.stats = {detector.meta.id: DetectorStats() for detector in self.detectors}
        in_order = laws_last(self.detectors)
        self._by_scope = {scope: tuple(x for x in in_order if x.meta.scope is scope) for scope in Scope}
        ids = [x.meta.id for x in in_order]
        self._before = {x.meta.id: frozenset(ids[:i]) for i, x in enumerate(in_order) if x.meta.is_law}

    def know(self, application: Application, batch: Batch) -> JudgementContext:
        """Return what holds for an application in a batch of judgements."""
        known = batch.get(application.id)
        if known is None:
            settings = self.settings.of(application.id)
            if self.unchanged is not None:
                settings = ApplicationSettings(NotedSettings(settings.values))
            known = batch[application.id] = JudgementContext(
                settings, self.profiles.of(application), around(self.inventory)
            )
        return known

    def task_case(self, now_us: int, application: Application, task: Task, batch: Batch) -> TaskCase:
        """Return what detectors of tasks may read; `batch`: see `know`."""
        known = self.know(application, batch)
        kind = TaskCase if self.unchanged is None else NotedCase
        return kind(
            self.inventory, now_us, application, task, settings=known.settings, profile=known.profile,
            answers=known.answers,
        )  # fmt: skip

    def judge_task(
        self, now_us: int, application: Application, task: Task, batch: Batch, settled: Set[str] = frozenset()
    ) -> None:
        """Judge a task of an application; `batch`: see `know`, `settled`: ids of those that need not be asked."""
        known, pending = self.know(application, batch), self.ledger.pending(application.id, task.id)
        is_pending = bool(pending)  # a verdict changes what is pending
        about, silence = (task.path, known.around, known.profile), None
        if self.unchanged is not None and not is_pending:
            silence = self.unchanged.silence(*about)
            if silence is not None and not silence.again:
                return
        case = self.task_case(now_us, application, task, batch)
        asked: Sequence[Detector] = self._asked(case, everybody=is_pending)
        if silence is not None:
            asked = [x for x in asked if x.meta.id in silence.again]
        others = [x for x in asked if x.meta.id not in settled] if settled else asked
        asked_for = self._judge(case, application, task, others, pending)
        if self.unchanged is not None:
            if asked_for is not None:  # of those passed over, and of one that failed, nothing is known
                before = {} if silence is None else silence.asked_for
                asked_for = {**before, **dict.fromkeys((x.meta.id for x in asked), ALL), **asked_for}
            self.unchanged.note(*about, None if is_pending else asked_for)

    def judge_application(
        self,
        now_us: int,
        application: Application,
        batch: Batch,
        decision: Decision | None = None,
        *,
        is_decided: bool = True,
    ) -> None:
        """Judge an application itself.

        `batch`: see `know`; `decision`: what is undecided of it; `is_decided`: whether that is known by now. Before, an
        agent that was restarted leaves the question of the one before it open.
        """
        known = self.know(application, batch)
        case = ApplicationCase(
            self.inventory, now_us, application, settings=known.settings, profile=known.profile,
            decision=decision, answers=known.answers,
        )  # fmt: skip
        pending = self.ledger.pending(application.id, None)
        asked = self._asked(case, everybody=bool(pending))
        if not is_decided:
            asked = tuple(x for x in asked if x.meta.id != UNDECIDED.id)
        self._judge(case, application, None, asked, pending)

    def judge_agent(self, now_us: int) -> None:
        """Judge the agent itself."""
        pending = self.ledger.pending("", None)
        self._judge(AgentCase(self.inventory, now_us), None, None, self._by_scope[Scope.AGENT], pending)

    def _judge(
        self,
        case: AgentCase,
        application: Application | None,
        task: Task | None,
        asked: Sequence[Detector],
        pending: Container[str],
    ) -> dict[str, int] | None:
        """Ask detectors one after the other; give what each asked for, by id. None = one spoke.

        `pending`: ids of those that have something open there.
        """
        clock = None if self._judged % TIMED else self.stopwatch
        self._judged += 1
        began = clock() if clock is not None else 0.0
        noted: Any = case.settings.values if isinstance(case, NotedCase) else NotedSettings({})
        asked_for: dict[str, int] = {}
        has_spoken = False
        for detector in asked:
            stats = self.stats[detector.meta.id]
            stats.runs += 1
            noted.asked_for = 0
            try:
                verdicts = list(detector.judge(case))
            except Exception as error:  # noqa: BLE001 - the fence around one detector: others must still run
                stats.failures += 1
                self.on_fault(detector.meta.id, error)
                continue
            asked_for[detector.meta.id] = noted.asked_for
            if clock is not None:
                ended = clock()
                stats.seconds += TIMED * (ended - began)
                began = ended
            if verdicts or detector.meta.id in pending:
                has_spoken = True
                self._settle(case, detector.meta, verdicts, application, task)
                began = clock() if clock is not None else 0.0
        return None if has_spoken else asked_for

    def _asked(self, case: ApplicationCase, *, everybody: bool) -> tuple[Detector, ...]:
        """Give the detectors of a scope, without those that settings and release rule out.

        `everybody`: something is open there, and what one said before it was ruled out is to be closed.
        """
        if everybody:
            return self._by_scope[case.scope]
        key = case.application.id, case.scope
        known = self._not_silent.get(key)
        if known is None or known[0] is not case.profile:
            asked = tuple(x for x in self._by_scope[case.scope] if not case.is_silent(x.meta))
            known = self._not_silent[key] = case.profile, asked
        return known[1]

    def _settle(
        self,
        case: AgentCase,
        meta: DetectorMeta,
        verdicts: list[Verdict],
        application: Application | None,
        task: Task | None,
    ) -> None:
        now_us = case.now_us
        verdicts = [doubted(case, meta, with_issues(case, meta, x)) for x in verdicts]
        place = Place(meta.id, application.id if application else "", task.id if task else None)
        there, closed_us = (task.known_as, orderly_close_us(task)) if task else (None, None)
        said: list[Finding] = []
        if meta.is_law:
            verdicts, said = give_way(self.ledger, place, verdicts, self._before[meta.id], now_us)
        said += self.ledger.settle(meta, place, verdicts, now_us, there, _ends_of(application), closed_us)
        for finding in said:
            self.say(finding, now_us)


def _ends_of(application: Application | None) -> tuple[int, ...]:
    return tuple(x.ended_us for x in application.lives if x.ended_us is not None) if application else ()


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


def with_issues(case: AgentCase, meta: DetectorMeta, verdict: Verdict) -> Verdict:
    """Name only issues that may affect the release; all of them where none may.

    A verdict with its own mechanism has its own issues, or none.
    """
    if (
        verdict.upstream
        or verdict.mechanism is not None
        or not meta.upstream
        or not isinstance(case, ApplicationCase)
    ):
        return verdict
    return replace(verdict, upstream=concerned(case, meta.upstream))


NEAR_US = 10_000_000
"""Clocks that a time service keeps differ by less: the order of two times that are nearer rests on one clock."""
BLIND = "Part of that time was not watched."
NOT_COMPARED = "The order of its file times is not sure (clock-differs)."


def doubted(case: AgentCase, meta: DetectorMeta, verdict: Verdict) -> Verdict:
    """What rests on a time in which the agent was blind is suspected, never confirmed.

    Of damage that is the whole chain of evidence, and it is no more than a warning. A condition is there, however
    it came: only evidence from within a blind interval makes it unsure, and its severity stays. The same holds
    for times of a file server whose clock was not compared, where they are near each other.
    """
    if not isinstance(case, TaskCase) or not verdict.evidence:
        return verdict
    times = sorted(step.at_us for step in verdict.evidence)
    if meta.kind is Kind.DAMAGE and _is_blind(case, times[0], times[-1], verdict.store):
        severity = min(verdict.severity, Severity.WARNING, key=lambda x: x.rank)
        return _suspected(replace(verdict, severity=severity), BLIND)
    if verdict.confidence is not Confidence.CONFIRMED:
        return verdict
    if any(_was_unseen(case, at_us) for at_us in times):
        return _suspected(verdict, BLIND)
    is_near = any(0 < later - earlier < NEAR_US for earlier, later in pairwise(times))
    if CLOCK_DIFFERS in case.inventory.slowed and case.inventory.ahead_us is None and is_near:
        return _suspected(verdict, NOT_COMPARED)
    return verdict


def _was_unseen(case: TaskCase, at_us: int) -> bool:
    """Return whether the agent missed what happened at a time; what it has not been able to read is another matter."""
    return any(
        interval.started_us <= at_us <= (at_us if interval.ended_us is None else interval.ended_us)
        and interval.application in (None, case.application.id)
        and interval.task in (None, case.task.id)
        and not BY_SLUG[interval.cause].lasts
        for interval in case.inventory.blind
        if interval.cause in BY_SLUG
    )


def _is_blind(case: TaskCase, from_us: int, to_us: int, store: str | None) -> bool:
    return is_blind(case.inventory, case.application.id, case.task.id, from_us, to_us, store)


def _suspected(verdict: Verdict, why: str) -> Verdict:
    confidence = Confidence.UNKNOWN if verdict.confidence is Confidence.UNKNOWN else Confidence.SUSPECTED
    return replace(verdict, confidence=confidence, summary=f"{verdict.summary} {why}")
