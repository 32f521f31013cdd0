"""A restarted agent: what it still knows, what it says has changed, and what it says it cannot know."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind, Severity, Status
from agent.inventory.model import Task
from agent.inventory.stores import Shape
from tests.agent.home.restarting import away, told
from tests.support.scenario import KEY_VALUE, Scenario
from tests.support.scenario_script import play


def running(guarantee: str = "at_least_once", release: str = "4.1.2") -> Scenario:
    """Give an application with one task that has written a checkpoint."""
    return play(Scenario(release, guarantee), "start, opens, puts 100, flushes, checkpoints 100, 30 s")


def unseen(run: Scenario, script: str) -> Scenario:
    """Play on while the agent is away."""
    with away(run):
        play(run, script)
    return run


def loud(run: Scenario) -> list[str]:
    """Detectors that say something of the application."""
    return [x.detector for x in run.loud() if x.detector != "auditor-blind"]


def task(run: Scenario) -> Task:
    assert run.world.pipeline is not None
    return run.world.pipeline.inventory.applications["app"].tasks["0_0"]


def test_nothing_happened_while_away() -> None:
    """Nothing is told as a change; the time away is one blind interval with its cause."""
    run = running()
    before = task(run).stores["s"].sessions[-1]
    unseen(run, "120 s")
    assert told(run) == []
    assert task(run).stores["s"].sessions == (before,)
    assert run.world.pipeline is not None
    (interval,) = run.world.pipeline.inventory.blind
    assert interval.cause == "agent-away"
    assert interval.ended_us == run.world.now_us
    assert run.world.now_us - interval.started_us == 120_000_000
    run.wait(60)
    (finding,) = run.findings("auditor-blind")
    assert "agent-away" in finding.summary
    assert finding.severity is Severity.INFO
    assert "cannot" in finding.summary or "stopped" in finding.summary


def test_a_moved_checkpoint_is_reported() -> None:
    """The new offset comes with source baseline and with the time of the file."""
    run = unseen(running(), "10 s, puts 50, flushes, checkpoints 150, 10 s")
    assert set(told(run)) == {("checkpoint-written", "baseline"), ("store-flushed", "baseline")}
    assert task(run).checkpoint is not None
    assert task(run).checkpoint.offsets == {"s": 150}  # type: ignore[union-attr]
    assert task(run).checkpoint.written_us < run.world.now_us - 9_000_000  # type: ignore[union-attr]


def test_a_recreated_task_is_reported_as_gone_and_created() -> None:
    """Deletion and re-creation are both told; who did it is not guessed."""
    run = unseen(running(), "closes 100, deletes_directory, 5 s, opens, 5 s")
    changes = told(run)
    assert {source for _, source in changes} == {"baseline"}
    names = [x for x, _ in changes]
    assert names.index("task-deleted") < names.index("task-created")
    assert task(run).incarnation == 2
    assert [x.shape for x in task(run).past] == [Shape.VANISHED_UNSEEN]
    assert task(run).stores["s"].sessions[-1].created
    run.wait(900)
    assert loud(run) == []


def test_a_recreated_store_is_another_incarnation() -> None:
    """A new IDENTITY is told, and no session of the old store is believed to go on."""
    run = running()
    with away(run):
        play(run, "crash, 1 s, start, delete_tree app/0_0/rocksdb/s")
        run.task("0_0").databases.clear()
        play(run, "opens, 1 s")
    assert {"store-deleted", "store-created"} <= {x for x, _ in told(run)}
    assert len(task(run).stores["s"].sessions) == 1


def test_a_restarted_process_is_reported() -> None:
    """All stores opened again under a lock that is held again: the process was another one."""
    run = unseen(running("exactly_once_v2"), "5 s, stops 100, 2 s, start, opens, 5 s")
    changes = [x for x, _ in told(run)]
    assert changes.count("process-ended") == changes.count("process-started") == 1
    assert "store-opened" in changes
    session = task(run).stores["s"].sessions[-1]
    assert session.attached
    assert len(task(run).stores["s"].sessions) == 1
    run.wait(900)
    assert loud(run) == []


def test_a_process_whose_store_stayed_open_was_not_restarted() -> None:
    """One store that was never let go proves that its process lives on."""
    run = unseen(play(running(), "opens 0_1, 30 s"), "closes 0_1 5, 2 s, opens 0_1, 2 s")
    assert "process-ended" not in {x for x, _ in told(run)}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_clean_stop_while_away_is_not_taken_for_a_crash(guarantee: str) -> None:
    """Stopped in order while nobody looked, started again under the agent's eyes: quiet."""
    run = unseen(play(running(guarantee), "puts 20000, flushes"), "20 s, stops 20100, 60 s")
    play(run, "30 s, start, opens, puts 10, flushes, checkpoints 20110, 900 s")
    assert loud(run) == []


