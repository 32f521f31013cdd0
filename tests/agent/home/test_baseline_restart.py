"""A restarted agent: what it still knows, what it says has changed, and what it says it cannot know."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind, Severity, Status
from agent.inventory.model import Task
from agent.inventory.stores import Shape
from tests.agent.home.restarting import away, told
from tests.support.scenario import KEY_VALUE, App, Scenario


def running(guarantee: str = "at_least_once", release: str = "4.1.2") -> tuple[Scenario, App]:
    """Give an application with one task that has written a checkpoint."""
    run = Scenario(release, guarantee)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.flushes("0_0")
    app.checkpoints("0_0", 100)
    run.wait(30)
    return run, app


def task(run: Scenario) -> Task:
    assert run.world.pipeline is not None
    return run.world.pipeline.inventory.applications["app"].tasks["0_0"]


def test_nothing_happened_while_away() -> None:
    """Nothing is told as a change; the time away is one blind interval with its cause."""
    run, _ = running()
    before = task(run).stores["s"].sessions[-1]
    with away(run):
        run.wait(120)
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
    run, app = running()
    with away(run):
        run.wait(10)
        app.puts("0_0", 50)
        app.flushes("0_0")
        app.checkpoints("0_0", 150)
        run.wait(10)
    assert set(told(run)) == {("checkpoint-written", "baseline"), ("store-flushed", "baseline")}
    assert task(run).checkpoint is not None
    assert task(run).checkpoint.offsets == {"s": 150}  # type: ignore[union-attr]
    assert task(run).checkpoint.written_us < run.world.now_us - 9_000_000  # type: ignore[union-attr]


def test_a_recreated_task_is_reported_as_gone_and_created() -> None:
    """Deletion and re-creation are both told; who did it is not guessed."""
    run, app = running()
    with away(run):
        app.closes("0_0", 100)
        app.delete_tree("app/0_0")
        run.task("0_0").databases.clear()
        run.wait(5)
        app.opens("0_0")
        run.wait(5)
    changes = told(run)
    assert {source for _, source in changes} == {"baseline"}
    names = [x for x, _ in changes]
    assert names.index("task-deleted") < names.index("task-created")
    assert task(run).incarnation == 2
    assert [x.shape for x in task(run).past] == [Shape.VANISHED_UNSEEN]
    assert task(run).stores["s"].sessions[-1].created
    run.wait(900)
    assert [x.detector for x in run.loud() if x.detector != "auditor-blind"] == []


def test_a_recreated_store_is_another_incarnation() -> None:
    """A new IDENTITY is told, and no session of the old store is believed to go on."""
    run, app = running()
    with away(run):
        app.crash()
        run.wait(1)
        app = run.start()
        app.delete_tree("app/0_0/rocksdb/s")
        run.task("0_0").databases.clear()
        app.opens("0_0")
        run.wait(1)
    assert {"store-deleted", "store-created"} <= {x for x, _ in told(run)}
    assert len(task(run).stores["s"].sessions) == 1


def test_a_restarted_process_is_reported() -> None:
    """All stores opened again under a lock that is held again: the process was another one."""
    run, app = running("exactly_once_v2")
    with away(run):
        run.wait(5)
        app.stops({"0_0": 100})
        run.wait(2)
        run.start().opens("0_0")
        run.wait(5)
    changes = [x for x, _ in told(run)]
    assert changes.count("process-ended") == changes.count("process-started") == 1
    assert "store-opened" in changes
    session = task(run).stores["s"].sessions[-1]
    assert session.attached
    assert len(task(run).stores["s"].sessions) == 1
    run.wait(900)
    assert [x.detector for x in run.loud() if x.detector != "auditor-blind"] == []


def test_a_process_whose_store_stayed_open_was_not_restarted() -> None:
    """One store that was never let go proves that its process lives on."""
    run, app = running()
    app.opens("0_1")
    run.wait(30)
    with away(run):
        app.closes("0_1", 5)
        run.wait(2)
        app.opens("0_1")
        run.wait(2)
    assert "process-ended" not in {x for x, _ in told(run)}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_clean_stop_while_away_is_not_taken_for_a_crash(guarantee: str) -> None:
    """Stopped in order while nobody looked, started again under the agent's eyes: quiet."""
    run, app = running(guarantee)
    app.puts("0_0", 20_000)
    app.flushes("0_0")
    with away(run):
        run.wait(20)
        app.stops({"0_0": 20_100})
        run.wait(60)
    run.wait(30)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 10)
    app.flushes("0_0")
    app.checkpoints("0_0", 20_110)
    run.wait(900)
    assert [x.detector for x in run.loud() if x.detector != "auditor-blind"] == []


def crashed() -> Scenario:
    """Give a run of exactly-once that was killed with more on disk than its checkpoint says."""
    run = Scenario("4.1.2", "exactly_once_v2")
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 20_000)
    app.flushes("0_0")
    app.checkpoints("0_0", 100)
    app.puts("0_0", 20_000)
    app.flushes("0_0")
    run.wait(10)
    app.crash()
    return run


