"""The eight steps together: batching, fences, records, memory."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest

from agent.contract.codec import Encoder, decode
from agent.contract.events import Kind, Origin, Severity
from agent.detectors import DETECTORS
from agent.engine.pipeline import HEARTBEAT_US, RESCAN_US, SUMMARY_US
from agent.inventory.hints import Hint, HintKind
from agent.inventory.model import CHECKPOINTS_KEPT, FLUSHES_KEPT, PROCESSES_KEPT, SESSIONS_KEPT
from agent.judging.base import Detector, Scope, TaskCase, Verdict
from agent.replay.trace import Operation
from tests.agent.engine.playing import (
    Run,
    application,
    checkpoint,
    deletion,
    kill,
    opening,
    operations_of,
    release,
    run_of,
    second,
    sets_of,
)

BATCHES = (1, 2, 3, 5, 8, 20, 60)
SPANS_US = (1_000, 20_000, 100_000)
SEEDED = [
    pytest.param(span, seed, marks=[pytest.mark.slow] if seed else [])
    for span in SPANS_US
    for seed in range(4)
]
Row = tuple[str, str, str, str, str]


def story(run: Run) -> list[Row]:
    """List what was found, apart from what the agent says of itself."""
    return sorted(
        (x.detector, x.task_id or "", x.store or "", x.severity.value, x.confidence.value)
        for x in run.pipeline.ledger.findings()
        if x.severity is not Severity.INFO
    )


@cache
def one_by_one(scenario: str) -> list[Row]:
    return story(run_of(scenario, "pod-a"))


# -- batching -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("span_us", "seed"), SEEDED)
@pytest.mark.parametrize(
    "scenario",
    ["kafka-20685-4.1.2", "kafka-7672-eos", "torn-clean-3.9.2", "kafka-20805-4.3.1", "benign-restart-alos-4.3.1"],
)  # fmt: skip
def test_any_batching_gives_the_same_findings(scenario: str, span_us: int, seed: int) -> None:
    """A busy agent hears of several operations at once, later: it concludes the same, also of a quiet run."""
    expected = one_by_one(scenario)
    assert bool(expected) != scenario.startswith("benign")
    choose = random.Random(f"{scenario}/{span_us}/{seed}")
    run = run_of(scenario, "pod-a", size=lambda: choose.choice(BATCHES), span_us=span_us)
    assert story(run) == expected
    assert run.faults == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scenario", ["kafka-8187-stage2-2.0.1", "kafka-8574-2.1.1"])
def test_any_batching_finds_the_damage(scenario: str, seed: int) -> None:
    """Runs full of hand-overs within milliseconds: suspicions may come and go, the damage is the same."""
    choose = random.Random(f"{scenario}/{seed}")
    run = run_of(scenario, "pod-a", size=lambda: choose.choice(BATCHES), span_us=20_000)
    damage = [row for row in one_by_one(scenario) if row[3] == "critical"]
    assert damage
    assert [row for row in story(run) if row[3] == "critical"] == damage


@pytest.mark.parametrize("scenario", ["kafka-20685-4.1.2", "kafka-8187-stage2-2.0.1"])
def test_hints_that_come_twice_change_nothing(scenario: str) -> None:
    """Every hint may be told twice, and a rescan may come at any time."""
    choose = random.Random(scenario)

    class Twice(Run):
        def play(self, *operations: Operation, lag_us: int = 0) -> None:
            super().play(*operations, lag_us=lag_us)
            hints = [hint for operation in operations for hint in self.player.hints(operation)]
            again = [hint for hint in hints if hint.kind not in (HintKind.DELETED, HintKind.MOVED_OUT)]
            if choose.random() < 0.02:
                again.append(Hint("", HintKind.RESCAN, self.now_us, cause="periodic"))
            if again:
                self.pipeline.handle(again, self.now_us)

    operations, sets = operations_of(scenario, "pod-a"), sets_of(scenario)
    run = Twice(operations[0].at_us, sets)
    for operation in operations:
        run.play(operation)
    run.rest()
    damage = [row for row in one_by_one(scenario) if row[3] == "critical"]
    assert damage
    assert [row for row in story(run) if row[3] == "critical"] == damage


@pytest.mark.parametrize(
    ("scenario", "pod"),
    [("kafka-8574-2.1.1", "pod-a"), ("kafka-7672-eos", "pod-a"), ("kafka-20805-4.3.1", "pod-a")],
)
def test_polls_that_are_passed_over_would_find_nothing(scenario: str, pod: str) -> None:
    """Locks of one process per task (up to 2.6) and of an application: no record comes later, or differs."""

    class EachPoll(Run):
        def until(self, until_us: int) -> None:
            while (due_us := self.pipeline.next_us()) < until_us:
                self.pipeline.tick(due_us)
            self.now_us = max(self.now_us, until_us)

    operations, sets = operations_of(scenario, pod), sets_of(scenario)
    runs = [kind(operations[0].at_us, sets) for kind in (Run, EachPoll)]
    for run in runs:
        for operation in operations:
            run.play(operation)
        run.rest()
    assert runs[0].records == runs[1].records


# -- the fence around a detector ----------------------------------------------------------------------


def failing(detector: Detector) -> Detector:
    def judge(case: TaskCase) -> Iterable[Verdict]:
        raise RuntimeError(f"broken for {case.now_us}")

    return replace(detector, judge=judge)


def test_a_failing_detector_is_fenced_and_counted() -> None:
    """One broken detector silences nobody else; each failure is counted and handed over."""
    broken = "resurrected-checkpoint"
    detectors = tuple(failing(x) if x.meta.id == broken else x for x in DETECTORS)
    run = run_of("kafka-20685-4.1.2", "pod-a", detectors=detectors)
    assert story(run) == one_by_one("kafka-20685-4.1.2")
    stats = run.pipeline.stats[broken]
    assert stats.failures == stats.runs == len(run.faults) > 0
    assert {name for name, _ in run.faults} == {broken}
    assert all(isinstance(error, RuntimeError) for _, error in run.faults)
    others = [x for name, x in run.pipeline.stats.items() if name != broken]
    assert sum(x.failures for x in others) == 0
    assert all(x.runs > 0 for x in others if x is run.pipeline.stats["torn-store"])


def test_a_detector_that_fails_later_keeps_its_findings() -> None:
    """What was found stays open while its detector cannot say anything."""
    original = next(x for x in DETECTORS if x.meta.id == "skipped-eos-wipe")
    fails = False

    def judge(case: TaskCase) -> Iterable[Verdict]:
        if fails:
            raise RuntimeError("broken since")
        return original.judge(case)

    run = run_of("kafka-20685-4.1.2", "pod-a", detectors=(replace(original, judge=judge),))
    (before,) = run.pipeline.ledger.open_findings()
    fails = True
    run.rest(2 * SUMMARY_US)
    assert run.faults
    assert run.pipeline.ledger.open_findings() == [before]


def test_every_scope_is_judged() -> None:
    """Detectors of a task, of an application and of the agent itself all get their turn."""
    assert {detector.meta.scope for detector in DETECTORS} == set(Scope)
    run = Run()
    run.play(*application(1), *opening(1))
    run.rest(2 * SUMMARY_US)
    ran = {x.meta.scope for x in run.pipeline.detectors if run.pipeline.stats[x.meta.id].runs}
    assert ran == set(Scope)


# -- records ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario",
    ["kafka-20685-4.1.2", "kafka-8187-stage2-2.0.1", "dirty-close-kill-4.3.1", "benign-move-3.9.2"],
)
def test_records_keep_the_contract(scenario: str) -> None:
    """Every record of a run encodes and reads back; times never run backwards."""
    run = run_of(scenario, "pod-a")
    origin = Origin("uid", "boot", "pod-a")
    for number, record in enumerate(run.records, start=1):
        data = decode(Encoder(origin).encode(record, number))
        assert data["kind"] == record.kind.value
        for name, value in record.body.items():
            assert data.get(name) == (list(value) if isinstance(value, tuple) else value)
    times = [record.observed_at_us for record in run.records]
    assert times == sorted(times)


def test_an_application_is_introduced_with_its_settings() -> None:
    """The rollup learns what holds for an application before anything else about it."""
    run = Run(sets=["processing_guarantee=exactly_once_v2", "app:num_standby_replicas=1"])
    run.play(*application(1), *opening(1))
    run.play(*application(2, "other"))
    kinds = [record.kind for record in run.records if record.body.get("application_id") == "app"]
    assert kinds[0] is Kind.CONFIGURATION
    told = {x["application_id"]: {s["key"]: (s["value"], s["origin"]) for s in x["settings"]} for x in
            run.of(Kind.CONFIGURATION)}  # fmt: skip
    assert told["app"]["num_standby_replicas"] == ("1", "flag")
    assert told["other"]["num_standby_replicas"] == ("0", "default")
    assert told["other"]["session_timeout_ms"] == (None, "unset")
    assert told["other"]["processing_guarantee"] == ("exactly_once_v2", "flag")


def test_summaries_and_heartbeats_come_by_the_clock() -> None:
    """One summary per task and minute, one heartbeat per half minute, one rescan per minute, all on time."""
    run = Run()
    run.play(*application(1), *opening(1), *opening(1, "app/0_1"), *checkpoint(1, 9))
    run.until(run.started_us + 10 * SUMMARY_US + 1)
    assert len(run.of(Kind.SUMMARY)) == 2 * 10
    assert len(run.of(Kind.HEARTBEAT)) == 10 * SUMMARY_US // HEARTBEAT_US + 1
    assert run.pipeline.rescans == {"start": 1, "periodic": 10 * SUMMARY_US // RESCAN_US}
    last = run.of(Kind.SUMMARY)[-2]
    assert (last["task_id"], last["held"], last["task_incarnation"]) == ("0_0", True, 1)
    assert last["offsets"] == [{"topic": "app-s-changelog", "partition": 0, "offset": 9}]
    assert [row["unsaved_puts"] for row in last["stores"]] == [None]  # no file tells the kind of store
    watched = {"blind": [], "applications": ["app"], "tasks": 2}
    nothing = {"open_criticals": 0, "open_warnings": 0, "open_ids": []}
    assert run.of(Kind.HEARTBEAT)[-1] == watched | nothing


def test_a_deleted_task_has_no_summary() -> None:
    """What is gone is not reported as if it were there."""
    run = Run()
    run.play(*application(1), *opening(1))
    run.play(*release(2))
    run.play(*deletion(3))
    run.until(run.started_us + 2 * SUMMARY_US + 1)
    assert run.of(Kind.SUMMARY) == []
    assert run.of(Kind.HEARTBEAT)[-1]["tasks"] == 0


def test_a_blind_interval_is_in_one_heartbeat_after_its_end() -> None:
    """The rollup learns of every blind interval, also of one that began and ended between two heartbeats."""
    run = Run()
    run.play(*application(1))
    run.until(second(40))
    run.pipeline.handle([Hint("", HintKind.RESCAN, run.now_us, cause="queue-overflow")], run.now_us)
    seen_us = run.now_us
    run.until(second(200))
    told = [x["blind"] for x in run.of(Kind.HEARTBEAT) if x["blind"]]
    assert [[(row["cause"], row["from_us"], row["to_us"]) for row in rows] for rows in told] == [
        [("queue-overflow", seen_us, seen_us)]
    ]


# -- memory -------------------------------------------------------------------------------------------


def test_histories_are_bounded() -> None:
    """A task that is opened, checkpointed and killed a hundred times costs no more than one of a few."""
    run = Run()
    run.play(*application(1), *opening(1))
    lock, app_lock = "app/0_0/rocksdb/s/LOCK", "app/.lock"
    for number in range(100):
        at = 10 + number * 10.0
        run.play(*checkpoint(at, number))
        run.unseen(*kill(at + 1, lock, app_lock))
        run.until(second(at + 3))
        run.unseen(Operation(second(at + 3), "lock", app_lock), Operation(second(at + 3), "lock", lock))
        run.play(Operation(second(at + 3), "create", "app/0_0/rocksdb/s/CURRENT.x"))
    run.until(second(1100))
    application_now = run.pipeline.inventory.applications["app"]
    task = application_now.tasks["0_0"]
    assert len(task.checkpoints) == CHECKPOINTS_KEPT
    assert len(application_now.lives) == PROCESSES_KEPT
    store = task.stores["s"]
    assert 1 <= len(store.sessions) <= SESSIONS_KEPT
    assert all(len(database.flushed) <= FLUSHES_KEPT for database in store.databases.values())
    assert run.faults == []


def test_lives_of_a_task_are_bounded() -> None:
    """A task that is deleted and recreated again and again keeps a few of its former lives."""
    run = Run()
    run.play(*application(1))
    for number in range(40):
        at = 10 + number * 10.0
        run.play(*opening(at, identity=f"id-{number}"))
        run.play(*release(at + 2))
        run.play(*deletion(at + 4))
    run.until(second(500))
    task = run.pipeline.inventory.applications["app"].tasks["0_0"]
    assert task.incarnation == 40
    assert 1 <= len(task.past) <= 8
    assert all(len(store.past) <= 8 for store in task.stores.values())
    assert len(run.pipeline.inventory.blind) == 0


def test_the_clock_always_moves_on() -> None:
    """After a tick the next one is later: a quiet agent does not spin."""
    run = Run()
    run.play(*application(1), *opening(1))
    due = run.pipeline.next_us()
    for _ in range(200):
        run.pipeline.tick(due)
        later = run.pipeline.next_us()
        assert later > due
        due = later


def test_a_late_tick_does_what_is_due_once() -> None:
    """After a pause (a stopped container) beats are not made up for one by one."""
    run = Run()
    run.play(*application(1), *opening(1))
    late_us = second(3_600)
    run.pipeline.tick(late_us)
    assert run.pipeline.next_us() > late_us
    assert len(run.of(Kind.SUMMARY)) == 1


@pytest.mark.parametrize("scenario", ["kafka-7672-eos", "kafka-7672-gap"])
def test_damage_opens_when_it_began(scenario: str) -> None:
    """What was written since the opening time must be reprocessed, so that time is when the store was opened."""
    findings = run_of(scenario, "pod-a").pipeline.ledger.findings()
    (found,) = [finding for finding in findings if finding.detector == "unrestored-store"]
    assert found.opened_at_us == found.evidence[0].at_us