def crashed() -> Scenario:
    """Give a run of exactly-once that was killed with more on disk than its checkpoint says."""
    script = "start, opens, puts 20000, flushes, checkpoints 100, puts 20000, flushes, 10 s, crash"
    return play(Scenario("4.1.2", "exactly_once_v2"), script)


def damaged() -> Scenario:
    return play(crashed(), "2 s, start, opens, 60 s")


def test_open_findings_stay_open_since_when_they_were() -> None:
    """A bug found before is the same finding after: same id, same opening."""
    run = damaged()
    before = {x.id: x for x in run.loud()}
    assert "skipped-eos-wipe" in {x.detector for x in before.values()}
    unseen(run, "300 s")
    after = {x.id: x for x in run.loud() if x.detector != "auditor-blind"}
    assert after.keys() == before.keys()
    assert all(after[key].opened_at_us == before[key].opened_at_us for key in before)
    assert all(after[key].status is Status.OPEN for key in before if before[key].status is Status.OPEN)


def test_what_is_open_is_said_at_each_start_before_it_is_counted() -> None:
    """Who lost the first word has another one; it is no news, and says when it was."""
    run = damaged()
    (finding,) = [x for x in run.loud() if x.detector == "skipped-eos-wipe"]
    news = max(x.observed_at_us for x in run.world.records if x.body.get("finding_id") == finding.id)
    for _ in range(2):
        play(unseen(run, "300 s"), "1 s")
        again = [x for x in run.world.records if x.body.get("finding_id") == finding.id]
        assert [x.body for x in again] == [finding.body() | {"said_us": news}]
        beat = next(x for x in run.world.records if x.kind is Kind.HEARTBEAT)
        assert run.world.records.index(again[0]) < run.world.records.index(beat)
        assert (beat.body["open_warnings"], beat.body["open_ids"]) == (1, [finding.id])
        run.wait(60)


def test_what_is_in_force_is_said_every_six_hours() -> None:
    """Findings and settings: one that is lost is there again, and nothing else is said twice."""
    run = damaged()
    start = len(run.world.records)
    run.wait(6 * 3600 + 60)
    later = [x for x in run.world.records[start:] if x.kind in (Kind.FINDING, Kind.CONFIGURATION)]
    open_now = {x.id for x in run.findings() if x.status is Status.OPEN}
    told_again = [str(x.body["finding_id"]) for x in later if x.body.get("said_us") is not None]
    assert sorted(told_again) == sorted(set(told_again))
    assert set(told_again) <= open_now
    assert {x.id for x in run.loud() if x.status is Status.OPEN} <= set(told_again)
    assert [x.body["application_id"] for x in later if x.kind is Kind.CONFIGURATION] == ["app"]


def test_damage_whose_evidence_spans_the_absence_is_only_suspected() -> None:
    """A crash seen before, a reopening found after: what lies between is not known."""
    run = play(unseen(play(crashed(), "10 s"), "5 s, start, opens, 5 s"), "60 s")
    finding = run.only("skipped-eos-wipe")
    assert (finding.severity, finding.confidence.value) == (Severity.WARNING, "suspected")


