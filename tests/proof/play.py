"""Play a script with the scenarios of this repository through the agent, and ask what it said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from typing import NamedTuple

from agent.contract.events import Kind, Level, Severity
from agent.detectors import DETECTORS
from agent.engine.pipeline import Pipeline
from agent.judging.base import Detector
from tests.agent.home.restarting import away
from tests.proof.classes import Script
from tests.proof.eras import Era
from tests.proof.life import GONE, GONE_ALONE, UNKNOWN, Word
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, App, Scenario
from tests.support.scenario_database import SimDatabase

TASK, SIBLING = "0_0", "0_1"
SEGMENTS = (0, 60_000)
CHANGELOG = "app-s-changelog-0"


class Told(StrEnum):
    """What an operator says."""

    ALL = "everything"
    TWO = "guarantee and release"


class Lost(StrEnum):
    """How an agent comes to hear nothing of some words."""

    BEFORE_IT = "started late"
    POLLED = "polled volume"
    TOLD = "overflow"
    RESTARTED = "restarted with its memory"


class Unheard(NamedTuple):
    """Words of which an agent hears nothing: it sees the disk after them, and on a polled volume after each other."""

    first: int
    after: int
    how: Lost


class Said(NamedTuple):
    """A finding of warning or above, in one of its states; `at_end` = not before the last word."""

    detector: str
    level: str
    severity: str
    confidence: str
    at_end: bool

    @property
    def is_certain(self) -> bool:
        return (self.severity, self.confidence) == ("critical", "confirmed")


EVERYTHING = {
    "state_cleanup_delay_ms": 600_000,
    "delete_retention_ms": 86_400_000,
    "session_timeout_ms": 45_000,
    "max_warmup_replicas": 2,
    "probing_rebalance_interval_ms": 600_000,
}
GAP_S = 5.0
AGED_S = 1_300
QUESTIONS = ("missing-fact", "undecided")
"""They ask for a fact."""
TICK_S = 20
LONG_S = 130
SEEN_S = 1.0
DECIDED_S = 75
"""What a detector waits for at most, once a process is gone."""
SOON_S = {
    ("start", "open"): 1.0,
    ("start", "pass"): 1.0,
    ("start", "refused"): 1.0,
    ("segment", "ckpt"): 0.05,
    ("segment", "reopen"): 0.05,
    ("ckpt", "ckpt"): 0.05,
    ("ckpt", "shut"): 0.02,
    ("ckpt", "delck"): 0.02,
    ("open", "shut"): 0.02,
    ("open", "wipe"): 0.05,
    ("open", "reopen"): 0.05,
    ("wipe", "reopen"): 0.05,
    ("refused", "rm"): 0.005,
    ("shut", "rm"): 0.005,
    ("shut", "ckpt"): 0.005,
    ("rm", "open"): 0.4,
    ("shut", "exit"): 0.05,
    ("ckpt", "ended"): 0.02,
    ("ended", "exit"): 0.05,
    ("ckpt", "dirty"): 0.02,
    ("dirty", "exit"): 0.05,
    ("shut", "kill"): 0.02,
    ("torn", "kill"): 0.01,
    ("tick", "rm"): 0.5,
    ("age", "rm"): 0.5,
    ("age", "torn"): 0.5,
}
"""What follows within one action of Kafka Streams; everything else is five seconds apart."""


def play(
    era: Era,
    script: Script,
    told: Told,
    *,
    sibling: bool = False,
    detectors: tuple[Detector, ...] = DETECTORS,
    unheard: Unheard | None = None,
) -> frozenset[Said]:
    """Give what the agent says of a class, at any time.

    Args:
        era: The era.
        script: What happens.
        told: What the operator says.
        sibling: The process has a second task that does nothing.
        detectors: Of the agent.
        unheard: What it does not hear.
    """
    run = scenario(era, told, detectors)
    stage, earlier = Stage(run, sibling=sibling, puts_per_record=2 if era.versioned else 1), 0
    agent, restart = run.world.pipeline, ExitStack()
    if unheard and unheard.how is Lost.POLLED:
        run.world.through = lambda hints: ()
    for number, word in enumerate((*script, None)):
        if unheard and unheard.how is Lost.POLLED and run.world.pipeline:
            _visits(run)
        if unheard and number == unheard.first:
            _stops_hearing(run, unheard.how, restart)
        if unheard and number == unheard.after:
            _sees_again(run, agent, unheard.how, restart)
        if word is not None:
            earlier = len(run.world.records)
            stage.plays(word)
    run.wait(DECIDED_S)
    assert not run.world.faults, run.world.faults
    return frozenset(loud(run, earlier))


def _stops_hearing(run: Scenario, how: Lost, restart: ExitStack) -> None:
    if how is Lost.RESTARTED:
        said = list(run.world.records)
        restart.enter_context(away(run))
        run.world.records.extend(said)
    run.world.pipeline = None


def _sees_again(run: Scenario, agent: Pipeline | None, how: Lost, restart: ExitStack) -> None:
    run.wait(SEEN_S)
    if how is Lost.RESTARTED:
        restart.close()
        return
    run.world.pipeline = agent
    if how is Lost.BEFORE_IT:
        run.world.watch()
    elif how is Lost.TOLD:
        run.world.overflows()
    else:
        _visits(run)


def _visits(run: Scenario) -> None:
    """Read everything; a poll of the locks comes first where it is due."""
    agent, now_us = run.world.pipeline, run.world.now_us
    assert agent is not None
    if agent.next_us() < now_us:
        agent.tick(now_us)
    agent.reread("", now_us)


def scenario(era: Era, told: Told, detectors: tuple[Detector, ...]) -> Scenario:
    """Begin a scenario of an era."""
    settings: dict[str, object] = {}
    if told is Told.ALL:
        settings = {**EVERYTHING, "commit_interval_ms": 30_000}
    if told is Told.ALL or era.transactional:
        settings["enable_transactional_statestores"] = str(era.transactional).lower()
    run = Scenario(
        era.release,
        "exactly_once_v2" if era.eos else "at_least_once",
        int(era.old) if told is Told.ALL else None,  # up to 2.5 there is no standby that nobody configured
        stores={"s": WINDOWED if era.windowed else KEY_VALUE if era.versioned else TIMESTAMPED},
        told=settings,
        detectors=detectors,
    )
    run.transactional = era.transactional
    return run


def loud(run: Scenario, earlier: int) -> Iterator[Said]:
    """List findings of warning or above, but for those that only ask for a fact."""
    for number, record in enumerate(run.world.records):
        body = record.body
        if (
            record.kind is Kind.FINDING
            and body["severity"] != Severity.INFO
            and body["detector"] not in QUESTIONS
            and body["level"] != Level.SELF
        ):
            detector, level = str(body["detector"]), str(body["level"])
            severity, confidence = str(body["severity"]), str(body["confidence"])
            yield Said(detector, level, severity, confidence, at_end=number >= earlier)


class Stage:
    """Plays words: each has a method of its name."""

    def __init__(self, run: Scenario, *, sibling: bool, puts_per_record: int = 1) -> None:
        """Begin with an empty disk.

        `puts_per_record`: A versioned store puts the latest value, and the one before it into a segment; like a plain
        one it has the default family only (RocksDBVersionedStore.doPut, 3.5.0).
        """
        self.run, self.sibling, self.puts_per_record = run, sibling, puts_per_record
        self.app: App
        self.before, self.starting = "", False

    def plays(self, word: Word) -> None:
        """Play one word, as long after the one before as it comes; the sibling is opened after the start-up pass."""
        if self.starting and word[0] not in ("pass", "refused", "exit", "kill"):
            self.starting = False
            self.run.wait(0.5)
            self.app.opens(SIBLING)
            self.app.restores(SIBLING, UNKNOWN, puts=0)
        soon = (
            (self.before, word[0])
            if (self.before, word[0]) != ("open", "shut") or not any(word[1:])
            else None
        )
        self.run.wait(SOON_S.get(soon, GAP_S) if soon else GAP_S)
        getattr(self, f"_{word[0]}")(*word[1:])
        self.before = word[0]

    def _databases(self) -> list[SimDatabase]:
        return [x for _, x in sorted(self.run.task(TASK).databases.items())]

    def _start(self) -> None:
        self.app = self.run.start()
        self.starting = self.sibling

    def _exit(self) -> None:
        if self.sibling and not self.starting:
            self.app.closes(SIBLING, UNKNOWN)
        self.app.ends()

    def _kill(self) -> None:
        self.app.crash()

    def _open(self, _deletes: bool = False) -> None:
        self.app.opens(TASK)

    def _segment(self, window: int) -> None:
        self.app.puts(TASK, 0, segment=SEGMENTS[window])

    def _wipe(self) -> None:
        self.app.wipes(TASK)

    def _reopen(self, puts: int) -> None:
        self._puts(puts)
        self.app.begins_restoring(TASK, on=not self._databases()[0].bulk_loading)

    def _pass(self, offset: int | None) -> None:
        for database in self._databases():
            self.app._open_database(database)
            self._puts(offset=offset, into=database)
        for database in self._databases():
            database.put_status(0)
            database.close()

    def _refused(self) -> None:
        self._databases()[0].refuse()

    def _leaks(self) -> None:
        """The older segment stays open, the newer one is refused: the task can't be opened."""
        older, newer = self._databases()
        self.app._open_database(older)
        newer.refuse()
        self.app.held.add(TASK)

    def _flush(self, *amounts: int | None) -> None:
        self._puts(*amounts)
        self._databases()[-1].flush()

    def _behind(self, *amounts: int | None) -> None:
        """The older of two segments is flushed."""
        older = self._databases()[0]
        self._puts(*amounts, into=older)
        older.flush()

    def _cut(self, *amounts: int | None) -> None:
        """The older of two segments is closed."""
        older = self._databases()[0]
        self._puts(*amounts, into=older)
        older.put_status(0)
        older.close()

    def _shut(self, *amounts: int | None) -> None:
        if amounts[3:]:
            self._puts(*amounts[3:], into=self._databases()[0])
        self._puts(*amounts[:3])
        for database in self._databases():
            database.put_status(0)  # 4.3 and later
        self.app._close_stores(TASK)
        self.app.unlocks(TASK)

    def _dirty(self, puts: int) -> None:
        """The stores are closed, and the checkpoint is deleted: 2.2 to 2.5."""
        self._puts(puts)
        self.app.closes_dirty(TASK)

    def _ended(self, puts: int, offset: int) -> None:
        """The stores are closed, then the checkpoint is written, then the task is let go of: up to 2.1."""
        self._puts(puts)
        self.app._close_stores(TASK)
        self._ckpt(offset, 0)
        self.app.unlocks(TASK)

    def _ckpt(self, offset: int, puts: int) -> None:
        self._puts(puts)
        if offset == UNKNOWN and not self.app.habits.since(2, 6):
            self.app.flushes(TASK)
            self.app.write_checkpoint(TASK, {})
        else:
            self.app.checkpoints(TASK, offset)

    def _delck(self) -> None:
        self.app._delete_checkpoint(self.run.task(TASK))

    def _rm(self) -> None:
        if self.before in ("age", "tick"):
            self.app.cleaner.deletes(TASK)
        else:
            self.app.deletes_directory(TASK)

    def _torn(self) -> None:
        folder = f"{TASK}/s" if WINDOWED in self.run.stores.values() else "rocksdb"
        self.app.cleaner.deletes(TASK, stop_after=folder)
        self.run.task(TASK).databases.clear()

    def _age(self) -> None:
        self.run.wait(AGED_S)

    def _tick(self) -> None:
        self.run.wait(TICK_S)

    def _long(self) -> None:
        self.run.wait(LONG_S)

    def _puts(
        self,
        puts: int | None = 0,
        offset: int | None = None,
        late: int | None = 0,
        *,
        into: SimDatabase | None = None,
    ) -> None:
        """Put records: those before the offset, the offset (4.3 and later), those after it."""
        database = into or next(iter(self._databases()[::-1]), None)
        if database is None:
            return
        if puts:
            database.put(puts * self.puts_per_record)
        if offset is not None:
            if offset != GONE:
                database.put_offset(CHANGELOG, offset)
                database.put_position()
            if offset in (GONE, GONE_ALONE):
                database.drop_offset(CHANGELOG)
                database.put_position()
        if late:
            database.put(late * self.puts_per_record)
