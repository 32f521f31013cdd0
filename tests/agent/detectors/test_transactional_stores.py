"""Transactional stores (4.4+): what differs with them, and what is said where the setting is not given."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Level, Severity
from tests.evaluate.run import TRACES, replay_pod
from tests.support.scenario import UNLOGGED, WINDOWED, Scenario
from tests.support.scenario_database import SimDatabase
from tests.support.scenario_script import life, play
from tests.support.tables import table
from tests.support.twins import cases, said_of

T = "enable_transactional_statestores"
SKIPPED = "skipped-eos-wipe"
EOS = "exactly_once_v2"
Loud = list[tuple[Severity, Level]]
BEFORE: Loud = [(Severity.CRITICAL, Level.EXPOSURE)]
"""The last moment at which removing the directory saves everything."""
KEPT: Loud = [(Severity.CRITICAL, Level.DAMAGE)]
PERHAPS: Loud = [(Severity.WARNING, Level.EXPOSURE)]
QUIET: Loud = []


def of_4_4(told: str | None = "true", *, transactional: bool = True, **more) -> Scenario:
    """An application of 4.4.0 under exactly-once; what the operator says of transactional stores, and what they are."""
    run = Scenario("4.4.0", EOS, told={T: told, "commit_interval_ms": 500}, **more)
    run.transactional = transactional
    return run


COMMITTED = "start, opens, puts 500, commits 500, flushes, 2 s"
BEFORE_4_3 = "start 4.2.2, opens, puts 100, 1 s, stops 99, 5 s, start, opens"
KILLED = f"{BEFORE_4_3}, puts 5000, flushes"
"""4.2.2 flushes records of an open transaction."""
RESTARTED = "start 4.4.0, startup_pass, opens"
GOES_ON = f"{RESTARTED}, puts 500, commits 1000, flushes, 30 s"
"""4.4.0 with transactional stores opens the task, restores, commits."""


def drops_offset(run: Scenario, topic_partition: str = "app-s-changelog-0") -> None:
    """A commit without an offset."""
    database = run.task("0_0").databases["s", ""]
    database.drop_offset(topic_partition)
    database.put_position()


def corrupted(
    told: str | None = "true", puts: int = 300, *, release: str = "", transactional: bool = True
) -> Scenario:
    """A corrupted task commits its buffer without an offset and is closed; its process is killed before the wipe.

    Without transactional stores 4.4.0 puts uncommitted records into the store as it goes. `release`: what is told.
    """
    run = of_4_4(told, transactional=transactional)
    if release:
        run.world.settings["kafka_streams_version"] = release
        run.world.watch()
    play(run, f"{COMMITTED}, puts {puts}")
    drops_offset(run)
    run.transactional = True
    return play(run, "closes_dirty, crash")


def killed_on_4_2_2(seconds_after_the_flush: float = 0.5, **more) -> Scenario:
    """The agent knows what comes next."""
    return play(of_4_4(**more), f"{KILLED}, {seconds_after_the_flush} s, crash")


def killed_after_a_restoration() -> Scenario:
    """4.2.2 writes the checkpoint at the end of a restoration, and deletes it at once."""
    run = play(of_4_4(), f"{BEFORE_4_3}, 1 s, checkpoints 499")
    run.world.play("unlink", "app/0_0/.checkpoint")
    return play(run, "puts 5000, flushes, 1 s, crash")


def lost_its_source_topic_offset() -> Scenario:
    """What a table lacks that reads its source topic again was committed there."""
    run = play(of_4_4(), "start, opens, puts 500")
    database = run.task("0_0").databases["s", ""]
    database.put_offset("input-0", 500)
    database.put_position()
    play(run, "flushes, 2 s, puts 300")
    drops_offset(run, "input-0")
    return play(run, "closes_dirty, crash")


def lost_its_changelog() -> Scenario:
    """It was switched off: the first commit takes the offset away, and the store goes on."""
    run = play(of_4_4(), f"{COMMITTED}, stops, start, opens, puts 300")
    drops_offset(run)
    for _ in range(5):
        run.app.puts("0_0", 10)
        run.task("0_0").databases["s", ""].put_position()
    return play(run, "stops")


def looked_at_once(script: str) -> Scenario:
    """A start of 4.2.2 took the checkpoint away, and flushed nothing: one reading shows only committed data."""
    run = play(of_4_4(watched=False), f"{script}, 100 s")
    run.world.watch()
    return run


BESIDE = {"s": "key-value", "u": UNLOGGED}
WIPES = "without transactional stores the next start wipes it"


@table(SKIPPED, "life, expected", {
    "a corrupted task, killed before its wipe": (corrupted, BEFORE),
    "corrupted without transactions, then switched on": (lambda: corrupted(transactional=False), BEFORE),
    "its buffer was empty: the newest data is committed": (lambda: corrupted(puts=0), QUIET),
    "the next start wipes it, for stores are not transactional": (
        lambda: corrupted(None, transactional=False), QUIET),
    "transactional stores are switched off": (lambda: corrupted("false"), WIPES),
    "the application goes back to 4.3.1": (lambda: corrupted(None, release="4.3.1"), WIPES),
    "an upgrade of what 4.2.2 left": (killed_on_4_2_2, BEFORE),
    "so after a restoration": (killed_after_a_restoration, BEFORE),
    "commits went by since its flush": (lambda: killed_on_4_2_2(60), PERHAPS),
    "an upgrade without transactional stores": (lambda: killed_on_4_2_2(told="false"), QUIET),
    # nothing of it is ever committed, and nothing would bring it back
    "a store without a changelog beside it": (
        lambda: play(of_4_4(stores=BESIDE), BEFORE_4_3.partition(", start,")[0]), QUIET),
    "an offset of a source topic": (lost_its_source_topic_offset, QUIET),
    "a changelog that was switched off": (lost_its_changelog, QUIET),
    "one look at an empty store": (
        lambda: looked_at_once("start 4.2.2, opens, 1 s, stops -1, 5 s, start, opens, 300 s, crash"),
        "nothing is in it"),
    "one look at what was restored": (
        lambda: looked_at_once(f"{BEFORE_4_3}, 300 s, crash"), "it holds what was restored, no more"),
    "one look at what has an offset": (
        lambda: looked_at_once(BEFORE_4_3.partition(", start,")[0]), "it has an offset"),
})  # fmt: skip
def test_before_the_next_start(life, expected):
    run = life()
    run.wait(100)
    assert [(x.severity, x.level) for x in run.findings(SKIPPED)] == expected
    assert expected or run.loud() == []
    for finding in run.findings(SKIPPED) if expected == BEFORE else ():
        assert "BEFORE the next start" in finding.next_action
        assert "app/0_0" in finding.next_action


@pytest.mark.twin_of(SKIPPED, "a process holds it, or just let it go")
def test_a_minute_after_the_kill():
    """It may be about to be started again, or wiped. The start-up pass keeps nothing: the assignment decides."""
    run = play(corrupted(), "50 s")
    assert run.findings(SKIPPED) == []
    assert len(play(run, "20 s").findings(SKIPPED)) == 1
    play(run, "start, startup_pass, 100 s")
    assert [x.level for x in run.findings(SKIPPED)] == [Level.EXPOSURE]


@pytest.mark.parametrize(
    ("life", "pause", "expected"),
    [
        (corrupted, 5, KEPT),
        (killed_on_4_2_2, 5, KEPT),
        (lambda: corrupted(transactional=False), 100, BEFORE + KEPT),
    ],
    ids=["corrupted", "an upgrade", "corrupted without transactions"],
)
def test_kept_by_the_next_start(life, pause, expected):
    """It restores over what was never committed, and goes on with it."""
    run = play(life(), f"{pause} s, {GOES_ON}")
    assert [(x.severity, x.level) for x in run.findings(SKIPPED)] == expected
    assert run.findings(SKIPPED)[-1].affected is Affected.YES


def test_upgrade_under_an_agent_that_starts_with_its_pod():
    """It sees no life of the older release, and first of all the start-up pass."""
    run = play(killed_on_4_2_2(1, watched=False), "2 s")
    run.world.watch()
    play(run, f"1 s, {RESTARTED}, puts 6000, commits 12000, flushes, 30 s")
    damage = [x for x in run.findings(SKIPPED) if x.level is Level.DAMAGE]
    assert [x.severity for x in damage] == [Severity.WARNING]


def test_a_store_without_a_changelog_is_never_to_be_removed():
    """It has no checkpoint after an orderly stop, either, and nothing would bring it back."""
    run = play(of_4_4(stores={"u": UNLOGGED}), "start 4.2.2, opens, puts 500, flushes, 5 s, crash, 100 s")
    finding = run.only(SKIPPED)
    assert finding.severity is Severity.WARNING
    assert "Remove nothing" in finding.next_action
    play(run, f"{RESTARTED}, 30 s")
    assert {x.level for x in run.loud() if x.detector == SKIPPED} == {Level.EXPOSURE}


# -- other detectors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guarantee", "told", "severity", "words"),
    [
        (EOS, "true", Severity.WARNING, "does not start"),
        (EOS, None, Severity.INFO, "with enable.transactional.statestores every start would be refused"),
        ("at_least_once", "true", None, ""),
        (EOS, "false", None, ""),
    ],
    ids=["told", "not told", "at-least-once opens it", "not switched on"],
)
def test_open_status(guarantee, told, severity, words):
    """Before the switch a status that says open is a blocker; where nothing says whether it comes, it is asked."""
    run = play(Scenario("4.4.0", guarantee, told={T: told}), f"{COMMITTED}, crash, 5 s")
    found = run.findings("unopenable-task")
    assert [(x.level, x.severity) for x in found] == ([(Level.EXPOSURE, severity)] if severity else [])
    for finding in found:
        assert words in finding.summary
        assert finding.missing_facts == (() if told else (T,))
        assert "Start once with enable.transactional.statestores=false" in finding.next_action


def test_step_beside_a_store_without_a_changelog():
    """The start that wipes the task would take it for good."""
    run = play(of_4_4(transactional=False, stores=BESIDE), f"{COMMITTED}, crash, 5 s")
    steps = {x.next_action for x in run.findings("unopenable-task")}
    assert steps
    assert all("u may have no changelog" in step for step in steps)


def between_flushes(run: Scenario) -> SimDatabase:
    """The older segment is never flushed; the newer one takes the offset of both."""
    play(run, "start, opens, puts 50 store=w segment=1, 1 s, puts 500 store=w segment=2")
    newest = run.task("0_0").databases["w", "2"]
    newest.put_offset("app-w-changelog-0", 549)
    return newest


UNCOMMITTED = (
    "start, opens, puts 300, commits 299, puts 0 segment=60000, 2 s, flushes segment=0, 2 s, {}, 5 s"
)
"""The second segment was made for records of a transaction that runs."""
LET_GO = UNCOMMITTED.format("closes_dirty")
FLUSHED = "transactional: closed by a process that lived on, all that was committed is on disk"


@cases(
    "lost-segment",
    ("closed dirty", life(LET_GO, of_4_4, stores={"w": WINDOWED}), f"silent: {FLUSHED}"),
    ("and opened again", life(f"{LET_GO}, opens, 5 s", of_4_4, stores={"w": WINDOWED}), f"silent: {FLUSHED}"),
    (
        "opened again, filled, and killed",
        life(
            f"{LET_GO}, opens, 2 s, puts 10 segment=60000, commits 310, flushes segment=0, 2 s, crash, 5 s",
            of_4_4,
            stores={"w": WINDOWED},
        ),
        "exposure warning suspected",
    ),
    (
        "killed: a commit may have been in memory",
        life(UNCOMMITTED.format("crash"), of_4_4, stores={"w": WINDOWED}),
        "exposure warning suspected",
    ),
)
def test_new_segment_of_a_transaction_that_timed_out(story, said):
    """Found by the hunt: its buffer is dropped, and the process opens the task again."""
    assert said_of("lost-segment", story) == said


def test_sibling_that_has_no_offset_is_wiped_with_the_whole_task():
    """Kill inside a close: the windowed store is closed, its sister, which has a changelog, flushed nothing yet."""
    run = of_4_4("false", transactional=False, stores={"w": WINDOWED, "s": "key-value"})
    newest = between_flushes(play(run, "start, opens 0_1, puts 0_1 10, stops 0_1 9"))
    newest.put_status(0)
    newest.close()
    play(run, "crash, 70 s")
    assert [x.severity for x in run.findings("lost-segment") if x.severity is not Severity.INFO] == []


def test_standby_of_transactional_stores_that_are_switched_off():
    """What it had read ahead of its offset was committed; the start-up pass puts the same offset again."""
    run = of_4_4("false", standbys=1)
    play(run, "start, opens, puts 500, commits 500, puts 20000, flushes, 5 s, crash, 5 s")
    run.transactional = False
    play(run, "start, startup_pass 500, 60 s")
    assert [x for x in run.loud() if x.detector == "data-beyond-changelog"] == []


def test_disk_shows_transactional_stores():
    """An offset without a status, or behind an old one: the status of the life before stays, newer offsets follow."""
    run = Scenario("4.4.0", EOS)

    def shown(script: str) -> bool | None:
        play(run, script)
        assert run.world.pipeline is not None
        application = run.world.pipeline.inventory.applications["app"]
        offsets = application.tasks["0_0"].stores["s"].databases[""].offsets
        return offsets.transactional if offsets is not None else None

    assert shown(COMMITTED) is False
    assert shown("stops 501") is False
    run.transactional = True
    assert shown(COMMITTED) is True
    run = of_4_4(None)
    assert shown(COMMITTED) is True


# -- recordings


@pytest.mark.parametrize(
    ("scenario", "detector"),
    [
        ("kafka-20685-upgraded-3.9.2-to-4.4.0", SKIPPED),
        ("lost-segment-eos-txn-4.4.0", "lost-segment"),
        ("txn-interrupted-wipe-4.4.0", SKIPPED),
        ("benign-corrupt-kill-4.4.0", None),
        ("benign-standby-txn-eos-4.4.0", None),
    ],
)
def test_recorded_without_the_setting(scenario, detector):
    """Replay all pods: the disk shows it. Damage is critical, and benign lives are quiet."""
    faults: list[str] = []
    known: dict[str, object] = {"processing_guarantee": EOS, "kafka_streams_version": "4.4.0"}
    loud = {
        (x.detector, x.severity)
        for trace in sorted((TRACES / scenario).glob("trace-*.jsonl.gz"))
        for x in replay_pod(trace, known, faults, 0)
        if x.severity is not Severity.INFO
    }
    assert faults == []
    assert ((detector, Severity.CRITICAL) in loud) if detector else loud == set()