def recreated(run: Scenario, what: str) -> None:
    """While the agent is away, something is deleted and recreated; the task's inode number is as it was."""
    disk = run.world.disk
    before = disk._find("app/0_0")
    assert before is not None
    play(run, f"crash, start, delete_tree {what}")
    for key, database in list(run.task("0_0").databases.items()):
        if not run.world.has(database.path):
            del run.task("0_0").databases[key]
    play(run, "5 s, opens")
    now = disk._find("app/0_0")
    assert now is not None
    now.inode = before.inode


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("release", ["2.6.2", "3.7.2", "4.1.2"])
def test_an_inode_number_that_came_back_is_no_old_directory(release: str, guarantee: str) -> None:
    """ext4 gives a freed number to the next directory: only new stores and no old checkpoint tell it apart."""
    run = running(guarantee, release)
    with away(run):
        recreated(run, "app/0_0")
        play(run, "restores 5000 puts=5000, 5 s")
    run.wait(60)
    names = [x for x, _ in told(run)]
    assert names.index("task-deleted") < names.index("task-created")
    assert task(run).incarnation == 2
    assert task(run).stores["s"].sessions[0].offset_at_open is None
    assert run.findings("resurrected-checkpoint") == []


def test_a_checkpoint_that_was_deleted_before_the_absence_is_in_force_for_no_one() -> None:
    """Exactly-once deletes it when processing starts: a store that is recreated unseen is restored in full."""
    run = Scenario("3.7.2", "exactly_once_v2", stores={"kept": KEY_VALUE, "s": KEY_VALUE})
    play(run, "start, opens, puts 4999, 5 s, stops 4999, 5 s, start, opens, 20 s")
    assert not run.world.has("app/0_0/.checkpoint")
    with away(run):
        recreated(run, "app/0_0/rocksdb/s")
        play(run, "puts 5500 store=s, flushes, 5 s")
    run.wait(60)
    assert task(run).incarnation == 1
    assert run.findings("resurrected-checkpoint") == []


def test_a_directory_that_kept_its_checkpoint_is_the_old_one() -> None:
    """A deletion that was cut short while the agent was away leaves it beside stores that are recreated: told."""
    run = running("at_least_once", "3.9.2")
    with away(run):
        recreated(run, "app/0_0/rocksdb")
        play(run, "puts 10, flushes, 5 s")
    run.wait(60)
    assert task(run).incarnation == 1
    finding = run.only("resurrected-checkpoint")
    assert finding.severity is Severity.WARNING  # what the absence hid is at most suspected


def being_deleted() -> Scenario:
    """Give a task of two stores that its cleaner deletes, slowly: the first store is gone."""
    run = Scenario("3.9.2", stores={"a": KEY_VALUE, "b": KEY_VALUE})
    play(
        run,
        "start, opens 0_0, puts 0_0 100, flushes 0_0, opens 0_1, puts 0_1 100, flushes 0_1, closes 0_1 99",
    )
    return play(run, "60 s, delete_tree app/0_1/rocksdb/a")


def test_a_deletion_that_goes_on_is_not_torn() -> None:
    """The agent is away for longer than a deletion may pause; the deletion goes on, at a file each second."""
    run = being_deleted()
    with away(run):
        run.wait(8)
        run.world.play("unlink", "app/0_1/rocksdb/b/CURRENT")
    for name, _ in list(run.world.children("app/0_1/rocksdb/b")):
        run.wait(1)
        run.world.play("unlink", f"app/0_1/rocksdb/b/{name}")
    play(run, "delete_tree app/0_1, 120 s")
    assert run.findings("torn-store") == []


def test_a_deletion_that_stopped_while_away_is_torn() -> None:
    """Nothing goes on for five seconds that the new agent sees."""
    run = unseen(being_deleted(), "8 s")
    assert run.findings("torn-store") == []
    run.wait(10)
    assert {x.task_id for x in run.findings("torn-store")} == {"0_1"}
