"""Steps 5 and 6: ask the detectors whose verdict can have changed, and settle what they say. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.engine.asking import ANYTHING, Asked, DetectorStats, Plan, Selection
from agent.engine.laws import give_way, laws_last
from agent.engine.profiles import Profiles
from agent.engine.refine import doubted, with_issues
from agent.engine.unreported import Unreported
from agent.findings.finding import Finding
from agent.findings.ledger import Ledger, Place
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import ApplicationSettings, SettingsBook
from agent.inventory.task_changes import orderly_close_us
from agent.judging.base import AgentCase, ApplicationCase, Detector, Scope, TaskCase, Verdict, silenced_by
from agent.layout.profile import Profile

TIMED = 16
"""Every so many judgements the detectors are timed, and what they took counts so often: a clock has its price, too."""


@dataclass(slots=True)
class Known:
    """What holds for all judgements of an application while the inventory stays as it is."""

    settings: ApplicationSettings
    profile: Profile
    tasks: Plan
    application: Plan
    answers: dict[Any, Any] = field(default_factory=dict)


Batch = dict[str, Known]
"""By application; kept as long as the inventory does not change."""


@dataclass(slots=True)
class Judges:
    """All detectors, and what they said.

    Args of the dataclass:
        detectors: Those that are asked.
        inventory: What they judge.
        settings: What the operator said.
        profiles: Which releases wrote what.
        ledger: Where their verdicts are settled.
        say: Takes (finding, time) of every finding that opened, changed or was resolved.
        on_fault: Takes (detector id, exception) when a detector fails.
        stopwatch: Gives seconds that go on; measures what a detector costs.
        unreported: What may have changed without a transition.
    """

    detectors: Sequence[Detector]
    inventory: Inventory
    settings: SettingsBook
    profiles: Profiles
    ledger: Ledger
    say: Callable[[Finding, int], None]
    on_fault: Callable[[str, Exception], None]
    stopwatch: Callable[[], float]
    unreported: Unreported
    stats: dict[str, DetectorStats] = field(default_factory=dict)
    _by_scope: dict[Scope, tuple[Asked, ...]] = field(default_factory=dict)
    _before: dict[str, frozenset[str]] = field(default_factory=dict)
    _silenced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _known: dict[str, Known] = field(default_factory=dict)
    _volume: str = ""
    _judged: int = 0

    def __post_init__(self) -> None:
        """Put the detectors into their order."""
        self.stats = {detector.meta.id: DetectorStats() for detector in self.detectors}
        self._silenced = silenced_by(self.detectors)
        in_order = [
            Asked(x.meta.id, x.meta, x.judge, self.stats[x.meta.id]) for x in laws_last(self.detectors)
        ]
        self._by_scope = {scope: tuple(x for x in in_order if x.meta.scope is scope) for scope in Scope}
        ids = [x.id for x in in_order]
        self._before = {x.id: frozenset(ids[:i]) for i, x in enumerate(in_order) if x.meta.is_law}

    # -- what is known of an application ----------------------------------------------------------------

    def know(self, application: Application, batch: Batch) -> Known:
        """Return what holds for an application in a batch of judgements."""
        known = batch.get(application.id)
        if known is None:
            if self.inventory.volume != self._volume:
                self._volume = self.inventory.volume
                self.unreported.note_everything()
            known = batch[application.id] = self._know(application)
        return known

    def _know(self, application: Application) -> Known:
        profile, before = self.profiles.of(application), self._known.get(application.id)
        if before is not None and before.profile is profile:
            return Known(before.settings, profile, before.tasks, before.application)
        settings = self.settings.of(application.id) if before is None else before.settings
        if before is not None:
            self.unreported.note_application(application)
        made = self._known[application.id] = Known(
            settings,
            profile,
            Plan(self._by_scope[Scope.TASK], settings, profile),
            Plan(self._by_scope[Scope.APPLICATION], settings, profile),
        )
        return Known(settings, profile, made.tasks, made.application)

    # -- judgements -------------------------------------------------------------------------------------

    def judge_task(
        self,
        now_us: int,
        application: Application,
        task: Task,
        batch: Batch,
        *,
        changes: int = ANYTHING,
        passed_us: int | None = None,
    ) -> None:
        """Judge a task.

        Args:
            now_us: Time of the judgement.
            application: Its application.
            task: Whom to judge.
            batch: See `know`.
            changes: Bits of what changed since it was judged last.
            passed_us: Instead of changes: how far from the last one it was judged already, and nothing came since.
        """
        known = self.know(application, batch)
        plan = known.tasks
        if task.path in self.unreported:
            chosen = plan.everyone
        else:
            chosen = plan.after(changes) if passed_us is None else plan.later(passed_us)
        case = TaskCase(
            self.inventory, now_us, application, task, settings=known.settings, profile=known.profile,
            silenced=self._silenced, answers=known.answers,
        )  # fmt: skip
        self._judge(case, plan, chosen, application, task)

    def judge_application(
        self, now_us: int, application: Application, batch: Batch, *, changes: int = ANYTHING
    ) -> None:
        """Judge an application itself; arguments as those of `judge_task`."""
        known = self.know(application, batch)
        plan = known.application
        if application.id in self.unreported:
            self.unreported.forget(application.id)
            changes = ANYTHING
        case = ApplicationCase(
            self.inventory, now_us, application, settings=known.settings, profile=known.profile,
            silenced=self._silenced, answers=known.answers,
        )  # fmt: skip
        self._judge(case, plan, plan.after(changes), application, None)

    def judge_agent(self, now_us: int) -> None:
        """Judge the agent itself."""
        plan = Plan(self._by_scope[Scope.AGENT], ApplicationSettings(), Profile())
        self._judge(AgentCase(self.inventory, now_us), plan, plan.everyone, None, None)

    def _judge(
        self,
        case: AgentCase,
        plan: Plan,
        chosen: Selection,
        application: Application | None,
        task: Task | None,
    ) -> None:
        """Ask some detectors, those that have something open, and the laws as soon as another one says something."""
        application_id, task_id = application.id if application else "", task.id if task else None
        pending = self.ledger.pending(application_id, task_id)
        if pending and not chosen.ids.issuperset(pending):
            chosen = plan.with_open(chosen, pending)
        if self._ask(case, chosen.asked, pending, application, task):
            left_out = tuple(x for x in plan.laws.asked if x.id not in chosen.ids)
            self._ask(case, left_out, pending, application, task)

    def _ask(
        self,
        case: AgentCase,
        asked: Sequence[Asked],
        pending: Collection[str],
        application: Application | None,
        task: Task | None,
    ) -> bool:
        """Ask detectors one after the other; return whether a finding opened, changed or ended."""
        has_said = False
        clock = None if self._judged % TIMED else self.stopwatch
        self._judged += 1
        began = clock() if clock is not None else 0.0
        for detector in asked:
            stats = detector.stats
            stats.runs += 1
            try:
                verdicts = list(detector.judge(case))
            except Exception as error:  # noqa: BLE001 - the fence around one detector: others must still run
                stats.failures += 1
                self.on_fault(detector.id, error)
                continue
            if clock is not None:
                ended = clock()
                stats.seconds += TIMED * (ended - began)
                began = ended
            if verdicts or detector.id in pending:
                has_said |= self._settle(case, detector, verdicts, application, task)
                began = clock() if clock is not None else 0.0
        return has_said

    def _settle(
        self,
        case: AgentCase,
        detector: Asked,
        verdicts: list[Verdict],
        application: Application | None,
        task: Task | None,
    ) -> bool:
        meta, now_us = detector.meta, case.now_us
        verdicts = [doubted(case, meta, with_issues(case, meta, x)) for x in verdicts]
        place = Place(detector.id, application.id if application else "", task.id if task else None)
        there, closed_us = (task.identities, orderly_close_us(task)) if task else (None, None)
        said: list[Finding] = []
        if meta.is_law:
            verdicts, said = give_way(self.ledger, place, verdicts, self._before[detector.id], now_us)
        said += self.ledger.settle(meta, place, verdicts, now_us, there, _ends_of(application), closed_us)
        for finding in said:
            self.say(finding, now_us)
        return bool(said)


def _ends_of(application: Application | None) -> tuple[int, ...]:
    """Return when processes of an application ended, as far as is known."""
    return tuple(x.ended_us for x in application.lives if x.ended_us is not None) if application else ()
