"""Steps 5 and 6: ask every detector of a scope, and settle what they say. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.contract.finding import Finding
from agent.engine.laws import give_way, laws_last
from agent.engine.profiles import Profiles
from agent.engine.refine import doubted, with_issues
from agent.findings.ledger import Ledger, Place
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import ApplicationSettings, SettingsBook
from agent.inventory.task_changes import orderly_close_us
from agent.judging.base import (
    AgentCase,
    ApplicationCase,
    Detector,
    DetectorMeta,
    Scope,
    TaskCase,
    Verdict,
)
from agent.judging.decision import Decision
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
    answers: dict[Any, Any] = field(default_factory=dict)


Batch = dict[str, JudgementContext]
"""By application; kept as long as the inventory does not change."""


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
    stats: dict[str, DetectorStats] = field(default_factory=dict)
    _by_scope: dict[Scope, tuple[Detector, ...]] = field(default_factory=dict)
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
            known = JudgementContext(self.settings.of(application.id), self.profiles.of(application))
            batch[application.id] = known
        return known

    def task_case(self, now_us: int, application: Application, task: Task, batch: Batch) -> TaskCase:
        """Return what detectors of tasks may read; `batch`: see `know`."""
        known = self.know(application, batch)
        return TaskCase(
            self.inventory, now_us, application, task, settings=known.settings, profile=known.profile,
            answers=known.answers,
        )  # fmt: skip

    def application_case(
        self, now_us: int, application: Application, batch: Batch, decision: Decision | None
    ) -> ApplicationCase:
        """Return what detectors of applications may read; `batch`: see `know`."""
        known = self.know(application, batch)
        return ApplicationCase(
            self.inventory, now_us, application, settings=known.settings, profile=known.profile,
            decision=decision, answers=known.answers,
        )  # fmt: skip

    def judge_task(self, now_us: int, application: Application, task: Task, batch: Batch) -> None:
        """Judge a task of an application; `batch`: see `know`."""
        self._judge(self.task_case(now_us, application, task, batch), application, task)

    def judge_application(
        self, now_us: int, application: Application, batch: Batch, decision: Decision | None = None
    ) -> None:
        """Judge an application itself; `batch`: see `know`; `decision`: what is undecided of it."""
        self._judge(self.application_case(now_us, application, batch, decision), application, None)

    def judge_agent(self, now_us: int) -> None:
        """Judge the agent itself."""
        self._judge(AgentCase(self.inventory, now_us), None, None)

    def _judge(self, case: AgentCase, application: Application | None, task: Task | None) -> None:
        """Ask the detectors of a case's scope one after the other, the laws last."""
        pending = self.ledger.pending(application.id if application else "", task.id if task else None)
        clock = None if self._judged % TIMED else self.stopwatch
        self._judged += 1
        began = clock() if clock is not None else 0.0
        for detector in self._by_scope[case.scope]:
            stats = self.stats[detector.meta.id]
            stats.runs += 1
            try:
                verdicts = list(detector.judge(case))
            except Exception as error:  # noqa: BLE001 - the fence around one detector: others must still run
                stats.failures += 1
                self.on_fault(detector.meta.id, error)
                continue
            if clock is not None:
                ended = clock()
                stats.seconds += TIMED * (ended - began)
                began = ended
            if verdicts or detector.meta.id in pending:
                self._settle(case, detector.meta, verdicts, application, task)
                began = clock() if clock is not None else 0.0

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
        there, closed_us = (task.identities, orderly_close_us(task)) if task else (None, None)
        said: list[Finding] = []
        if meta.is_law:
            verdicts, said = give_way(self.ledger, place, verdicts, self._before[meta.id], now_us)
        said += self.ledger.settle(meta, place, verdicts, now_us, there, _ends_of(application), closed_us)
        for finding in said:
            self.say(finding, now_us)


def _ends_of(application: Application | None) -> tuple[int, ...]:
    """Return when processes of an application ended, as far as is known."""
    return tuple(x.ended_us for x in application.lives if x.ended_us is not None) if application else ()
