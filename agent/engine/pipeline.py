"""The eight steps as one object: hints in, records and findings out. No threads, no clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from agent.contract.events import Change, Kind, Record, Source, Status
from agent.contract.finding import Finding
from agent.contract.reporting import HEARTBEAT_S, REPEAT_S, SUMMARY_S
from agent.detectors import DETECTORS
from agent.engine.detector_runner import Batch, DetectorRunner, DetectorStats
from agent.engine.directory_reader import DirectoryReader
from agent.engine.disabled import Disabled, closed, is_there
from agent.engine.file_clock import FileClock
from agent.engine.follow import TEMPO_US, Follow
from agent.engine.listing import note_nested
from agent.engine.profiles import Profiles
from agent.engine.records import configuration_body, heartbeat_body, summary_body, transition_body
from agent.engine.schedule import Rechecks, Schedule, in_turn
from agent.engine.unchanged import Unchanged
from agent.engine.worlds import Worlds
from agent.findings.ledger import Ledger, Place
from agent.findings.said import Said, level_of
from agent.inventory.blindness import begin_blind
from agent.inventory.disk import Disk
from agent.inventory.file_times import SERVED_VOLUMES
from agent.inventory.hints import PERIODIC, Hint, HintKind
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import SettingsBook
from agent.inventory.transitions import Transition
from agent.judging.base import Detector
from agent.layout.releases import ReleaseRange

RECHECKS_US = (1_500_000, 6_000_000, 11_000_000, 31_000_000, 61_000_000)
"""After its last change a task is judged again at these distances: rules that wait are due by then."""
LATE_US = 31_000_000  # the same for an application

SUMMARY_US = SUMMARY_S * 1_000_000
SUMMARIES = 1_000
BUSY_SUMMARIES, QUIET_SUMMARIES = 400, 100
"""Up to `SUMMARIES` tasks are summarised every minute. Of more, so many of those that changed and of the others, each
in turn; what the first ones leave goes to the others: at 10,000 quiet tasks each waits up to twenty minutes."""

HEARTBEAT_US = HEARTBEAT_S * 1_000_000
REPEAT_US = REPEAT_S * 1_000_000
RESCAN_US = 60_000_000
_Ask = Callable[[], bool]
_Choose = Callable[[Application], bool]


@dataclass(slots=True)
class _ChangeBatch:
    """What a batch of hints brought: applications that are new, and all that is to be judged because of it."""

    at_us: int  # time of the batch
    introduced: list[tuple[Application, ReleaseRange]] = field(default_factory=list)
    """New applications, with the releases that their `configuration` record names."""
    tasks: dict[str, tuple[Application, Task]] = field(default_factory=dict)  # by path
    applications: dict[str, Application] = field(default_factory=dict)
    at_once: set[str] = field(default_factory=set)
    """Paths of tasks, and ids of applications, of which more happened than a step of a steady run."""


@dataclass(slots=True)
class Pipeline:
    """Watches one state directory."""

    disk: Disk  # what to read through
    settings: SettingsBook  # what the operator said
    started_us: int  # when the agent started
    emit: Callable[[Record], None]  # takes every record, in order
    on_fault: Callable[[str, Exception], None] = lambda detector, error: None
    """Takes (detector id, exception) when a detector fails."""
    detectors: tuple[Detector, ...] = DETECTORS
    """The registered detectors; those that are disabled are taken out."""
    disabled: Disabled = field(default_factory=dict)
    """They open no finding, and what an earlier run left open is closed."""
    stopwatch: Callable[[], float] = lambda: 0.0
    """Gives seconds that go on; measures what a detector costs. Without one nothing is measured."""
    rescan_us: int = RESCAN_US
    """Distance between rescans; 0 = none: another part walks, bit by bit (`reread`)."""
    wants_summaries: bool = True
    """Whether anyone takes `summary` records: of ten thousand tasks 500 are made every minute."""
    wants_transitions: bool = True  # whether anyone takes `transition` records
    tempo_us: int = TEMPO_US  # how long a step of a steady run waits for a judgement at most
    ledger: Ledger = field(default_factory=Ledger)
    said: Said = field(default_factory=Said)
    looker: DirectoryReader = field(init=False)
    profiles: Profiles = field(init=False)
    judges: DetectorRunner = field(init=False)
    worlds: Worlds = field(init=False)
    follow: Follow = field(init=False)
    file_clock: FileClock = field(init=False)
    rescans: dict[str, int] = field(default_factory=dict)
    revision: int = 0  # counts changes and findings: the same number means that nothing happened in between
    _rechecks: Rechecks = field(default_factory=lambda: Rechecks(RECHECKS_US))
    _late: Schedule = field(default_factory=Schedule)
    _timers: Schedule = field(default_factory=Schedule)
    _reported_until_us: int = 0
    _summarised: int = 0
    _summarised_busy: int = 0

    def __post_init__(self) -> None:
        """Wire the steps and plan the first beats."""
        self.looker = DirectoryReader(self.disk, self.started_us)
        self.file_clock = FileClock(self.inventory, self.looker.observer)
        self.profiles = Profiles(self.settings)
        self.follow = Follow(self.settings, self.tempo_us)
        self.detectors = tuple(x for x in self.detectors if x.meta.id not in self.disabled)
        unchanged = Unchanged(self.looker.readings)
        self.judges = DetectorRunner(
            self.detectors, self.looker.inventory, self.settings, self.profiles, self.ledger, self._say,
            self.on_fault, self.stopwatch, unchanged,
        )  # fmt: skip
        self.worlds = Worlds(self.inventory, self.settings, self.detectors, self.on_fault, unchanged)
        self._timers.schedule("heartbeat", self.started_us)
        self._timers.schedule("summary", self.started_us + SUMMARY_US)
        self._timers.schedule("settings", self.started_us + REPEAT_US)
        if self.rescan_us:
            self._timers.schedule("rescan", self.started_us + self.rescan_us)

    @property
    def inventory(self) -> Inventory:
        """All that is known."""
        return self.looker.inventory

    @property
    def stats(self) -> dict[str, DetectorStats]:
        """How each detector fared."""
        return self.judges.stats

    def handle(self, hints: Iterable[Hint], now_us: int) -> None:
        """Follow hints and judge what they changed."""
        news = _ChangeBatch(now_us)
        for hint in hints:
            if hint.kind is HintKind.RESCAN:
                self.rescans[hint.cause] = self.rescans.get(hint.cause, 0) + 1
            elif self.looker.inventory.volume in SERVED_VOLUMES:
                self.file_clock.note(hint)
            self._publish_transitions(
                self.looker.hint(hint, now_us, lambda changes: self._publish_transitions(changes, news)), news
            )
        self._judge_news(news)

    def resume(
        self, known: Inventory, findings: Iterable[tuple[Place, str, Finding]], until_us: int, reason: str
    ) -> None:
        """Go on where an earlier agent ended; call it before anything else.

        `findings`: place, subject and finding of everything that its ledger remembered. `until_us`: until when that
        was right; the time since then is blind.
        """
        self.looker.resume(known, until_us)
        self.file_clock.resume(known)
        begin_blind(self.inventory, until_us, "agent-away", detail=reason)
        for place, subject, finding in findings:
            self._take_back(place, subject, finding)
        self._reported_until_us = until_us
        for application in self.inventory.applications.values():
            self._note_told(application, until_us)
            if application.exists:
                self._configure(application, self.started_us)
            for task in application.tasks.values():
                if task.walk is not None or until_us - task.changed_us < RECHECKS_US[-1]:
                    self._rechecks.restart(task.path, self.started_us)  # what was to be judged later still is

    def _take_back(self, place: Place, subject: str, finding: Finding) -> None:
        """Take back a finding; an open one of a disabled detector is closed, and set aside until that is enabled."""
        is_asked, was_asked = finding.detector in self.stats, finding.resolved_at_us is None
        if finding.status is Status.RESOLVED or (is_asked and was_asked):
            self.ledger.resume(place, subject, finding)
        elif not is_asked:
            if was_asked:
                why = self.disabled.get(finding.detector)
                self._say(closed(finding, why, self.started_us), self.started_us)
            aside = replace(finding, resolved_at_us=finding.resolved_at_us or self.started_us)
            self.ledger.set_aside.append((place, subject, aside))
        elif is_there(self.inventory, finding):  # its history may be over; what is of no store opens anew
            again = replace(finding, resolved_at_us=None)
            self.ledger.resume(place, subject, again)
            self._say(again, self.started_us)

    def next_us(self, *, but_locks: bool = False) -> int:
        """When `tick` must be called at the latest; `but_locks`: because of anything that `rest` does not do."""
        due_us = self.looker.next_us(but_locks=but_locks)
        for schedule in (self._rechecks, self._late, self._timers, self.follow.waiting):
            next_us = schedule.next_us()
            if next_us is not None and next_us < due_us:
                due_us = next_us
        return due_us

    def rest(self, now_us: int) -> bool:
        """Ask for the locks that are asked for often; return whether they are as they were and nothing else is due."""
        if self.next_us(but_locks=True) <= now_us:
            return False
        changes = self.looker.polls.poll(now_us)
        self._conclude(changes, now_us)
        return not changes

    def run_until(self, until_us: int) -> int:
        """Let time pass up to (not including) a moment, on a disk that does not change; give what is due next."""
        while (due_us := self.next_us()) < until_us:
            if self.rest(due_us):
                self.looker.polls.pass_over(min(until_us, self.next_us(but_locks=True)))
            else:
                self.tick(due_us)
        return due_us

    def shift(self, by_us: int) -> None:
        """Move every time that is planned: the clock was set."""
        self.revision += 1
        for schedule in (self._rechecks, self._late, self._timers, self.follow.waiting):
            schedule.shift(by_us)
        self.looker.shift(by_us)
        self.said.shift(by_us)
        self.inventory.started_us += by_us

    def tick(self, now_us: int) -> None:
        """Do what is due by the agent's own clock."""
        changes: list[Transition] = []
        if now_us >= self.looker.next_us():
            changes += self.looker.tick(now_us)
        beats = self._timers.pop_due(now_us)
        if "rescan" in beats:
            self._timers.schedule("rescan", now_us + self.rescan_us)
            self.rescans[PERIODIC] = self.rescans.get(PERIODIC, 0) + 1
            changes += self.looker.rescan("", now_us, Source.RESCAN, PERIODIC)
        self._conclude(changes, now_us)
        batch: Batch = {}
        for path in self.follow.waiting.pop_due(now_us):
            self._rechecks.restart(path, now_us - self._rechecks.first_us)
        for path in self._rechecks.pop_due(now_us):
            self.follow.waiting.drop(path)
            application = self.inventory.applications[path.partition("/")[0]]
            task = application.tasks[path.partition("/")[2]]
            self.judges.judge_task(now_us, application, task, batch)
        for name in self._late.pop_due(now_us):
            self._judge_application(self.inventory.applications[name], now_us, batch)
        if "heartbeat" in beats:
            self._timers.schedule("heartbeat", now_us + HEARTBEAT_US)
            self.beat(now_us)
        if "settings" in beats:
            self._timers.schedule("settings", now_us + REPEAT_US)
            for application in self.inventory.applications.values():
                if application.exists:
                    self._configure(application, now_us)
        if "summary" in beats:
            self._timers.schedule("summary", now_us + SUMMARY_US)
            self.summarise(now_us, everything=False)

    def reread(self, path: str, now_us: int) -> list[Transition]:
        """Read one directory and what is below it, and judge what changed unannounced; return it."""
        changes = self.looker.rescan(path, now_us, Source.RESCAN, PERIODIC)
        self._conclude(changes, now_us)
        return changes

    def read_application(self, application_id: str, now_us: int) -> None:
        """Read an application's own files only: lock, process metadata."""
        self._conclude(self.looker.read_application(application_id, now_us), now_us)

    def scan(self, now_us: int) -> None:
        """Read everything once and judge it."""
        self.handle([Hint("", HintKind.RESCAN, now_us, cause="start")], now_us)

    def confirm(self, now_us: int) -> None:
        """Read a second time what a single reading does not settle: for a scan, which has no later one."""
        self._conclude(self.looker.confirm(now_us), now_us)

    def beat(self, now_us: int) -> None:
        """Say again what is open, emit a heartbeat that counts it, and judge the agent itself."""
        is_open = self.ledger.open_findings()
        for body in self.said.due(is_open, now_us):
            self.emit(Record(Kind.FINDING, now_us, body))
        body = heartbeat_body(self.inventory, self._reported_until_us)
        self.emit(Record(Kind.HEARTBEAT, now_us, {**body, **level_of(is_open)}))
        self._reported_until_us = now_us
        note_nested(self.inventory, self.disk)
        self.judges.judge_agent(now_us)

    def summarise(
        self, now_us: int, *, everything: bool = True, has_time: _Ask = lambda: True, whom: _Choose = bool
    ) -> None:
        """Emit a summary of every task, or only of those whose turn it is, and judge them once more.

        `everything`: of every task; those that changed last come first where they are many. `has_time`: asked
        before every task: a pod that ends does not wait.
        """
        batch: Batch = {}
        for application, task in filter(lambda x: whom(x[0]), self._due(now_us, everything=everything)):
            if not has_time():
                break
            if task.exists and self.wants_summaries:
                body = summary_body(application, task, self.profiles.of(application))
                self.emit(Record(Kind.SUMMARY, now_us, body))
            self.judges.judge_task(now_us, application, task, batch)
            known = self.judges.know(application, batch)
            self.worlds.reconsider(
                application, task, known, now_us, at_once=self.ledger.read_once_us is not None
            )
        for application in filter(whom, self.inventory.applications.values()):
            self.worlds.decide(application, self.judges.know(application, batch), now_us)
            self._judge_application(application, now_us, batch)

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

    def tell(self, finding: Finding, now_us: int) -> None:
        """Say, and remember, what no detector found and what is over as it is said."""
        place = Place(finding.detector, finding.application_id, finding.task_id)
        self.ledger.resume(place, finding.incident_id, finding)
        self._say(finding, now_us)

    # -- judging ----------------------------------------------------------------------------------------

    def _conclude(self, changes: list[Transition], now_us: int) -> None:
        if not changes:
            return
        news = _ChangeBatch(now_us)
        self._publish_transitions(changes, news)
        self._judge_news(news)

    def _publish_transitions(self, changes: list[Transition], news: _ChangeBatch) -> None:
        """Emit what changed, and note who is to be judged when all of it is known."""
        self.revision += len(changes)
        inventory = self.looker.inventory
        for change in changes:
            application = inventory.applications[change.application]
            news.applications[application.id] = application
            task = application.tasks.get(change.task or "")
            if task is None or not self.follow.is_step(task, change):
                news.at_once.update((application.id, task.path) if task else (application.id,))
            if change.change is Change.APPLICATION_SEEN:
                news.introduced.append((application, self._configure(application, news.at_us)))
            if self.wants_transitions:
                self.emit(Record(Kind.TRANSITION, news.at_us, transition_body(application, change)))
            if task is not None:
                news.tasks[task.path] = (application, task)
                identity = str(change.facts.get("identity"))
                if change.change is Change.STORE_CREATED:
                    for finding in self.ledger.put_back(application.id, task.id, identity, news.at_us):
                        self._say(finding, news.at_us)
            elif change.change in (Change.PROCESS_STARTED, Change.PROCESS_ENDED):
                # whether a process lives decides what a released task or a half-done deletion means
                news.tasks.update((x.path, (application, x)) for x in application.tasks.values())
                news.at_once.update(x.path for x in application.tasks.values())

    def _judge_news(self, news: _ChangeBatch) -> None:
        for application, range_ in news.introduced:
            if self.profiles.of(application).range != range_:  # by what the rest of a long walk found
                self._configure(application, news.at_us)
        batch: Batch = {}
        for path, (application, task) in news.tasks.items():
            if path not in news.at_once and not self.ledger.pending(application.id, task.id):
                if path not in self.follow.waiting.due:  # its time is counted from the first step that waits
                    self.follow.waiting.schedule(path, news.at_us + self.tempo_us)
                continue
            self.follow.waiting.drop(path)
            self._rechecks.restart(path, news.at_us)
            self.judges.judge_task(news.at_us, application, task, batch)
        for application in news.applications.values():
            if application.id in news.at_once:
                self._judge_application(application, news.at_us, batch)
            self._late.schedule(application.id, news.at_us + LATE_US)

    def _judge_application(self, application: Application, now_us: int, batch: Batch) -> None:
        decision, is_decided = self.worlds.decision(application.id), self.worlds.is_decided(application.id)
        self.judges.judge_application(now_us, application, batch, decision, is_decided=is_decided)

    def _configure(self, application: Application, now_us: int) -> ReleaseRange:
        profile = self.profiles.of(application)
        settings = self.settings.of(application.id)
        self._note_told(application, now_us)
        body = configuration_body(application, settings, profile.range, self.disabled)
        self.emit(Record(Kind.CONFIGURATION, now_us, body))
        return profile.range

    def _note_told(self, application: Application, until_us: int) -> None:
        """Take down what is told; where another value was told before, it held until then."""
        for name, value in self.settings.of(application.id).told().items():
            if (before := application.told.get(name, value)) != value:
                application.changed_us[name], application.former[name] = until_us, before
            application.told[name] = value

    def _say(self, finding: Finding, now_us: int) -> None:
        self.revision += 1
        self.said.note(finding, now_us)
        self.emit(Record(Kind.FINDING, now_us, finding.body()))