def damaged() -> Scenario:
    run = crashed()
    run.wait(2)
    run.start().opens("0_0")
    run.wait(60)
    return run


def test_open_findings_stay_open_since_when_they_were() -> None:
    """A bug found before is the same finding after: same id, same opening."""
    run = damaged()
    before = {x.id: x for x in run.loud()}
    assert "skipped-eos-wipe" in {x.detector for x in before.values()}
    with away(run):
        run.wait(300)
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
        with away(run):
            run.wait(300)
        run.wait(1)
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
    run = crashed()
    run.wait(10)
    with away(run):
        run.wait(5)
        run.start().opens("0_0")
        run.wait(5)
    run.wait(60)
    finding = run.only("skipped-eos-wipe")
    assert (finding.severity, finding.confidence.value) == (Severity.WARNING, "suspected")


def recreated(run: Scenario, app: App, what: str) -> App:
    """While the agent is away, something is deleted and recreated; the task's inode number is as it was."""
    disk = run.world.disk
    before = disk._find("app/0_0")
    assert before is not None
    app.crash()
    app = run.start()
    app.delete_tree(what)
    for key, database in list(run.task("0_0").databases.items()):
        if not run.world.has(database.path):
            del run.task("0_0").databases[key]
    run.wait(5)
    app.opens("0_0")
    now = disk._find("app/0_0")
    assert now is not None
    now.inode = before.inode
    return app


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("release", ["2.6.2", "3.7.2", "4.1.2"])
def test_an_inode_number_that_came_back_is_no_old_directory(release: str, guarantee: str) -> None:
    """ext4 gives a freed number to the next directory: only new stores and no old checkpoint tell it apart."""
    run, app = running(guarantee, release)
    with away(run):
        app = recreated(run, app, "app/0_0")
        app.restores("0_0", 5000, puts=5000)
        run.wait(5)
    run.wait(60)
    names = [x for x, _ in told(run)]
    assert names.index("task-deleted") < names.index("task-created")
    assert task(run).incarnation == 2
    assert task(run).stores["s"].sessions[0].offset_at_open is None
    assert run.findings("resurrected-checkpoint") == []


def test_a_checkpoint_that_was_deleted_before_the_absence_is_in_force_for_no_one() -> None:
    """Exactly-once deletes it when processing starts: a store that is recreated unseen is restored in full."""
    run = Scenario("3.7.2", "exactly_once_v2", stores={"kept": KEY_VALUE, "s": KEY_VALUE})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 4999)
    run.wait(5)
    app.stops({"0_0": 4999})
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    run.wait(20)
    assert not run.world.has("app/0_0/.checkpoint")
    with away(run):
        app = recreated(run, app, "app/0_0/rocksdb/s")
        app.puts("0_0", 5500, store="s")
        app.flushes("0_0")
        run.wait(5)
    run.wait(60)
    assert task(run).incarnation == 1
    assert run.findings("resurrected-checkpoint") == []


def test_a_directory_that_kept_its_checkpoint_is_the_old_one() -> None:
    """A deletion that was cut short while the agent was away leaves it beside stores that are recreated: told."""
    run, app = running("at_least_once", "3.9.2")
    with away(run):
        app = recreated(run, app, "app/0_0/rocksdb")
        app.puts("0_0", 10)
        app.flushes("0_0")
        run.wait(5)
    run.wait(60)
    assert task(run).incarnation == 1
    finding = run.only("resurrected-checkpoint")
    assert finding.severity is Severity.WARNING  # what the absence hid is at most suspected


def being_deleted() -> tuple[Scenario, App]:
    """Give a task of two stores that its cleaner deletes, slowly: the first store is gone."""
    run = Scenario("3.9.2", stores={"a": KEY_VALUE, "b": KEY_VALUE})
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.puts(task_id, 100)
        app.flushes(task_id)
    app.closes("0_1", {"a": 99, "b": 99})
    run.wait(60)
    app.delete_tree("app/0_1/rocksdb/a")
    return run, app


def test_a_deletion_that_goes_on_is_not_torn() -> None:
    """The agent is away for longer than a deletion may pause; the deletion goes on, at a file each second."""
    run, app = being_deleted()
    with away(run):
        run.wait(8)
        run.world.play("unlink", "app/0_1/rocksdb/b/CURRENT")
    for name, _ in list(run.world.children("app/0_1/rocksdb/b")):
        run.wait(1)
        run.world.play("unlink", f"app/0_1/rocksdb/b/{name}")
    app.delete_tree("app/0_1")
    run.wait(120)
    assert run.findings("torn-store") == []


def test_a_deletion_that_stopped_while_away_is_torn() -> None:
    """Nothing goes on for five seconds that the new agent sees."""
    run, _ = being_deleted()
    with away(run):
        run.wait(8)
    assert run.findings("torn-store") == []
    run.wait(10)
    assert {x.task_id for x in run.findings("torn-store")} == {"0_1"}
