"""Transactional stores (4.4+): what differs with them, and what is said where the setting is not given."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity
from tests.evaluate.run import TRACES, replay_pod
from tests.support.scenario import UNLOGGED, WINDOWED, Scenario

T = "enable_transactional_statestores"
SKIPPED = "skipped-eos-wipe"


def transactional(**more) -> Scenario:
    """An application of 4.4.0 under exactly-once with transactional stores, which the agent knows."""
    return Scenario("4.4.0", "exactly_once_v2", told={T: "true", "commit_interval_ms": 500}, **more)


def committed(run: Scenario, *, transactional: bool = True, records: int = 500):
    """Start, process, commit, flush."""
    app = run.start(transactional=transactional)
    app.opens("0_0")
    app.puts("0_0", records)
    app.commits("0_0", records)
    app.flushes("0_0")
    run.wait(2)
    return app


def corrupted(run: Scenario, app, *, uncommitted: int) -> None:
    """A corrupted task commits its buffer without an offset and is closed; its process is killed before the wipe."""
    if uncommitted:
        app.puts("0_0", uncommitted)
    for database in run.task("0_0").databases.values():
        database.drop_offset("app-s-changelog-0")
        database.put_position()
    app.closes_dirty("0_0")
    app.crash()


# -- N1: a corrupted task, killed between its close and its wipe


@pytest.mark.twin_of(SKIPPED, "a process holds it, or just let it go")
def test_corrupted_and_killed_is_critical_before_the_next_start():
    """The last moment at which removing the directory saves everything."""
    run = transactional()
    corrupted(run, committed(run), uncommitted=300)
    run.wait(50)
    assert run.findings(SKIPPED) == []  # it may be about to be started again, or wiped
    run.wait(20)
    finding = run.only(SKIPPED)
    assert (finding.severity, finding.level, finding.confidence) == (
        Severity.CRITICAL,
        Level.EXPOSURE,
        Confidence.SUSPECTED,
    )
    assert "BEFORE the next start" in finding.next_action
    assert "app/0_0" in finding.next_action


def test_corrupted_and_kept_is_damage():
    """The next start restores over it and keeps it."""
    run = transactional()
    corrupted(run, committed(run), uncommitted=300)
    run.wait(5)
    app = run.start()
    app.startup_pass()
    app.opens("0_0")
    app.puts("0_0", 500)
    app.commits("0_0", 900)
    run.wait(30)
    finding = run.only(SKIPPED)
    assert (finding.severity, finding.level, finding.affected) == (
        Severity.CRITICAL,
        Level.DAMAGE,
        Affected.YES,
    )


def test_corrupted_without_uncommitted_records_is_quiet():
    """An empty buffer leaves nothing: the newest data belongs to the commit before."""
    run = transactional()
    corrupted(run, committed(run), uncommitted=0)
    run.wait(100)
    assert run.findings(SKIPPED) == []


def test_corrupted_without_transactional_stores_is_quiet():
    """The next start finds data without an offset and wipes it."""
    run = Scenario("4.4.0", "exactly_once_v2")
    corrupted(run, committed(run, transactional=False), uncommitted=300)
    run.wait(100)
    assert run.loud() == []


# -- N2: an upgrade of what an older release left without a checkpoint


def killed_on_4_2_2(seconds_after_the_flush: float = 0.5, **more) -> Scenario:
    """4.2.2 flushes records of an open transaction, and is killed; the agent knows what comes next."""
    run = transactional(**more)
    app = run.start("4.2.2", transactional=False)
    app.opens("0_0")
    app.puts("0_0", 100)
    run.wait(1)
    app.stops({"0_0": 99})
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(seconds_after_the_flush)
    app.crash()
    return run


def test_upgrade_is_critical_before_the_start():
    """Exactly-once of 4.2.2 would wipe it; transactional stores do not."""
    run = killed_on_4_2_2()
    run.wait(70)
    assert (run.only(SKIPPED).severity, run.only(SKIPPED).level) == (Severity.CRITICAL, Level.EXPOSURE)


def test_upgrade_is_damage_after_the_start():
    """The store goes on with what was never committed."""
    run = killed_on_4_2_2()
    run.wait(5)
    app = run.start("4.4.0", transactional=True)
    app.startup_pass()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.commits("0_0", 700)
    app.flushes("0_0")
    run.wait(30)
    finding = run.only(SKIPPED)
    assert (finding.severity, finding.level) == (Severity.CRITICAL, Level.DAMAGE)


def test_upgrade_after_commits_went_by_is_a_warning():
    """What was flushed long before the kill was committed meanwhile, unless commits failed."""
    run = killed_on_4_2_2(seconds_after_the_flush=60)
    run.wait(70)
    assert run.only(SKIPPED).severity is Severity.WARNING


def test_upgrade_without_transactional_stores_is_quiet():
    """The first start wipes the task."""
    run = Scenario("4.4.0", "exactly_once_v2", told={T: "false"})
    app = run.start("4.2.2")
    app.opens("0_0")
    app.puts("0_0", 500)
    app.flushes("0_0")
    app.crash()
    run.wait(100)
    assert [x for x in run.loud() if x.detector == SKIPPED] == []


def test_upgrade_of_a_store_without_a_changelog_is_quiet():
    """Nothing of it is ever committed, and nothing would bring it back."""
    run = transactional(stores={"s": "key-value", "u": UNLOGGED})
    app = run.start("4.2.2", transactional=False)
    app.opens("0_0")
    app.puts("0_0", 100)
    run.wait(1)
    app.stops({"0_0": 99})
    run.wait(100)
    assert run.findings(SKIPPED) == []


# -- N3: the status that transactional stores refuse for ever


@pytest.mark.parametrize(
    ("told", "severity", "words"),
    [
        ("true", Severity.WARNING, "does not start"),
        (None, Severity.INFO, "with enable.transactional.statestores no start would get past it"),
    ],
)
def test_open_status(told, severity, words):
    """Before the switch it is a blocker; where nothing says whether it comes, the setting is named."""
    run = Scenario("4.4.0", "exactly_once_v2", told={T: told})
    app = committed(run, transactional=False)
    app.crash()
    run.wait(5)
    finding = run.only("unopenable-task")
    assert (finding.level, finding.severity) == (Level.EXPOSURE, severity)
    assert words in finding.summary
    assert finding.missing_facts == (() if told else (T,))
    assert "Start once with enable.transactional.statestores=false" in finding.next_action


@pytest.mark.parametrize(("guarantee", "told"), [("at_least_once", "true"), ("exactly_once_v2", "false")])
def test_open_status_harms_nothing_otherwise(guarantee, told):
    """At-least-once opens such a store whatever its status says; without the setting it is wiped and restored."""
    run = Scenario("4.4.0", guarantee, told={T: told})
    app = committed(run, transactional=False)
    app.crash()
    run.wait(5)
    assert run.findings("unopenable-task") == []


# -- N4: segments


def crashed_between_flushes(run: Scenario, *, transactional: bool) -> None:
    """The older segment is never flushed; the newer one takes the offset of both."""
    app = run.start(transactional=transactional)
    app.opens("0_0")
    app.puts("0_0", 50, store="w", segment=1)
    run.wait(1)
    app.puts("0_0", 500, store="w", segment=2)
    newest = run.task("0_0").databases["w", "2"]
    newest.put_offset("app-w-changelog-0", 549)
    newest.flush()
    run.wait(1)
    app.crash()
    run.wait(70)


@pytest.mark.parametrize(("on", "loud"), [(True, True), (False, False)])
def test_lost_segment_under_exactly_once(on, loud):
    """Without transactional stores the status is open, and the task is wiped."""
    run = Scenario("4.4.0", "exactly_once_v2", stores={"w": WINDOWED}, told={T: str(on).lower()})
    crashed_between_flushes(run, transactional=on)
    found = [x.severity for x in run.findings("lost-segment")]
    assert found == ([Severity.CRITICAL] if loud else [])


def test_sibling_that_has_no_offset_is_wiped_with_the_whole_task():
    """Kill inside a close: the windowed store is closed, its sister, which has a changelog, flushed nothing yet."""
    run = Scenario("4.4.0", "exactly_once_v2", stores={"w": WINDOWED, "s": "key-value"}, told={T: "false"})
    app = run.start()
    app.opens("0_1")
    app.puts("0_1", 10)
    app.stops({"0_1": 9})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 50, store="w", segment=1)
    run.wait(1)
    app.puts("0_0", 500, store="w", segment=2)
    newest = run.task("0_0").databases["w", "2"]
    newest.put_offset("app-w-changelog-0", 549)
    newest.put_status(0)
    newest.close()
    app.crash()
    run.wait(70)
    assert [x.severity for x in run.findings("lost-segment") if x.severity is not Severity.INFO] == []


# -- what disk shows


def test_disk_shows_transactional_stores():
    """An offset without a status, or behind an old one, is of a transactional store."""
    run = Scenario("4.4.0", "exactly_once_v2")
    committed(run, transactional=True)
    facts = _facts(run)
    assert facts.transactional is True


def test_disk_shows_the_switch():
    """The status of the life before stays, and newer offsets lie behind it."""
    run = Scenario("4.4.0", "exactly_once_v2")
    app = committed(run, transactional=False)
    assert _facts(run).transactional is False
    app.stops({"0_0": 501})
    assert _facts(run).transactional is False
    committed(run, transactional=True)
    assert _facts(run).transactional is True


def _facts(run: Scenario):
    assert run.world.pipeline is not None
    application = run.world.pipeline.inventory.applications["app"]
    return application.tasks["0_0"].stores["s"].databases[""].offsets


# -- recordings


DAMAGED = {
    "kafka-20685-upgraded-3.9.2-to-4.4.0": SKIPPED,
    "lost-segment-eos-txn-4.4.0": "lost-segment",
    "txn-interrupted-wipe-4.4.0": SKIPPED,
}
BENIGN = ("benign-corrupt-kill-4.4.0", "benign-standby-txn-eos-4.4.0")
KNOWN: dict[str, object] = {"processing_guarantee": "exactly_once_v2", "kafka_streams_version": "4.4.0"}


def loud(scenario: str, settings: dict[str, object]) -> set[tuple[str, Severity]]:
    """Replay all pods of a recording."""
    faults: list[str] = []
    found = [
        (x.detector, x.severity)
        for trace in sorted((TRACES / scenario).glob("trace-*.jsonl.gz"))
        for x in replay_pod(trace, settings, faults, 0)
        if x.severity is not Severity.INFO
    ]
    assert faults == []
    return set(found)


@pytest.mark.parametrize("scenario", DAMAGED)
def test_recorded_damage_is_critical_without_the_setting(scenario):
    """The disk shows them."""
    assert (DAMAGED[scenario], Severity.CRITICAL) in loud(scenario, KNOWN)


@pytest.mark.parametrize("scenario", BENIGN)
def test_recorded_benign_is_quiet_without_the_setting(scenario):
    """Nothing at warning or above."""
    assert loud(scenario, KNOWN) == set()
