"""Detector `orphaned-task`: a task directory that no process opens and no cleaner takes.

Fires when a directory with data has been free for more than two cleanup delays while its process lives and no
cleaner is at work on it. Info: the cleaner runs only in state RUNNING, and a restoration of any task, however long, is
another state. Warning on 4.3.0 where the start-up pass opened it and no thread did since: its lock is kept forever
(KAFKA-20663), unless a task of the same process seems to restore.
Clears when a process opens it or it is deleted.

Source:
    KafkaStreams.start (2.1.0, 3.9.1, 4.3.0): the cleaner asks for State.RUNNING;
    StateDirectory.initializeStartupStores, cleanRemovedTasks at 4.3.0; recorded as
    `kafka-20663-startup-lock-4.3.0`, twin `control-20663-startup-lock-4.3.1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agent.contract.events import Confidence, Level, Severity
from agent.inventory.model import Application, Session, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, TaskCase, Truth, Twin, seconds
from agent.judging.rule import Docket, Loudness, Proof, Rule, TaskStory, derived, detector
from agent.judging.upstream import KAFKA_20663
from agent.judging.wording import assumptions
from agent.layout import names

META = DetectorMeta(
    id="orphaned-task",
    title="Task directory that no process opens and no cleaner deletes",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    needs=("state_cleanup_delay_ms", "kafka_streams_version"),
    upstream=(KAFKA_20663,),
    next_action=(
        "No data is at risk, but the directory takes disk space. On 4.3.0 only an upgrade helps:"
        " a restart opens it again. On any other release the cleaner deletes it once the instance is RUNNING."
    ),
    consequence="It takes disk space, and puts no data at risk.",
    alert_after_m=60,
    twin=Twin("N7, the cleaner will take what was left behind", "benign-move-3.9.2"),
)

DELAYS = 2
"""The cleaner runs once a delay, and takes what has been free for one: after two it has had its turn."""
SLACK_US = 5_000_000  # no source: a pass over many directories takes its time, and a deletion is read late
HANDED_OUT_US = 30_000_000
"""A rebalance takes seconds; a task that this instance keeps has been opened by then."""
SEEN_LATE_US = 1_000_000  # lock polling sees a process up to a second after its first work
WAITS = "The cleaner runs only in state RUNNING: while a task of this instance restores, it takes nothing."


class Free(TaskStory):
    """A directory with data that no process holds; `alive_us` = since when its process lives, None = it does not."""

    issues = (KAFKA_20663,)
    delay_ms: int
    alive_us: int | None
    subject = derived(lambda x: f"incarnation {x.task.incarnation}")
    opened_at_us = derived(lambda x: x.free_us + x.limit_us)

    @property
    def free_us(self) -> int:
        """Since when the cleaner may count."""
        return max(self.task.released_us or 0, self.task.mtime_us, self.alive_us or 0)

    @property
    def kept(self) -> Truth:
        """Whether a release keeps the locks of its start-up pass."""
        return self.case.says(Fact.STARTUP_LOCK_KEPT)

    @cached_property
    def is_locked(self) -> bool:
        """Whether the start-up pass keeps its lock for good."""
        application = self.case.application
        return (
            self.kept is Truth.YES
            and _only_the_pass_opened(application, self.task)
            and not self.case.once(_may_restore, application)
        )

    @property
    def is_configured(self) -> bool:
        """Whether the delay is known."""
        return self.case.settings.is_configured("state_cleanup_delay_ms")

    @property
    def limit_us(self) -> int:
        """How long it may be free.

        Behind that lock no delay ever ends: without a configured one it is enough that tasks have been handed out.
        """
        unlimited = self.is_locked and not self.is_configured
        return HANDED_OUT_US if unlimited else DELAYS * self.delay_ms * 1_000 + SLACK_US


def _free(case: TaskCase) -> Iterator[Free]:
    task, delay_ms = case.task, case.settings.assumed("state_cleanup_delay_ms")
    if delay_ms is None or task.held or not task.exists or task.is_global:
        return
    if any(store.databases for store in task.stores.values()):
        yield Free(case, delay_ms, case.once(_alive_since, case.application))


def _only_the_pass_opened(application: Application, task: Task) -> bool:
    """Return whether this process opened the stores exactly once: in its start-up pass, and for no assignment since.

    An assignment takes the lock over and gives it back; what this process has made was opened for one. A process whose
    start was not seen proves nothing.
    """
    life = application.life
    if life is None:
        return False
    since_us = life.started_us - SEEN_LATE_US
    opened = {
        sum(at_us >= since_us for at_us in database.reopened_us) if database.born_us < since_us else 0
        for store in task.stores.values()
        for database in store.databases.values()
        if database.all_reopens
    }
    return opened == {1}


def _may_restore(application: Application) -> bool:
    """Return whether a store that is held was flushed in its session, and holds no offset of that session yet."""
    stores = [store for task in application.tasks.values() for store in task.stores.values()]
    return any(_has_no_offset_yet(store, store.session) for store in stores if store.session is not None)


def _has_no_offset_yet(store: Store, session: Session) -> bool:
    return (session.last is None and session.stored_offset is None) and store.puts > session.puts_at_open


def _alive_since(application: Application) -> int | None:
    if application.life is not None:
        return application.life.started_us
    if not application.task_ever_held:
        return None
    return min([task.held_since_us for task in application.tasks.values() if task.held], default=None)


def _loudness(x: Free, proof: Proof | None) -> Loudness:
    """The cleaner runs only in state RUNNING, and a restoration of any task, however long, is another state."""
    if proof is not None:
        return Loudness(Severity.WARNING, Confidence.CONFIRMED if proof.certain else Confidence.SUSPECTED)
    if x.kept is Truth.MAYBE:
        return Loudness(Severity.INFO, Confidence.UNKNOWN, missing_facts=("kafka_streams_version",))
    return Loudness(Severity.INFO, Confidence.SUSPECTED)


# What it says


def _summary(x: Free, proof: Proof | None) -> str:
    delay = f" (cleanup delay {x.delay_ms / 1000:g} s)" if x.is_configured else ""
    why = f"{proof.why}, so no cleaner deletes it." if proof else f"no cleaner has taken it. {WAITS}"
    return (
        f"Task {x.task.id}: its directory has been free for {seconds(x.case.waited_us(x.free_us))}{delay} while the"
        f" process lives; {why}"
    )


def _evidence(x: Free, _: Proof | None) -> Iterator[Evidence]:
    yield Evidence(x.alive_us or 0, "the process lives", f"{x.case.application.id}/{names.LOCK_FILE}")
    yield Evidence(x.free_us, "free since then", x.place)
    yield from assumptions(x.case, x.free_us, "state_cleanup_delay_ms")


RULE = Rule[Free](
    "a directory is free for longer than a cleaner waits, while its process lives",
    innocents={
        "its process ended: no cleaner is to be expected": lambda x: x.alive_us is None,
        "a cleaner is at work on it": lambda x: x.task.walk is not None,
    },
    unknowns={"the cleaner may take it yet": lambda x: x.case.waited_us(x.free_us) <= x.limit_us},
    proofs=(
        lambda x: Proof("the start-up pass keeps its lock", certain=x.is_configured) if x.is_locked else None,
    ),
    loudness=_loudness,
    summary=_summary,
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_free, (RULE,)))
