"""The eight steps as one object: hints in, records and findings out. No threads, no clock, no I/O of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from agent.contract.events import Affected, Change, Confidence, Kind, Record, Severity, Source
from agent.contract.reporting import HEARTBEAT_S, SUMMARY_S
from agent.detectors.base import Case, Detector, DetectorMeta, Scope, Verdict, silenced_by
from agent.detectors.base import Kind as DetectorKind
from agent.detectors.registry import DETECTORS
from agent.findings.ledger import Finding, Ledger, Place
from agent.inventory.blindness import begin_blind, is_blind
from agent.inventory.disk import Disk
from agent.inventory.hints import Hint, HintKind
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import SettingsBook
from agent.inventory.transitions import Transition
from agent.layout.profile import Profile
from agent.layout.releases import ReleaseRange
from agent.runtime.looker import Looker
from agent.runtime.profiles import Profiles
from agent.runtime.records import (
    configuration_body,
    heartbeat_body,
    summary_body,
    transition_body,
)
from agent.runtime.schedule import Rechecks, Schedule, in_turn

RECHECKS_US = (1_500_000, 6_000_000, 11_000_000, 31_000_000)
"""After its last change a task is judged again at these distances: rules that wait are due by then."""

SUMMARY_US = SUMMARY_S * 1_000_000
SUMMARIES = 1_000
BUSY_SUMMARIES, QUIET_SUMMARIES = 400, 100
"""Up to `SUMMARIES` tasks are summarised every minute. Of more, so many of those that changed and of the others, each
in turn; what the first ones leave goes to the others: at 10,000 quiet tasks each waits up to twenty minutes."""

HEARTBEAT_US = HEARTBEAT_S * 1_000_000
RESCAN_US = 60_000_000
_Ask = Callable[[], bool]
_Choose = Callable[[Application], bool]


@dataclass(slots=True)
class DetectorStats:
    """How a detector fared: its own health is a metric."""

    runs: int = 0
    failures: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _News:
    """What a batch of hints brought: applications that are new, and everybody who is to be judged because of it.

    Args of the dataclass:
        at_us: Time of the batch.
        introduced: New applications, with the releases that their `configuration` record names.
        tasks: By path.
        applications: By id.
    """

    at_us: int
    introduced: list[tuple[Application, ReleaseRange]] = field(default_factory=list)
    tasks: dict[str, tuple[Application, Task]] = field(default_factory=dict)
    applications: dict[str, Application] = field(default_factory=dict)


@dataclass(slots=True)
class Pipeline:
    """Watches one state directory.

    Args of the dataclass:
        disk: What to look through.
        settings: What the operator said.
        started_us: When the agent started.
        emit: Takes every record, in order.
        on_finding: Takes every finding that opened, changed or was resolved.
        on_fault: Takes (detector id, exception) when a detector fails.
        detectors: The registered detectors.
        rescan_us: Distance between rescans; 0 = none: somebody else walks, bit by bit (`look_again`).
        revision: Counts changes and findings: the same number means that nothing happened in between.
    """

    disk: Disk
    settings: SettingsBook
    started_us: int
    emit: Callable[[Record], None]
    on_finding: Callable[[Finding], None] = lambda finding: None
    on_fault: Callable[[str, Exception], None] = lambda detector, error: None
    detectors: tuple[Detector, ...] = DETECTORS
    rescan_us: int = RESCAN_US
    ledger: Ledger = field(default_factory=Ledger)
    stats: dict[str, DetectorStats] = field(default_factory=dict)
    looker: Looker = field(init=False)
    profiles: Profiles = field(init=False)
    rescans: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    _silenced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _by_scope: dict[Scope, list[tuple[Detector, str, DetectorStats]]] = field(default_factory=dict)
    _rechecks: Rechecks = field(default_factory=lambda: Rechecks(RECHECKS_US))
    _late: Schedule[str] = field(default_factory=Schedule)
    _beats: Schedule[str] = field(default_factory=Schedule)
    _told_blind: int = 0
    _summarised: int = 0
    _summarised_busy: int = 0

    def __post_init__(self) -> None:
        """Wire the steps and plan the first beats."""
        self.looker = Looker(self.disk, self.started_us)
        self.profiles = Profiles(self.settings)
        self.stats = {detector.meta.id: DetectorStats() for detector in self.detectors}
        self._silenced = silenced_by(self.detectors)
        self._by_scope = {
            scope: [(x, x.meta.id, self.stats[x.meta.id]) for x in self.detectors if x.meta.scope is scope]
            for scope in Scope
        }
        self._beats.want("heartbeat", self.started_us)
        self._beats.want("summary", self.started_us + SUMMARY_US)
        if self.rescan_us:
            self._beats.want("rescan", self.started_us + self.rescan_us)

    @property
    def inventory(self) -> Inventory:
        """All that is known."""
        return self.looker.inventory

    def handle(self, hints: Iterable[Hint], now_us: int) -> None:
        """Follow hints and judge what they changed."""
        news = _News(now_us)
        for hint in hints:
            if hint.kind is HintKind.RESCAN:
                self.rescans[hint.cause] = self.rescans.get(hint.cause, 0) + 1
            self._tell(self.looker.hint(hint, now_us, lambda changes: self._tell(changes, news)), news)
        self._judge_news(news)

    def resume(
        self, known: Inventory, findings: Iterable[tuple[Place, str, Finding]], until_us: int, reason: str
    ) -> None:
        """Go on where an earlier agent ended; call it before anything else.

        Args:
            known: Its dossier.
            findings: Place, subject and finding of everything that its ledger remembered.
            until_us: Until when that was right; the time since then is blind.
            reason: How it ended, for people.
        """
        self.looker.resume(known, until_us)
        begin_blind(self.inventory, until_us, "agent-away", detail=reason)
        for place, subject, finding in findings:
            self.ledger.resume(place, subject, finding)
        self._told_blind = until_us
        for application in self.inventory.applications.values():
            if application.exists:
                self._configure(application, self.started_us)

    def next_us(self) -> int:
        """When `tick` must be called at the latest."""
        due_us = self.looker.next_us()
        for schedule in (self._rechecks, self._late, self._beats):
            next_us = schedule.next_us()
            if next_us is not None and next_us < due_us:
                due_us = next_us
        return due_us

    def shift(self, by_us: int) -> None:
        """Move every time that is planned: the clock was set."""
        for schedule in (self._rechecks, self._late, self._beats):
            schedule.shift(by_us)
        self.looker.shift(by_us)
        self.inventory.started_us += by_us

    def tick(self, now_us: int) -> None:
        """Do what is due by the agent's own clock."""
        changes: list[Transition] = []
        if now_us >= self.looker.next_us():
            changes += self.looker.tick(now_us)
        beats = self._beats.take(now_us)
        if "rescan" in beats:
            self._beats.want("rescan", now_us + self.rescan_us)
            self.rescans["periodic"] = self.rescans.get("periodic", 0) + 1
            changes += self.looker.rescan("", now_us, Source.RESCAN, "periodic")
        self._conclude(changes, now_us)
        known: dict[str, Profile] = {}
        for path in (*self._rechecks.take(now_us), *self._late.take(now_us)):
            self._recheck(path, now_us, known)
        if "heartbeat" in beats:
            self._beats.want("heartbeat", now_us + HEARTBEAT_US)
            self.beat(now_us)
        if "summary" in beats:
            self._beats.want("summary", now_us + SUMMARY_US)
            self.summarise(now_us, everything=False)

    def look_again(self, path: str, now_us: int) -> list[Transition]:
        """Look at one directory and what is below it, and judge what changed unannounced; tells what did."""
        changes = self.looker.rescan(path, now_us, Source.RESCAN, "periodic")
        self._conclude(changes, now_us)
        return changes

    def look_at_application(self, application_id: str, now_us: int) -> None:
        """Look at an application's own files only: lock, process metadata."""
        self._conclude(self.looker.look_at_application(application_id, now_us), now_us)

    def scan(self, now_us: int) -> None:
        """Look at everything once and judge it."""
        self.handle([Hint("", HintKind.RESCAN, now_us, cause="start")], now_us)

    def confirm(self, now_us: int) -> None:
        """Look a second time at what a single look does not settle: for a scan, which has no later one."""
        self._conclude(self.looker.confirm(now_us), now_us)

    def beat(self, now_us: int) -> None:
        """Emit a heartbeat and judge the agent itself."""
        self.emit(Record(Kind.HEARTBEAT, now_us, heartbeat_body(self.inventory, self._told_blind)))
        self._told_blind = now_us
        self._judge(Scope.AGENT, now_us, None, None, {})

    def summarise(
        self, now_us: int, *, everything: bool = True, has_time: _Ask = lambda: True, whom: _Choose = bool
    ) -> None:
        """Emit a summary of every task, or only of those whose turn it is, and judge them once more.

        Args:
            now_us: Now.
            everything: Of every task; those that changed last come first where they are many.
            has_time: Asked before every task: a pod that ends waits for nobody.
            whom: Of which applications.
        """
        known: dict[str, Profile] = {}
        for application, task in filter(lambda x: whom(x[0]), self._due(now_us, everything=everything)):
            if not has_time():
                break
            if task.exists:
                self.emit(Record(Kind.SUMMARY, now_us, summary_body(application, task)))
            self._judge(Scope.TASK, now_us, application, task, known)
        for application in filter(whom, self.inventory.applications.values()):
            self._judge(Scope.APPLICATION, now_us, application, None, known)

    def _due(self, now_us: int, *, everything: bool) -> list[tuple[Application, Task]]:
        """Pick tasks: all of them up to `SUMMARIES`; else those that changed, and the others in turn."""
        tasks = [(a, t) for a in self.inventory.applications.values() for t in a.tasks.values()]
        if len(tasks) <= SUMMARIES:
            return tasks
        if everything:
            return sorted(tasks, key=lambda x: -x[1].changed_us)
        since_us = now_us - SUMMARY_US
        changed = [x for x in tasks if x[1].changed_us > since_us]
        busy, self._summarised_busy = in_turn(changed, self._summarised_busy, BUSY_SUMMARIES)
        left = BUSY_SUMMARIES + QUIET_SUMMARIES - len(busy)
        quiet, self._summarised = in_turn(tasks, self._summarised, left)
        return busy + [x for x in quiet if x[1].changed_us <= since_us]

    # -- judging ----------------------------------------------------------------------------------------

    def _conclude(self, changes: list[Transition], now_us: int) -> None:
        news = _News(now_us)
        self._tell(changes, news)
        self._judge_news(news)

    def _tell(self, changes: list[Transition], news: _News) -> None:
        """Emit what changed, and note who is to be judged when all of it is known."""
        self.revision += len(changes)
        for change in changes:
            application = self.inventory.applications[change.application]
            news.applications[application.id] = application
            if change.change is Change.APPLICATION_SEEN:
                news.introduced.append((application, self._configure(application, news.at_us)))
            self.emit(Record(Kind.TRANSITION, news.at_us, transition_body(application, change)))
            task = application.tasks.get(change.task or "")
            if task is not None:
                news.tasks[task.path] = (application, task)
            elif change.change in (Change.PROCESS_STARTED, Change.PROCESS_ENDED):
                # whether a process lives decides what a released task or a half-done deletion means
                news.tasks.update((task.path, (application, task)) for task in application.tasks.values())

    def _judge_news(self, news: _News) -> None:
        known: dict[str, Profile] = {}
        for application, told in news.introduced:
            if self.profiles.of(application).range != told:  # by what the rest of a long walk found
                self._configure(application, news.at_us)
        for path, (application, task) in news.tasks.items():
            self._rechecks.restart(path, news.at_us)
            self._judge(Scope.TASK, news.at_us, application, task, known)
        for application in news.applications.values():
            self._judge(Scope.APPLICATION, news.at_us, application, None, known)
            self._late.want(application.id, news.at_us + RECHECKS_US[-1])

    def _recheck(self, path: str, now_us: int, known: dict[str, Profile]) -> None:
        name, _, task_id = path.partition("/")
        application = self.inventory.applications.get(name)
        if application is None:
            return
        task = application.tasks.get(task_id)
        scope = Scope.TASK if task is not None else Scope.APPLICATION
        self._judge(scope, now_us, application, task, known)

    def _configure(self, application: Application, now_us: int) -> ReleaseRange:
        profile = self.profiles.of(application)
        settings = self.settings.of(application.id)
        self.emit(
            Record(Kind.CONFIGURATION, now_us, configuration_body(application, settings, profile.range))
        )
        return profile.range

    def _judge(
        self,
        scope: Scope,
        now_us: int,
        application: Application | None,
        task: Task | None,
        known: dict[str, Profile],
    ) -> None:
        """Ask every detector of a scope.

        Args:
            scope: Which detectors.
            now_us: Time of the judgement.
            application: Whom to judge; None = the agent itself.
            task: Whom to judge; None = the application.
            known: Profiles by application, kept as long as the inventory does not change.
        """
        case = self._case(now_us, application, task, known)
        application_id, task_id = application.id if application else "", task.id if task else None
        loud = self.ledger.loud(application_id, task_id)
        began = time.perf_counter()
        for detector, id_, stats in self._by_scope[scope]:
            try:
                verdicts = list(detector.judge(case))
            except Exception as error:  # noqa: BLE001 - the fence around one detector: others must still run
                stats.failures += 1
                self.on_fault(id_, error)
                continue
            finally:
                stats.runs += 1
                ended = time.perf_counter()
                stats.seconds += ended - began
                began = ended
            if not verdicts and id_ not in loud:
                continue
            meta = detector.meta
            verdicts = [
                self._doubt(meta, _name_issues(case, meta, verdict), application, task)
                for verdict in verdicts
            ]
            place = Place(id_, application_id, task_id)
            for finding in self.ledger.settle(meta, place, verdicts, now_us, _identities(task)):
                self.revision += 1
                self.emit(Record(Kind.FINDING, now_us, finding.body()))
                self.on_finding(finding)
            began = time.perf_counter()

    def _doubt(
        self, meta: DetectorMeta, verdict: Verdict, application: Application | None, task: Task | None
    ) -> Verdict:
        """Damage whose chain of evidence has a blind interval in it is suspected, never confirmed."""
        if (
            meta.kind is not DetectorKind.DAMAGE
            or application is None
            or task is None
            or not verdict.evidence
        ):
            return verdict
        times = [step.at_us for step in verdict.evidence]
        if not is_blind(self.inventory, application.id, task.id, min(times), max(times), verdict.store):
            return verdict
        severity = min(verdict.severity, Severity.WARNING, key=lambda x: x.rank)
        confidence = Confidence.UNKNOWN if verdict.confidence is Confidence.UNKNOWN else Confidence.SUSPECTED
        summary = f"{verdict.summary} The auditor was blind for part of that time."
        return replace(verdict, severity=severity, confidence=confidence, summary=summary)

    def _case(
        self, now_us: int, application: Application | None, task: Task | None, known: dict[str, Profile]
    ) -> Case:
        if application is None:
            return Case(self.inventory, now_us)
        settings = self.settings.of(application.id)
        profile = known.get(application.id)
        if profile is None:
            profile = known[application.id] = self.profiles.of(application)
        return Case(self.inventory, now_us, settings, profile, application, task, self._silenced)


def _name_issues(case: Case, meta: DetectorMeta, verdict: Verdict) -> Verdict:
    """Name only issues that may affect the release; all of them where none may."""
    if verdict.upstream or not meta.upstream:
        return verdict
    concerned = tuple(x.key for x in meta.upstream if case.affected(x) is not Affected.NO)
    return replace(verdict, upstream=concerned)


def _identities(task: Task | None) -> frozenset[str] | None:
    if task is None:
        return None
    return frozenset(x for store in task.stores.values() for x in store.identities)
