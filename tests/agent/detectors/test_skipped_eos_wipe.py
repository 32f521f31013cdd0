"""Detector `skipped-eos-wipe`: reopened after an unclean end instead of wiped (KAFKA-20685, 10362, 9891, 7192)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Level, Severity, Status
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, Scenario
from tests.support.scenario_script import play
from tests.support.tables import LIKELY, PROVED, QUIET, SUSPECTED, heard, table

ID = "skipped-eos-wipe"
EOS = "exactly_once_v2"


def crashed(
    release: str = "4.1.2",
    guarantee: str = EOS,
    standbys: int | None = 0,
    *,
    flushed: int = 6000,
    segment: int = 0,
    **more,
) -> Scenario:
    """A restored task (offset 1999) flushes uncommitted data and is killed."""
    run = Scenario(release, guarantee, standbys, **more)
    play(run, f"start, opens, restores 1999 puts=2000, 3 s, puts {flushed} segment={segment}, flushes, 3 s")
    play(run, "crash, 5 s")
    assert run.findings(ID) == []
    return run


RESTORING = "killed in a restoration of up to 2.5"
OPENED = "start, 5 s, opens"
"""The next process opens the task without a wipe."""
WORKS = "2 s, puts 40000, flushes, 12 s"
"""The task runs on: more reaches the disk than a restoration flushes without a checkpoint."""
LOST = f"{OPENED}, restores 1999 puts=0, {WORKS}"


@pytest.mark.parametrize("kind", [KEY_VALUE, TIMESTAMPED])
@pytest.mark.parametrize("release", ["3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.0", "4.2.1"])
def test_first_checkpoint_proves_the_loss(release, kind):
    """The changelog gave back less than had been flushed: uncommitted data is in the store. It ends with the store."""
    run = play(crashed(release, stores={"s": kind}), LOST)
    finding = run.only(ID)
    assert heard(ID, run) == PROVED
    assert (finding.level, finding.status, finding.affected) == (Level.DAMAGE, Status.OPEN, Affected.YES)
    assert (finding.task_id, finding.upstream) == ("0_0", ("KAFKA-20685",))
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)
    play(run, "stops 2500, 5 s")
    assert run.only(ID).status is Status.OPEN
    play(run, f"deletes_directory, {OPENED}, restores 2500 puts=2500, 15 s")
    assert run.only(ID).status is Status.RESOLVED


def test_suspected_before_the_first_checkpoint():
    """The crash alone says nothing; ten seconds after the reopening it is a warning, and the proof escalates it."""
    run = play(crashed(), f"{OPENED}, 9 s")
    assert run.findings(ID) == []
    run.wait(3)
    before = run.only(ID)
    assert heard(ID, run) == SUSPECTED
    after = play(run, f"checkpoints 1999, {WORKS}").only(ID)
    assert (after.id, after.severity) == (before.id, Severity.CRITICAL)
    assert [step.what for step in after.evidence[len(before.evidence) :]] == [
        "first checkpoint after the restart: offset 1999, 8000 puts on disk",
        "proof: the offset advanced by 0, 6000 puts had been flushed beyond it",
    ]


WINDOW = {"release": "4.0.2", "stores": {"w": WINDOWED}, "segment": 60_000}
ENDED = f"{OPENED}, restores 2500 puts=500, 30 s"


@table(ID, "more, script, expected", {
    "flushed to a segment that is younger than the checkpoint": (WINDOW, LOST, PROVED),
    "all was committed: the offset advances by more": (
        {"flushed": 5322}, f"{OPENED}, restores 8001 puts=6000, 30 s", SUSPECTED),
    "an active task's restoration ended": ({"flushed": 500}, ENDED, SUSPECTED),
    "so it did beside standbys": ({"flushed": 500, "standbys": 1}, ENDED, SUSPECTED),
    "and where nobody tells": ({"flushed": 500, "standbys": None}, ENDED, SUSPECTED),
    "at-least-once replays over old data": ({"guarantee": "at_least_once"}, LOST, QUIET),
    "the guarantee is not known": ({"hidden": ("processing_guarantee",)}, LOST, QUIET),
})  # fmt: skip
def test_what_the_changelog_gave_back(more, script, expected):
    run = play(crashed(**more), script)
    assert heard(ID, run) == expected
    assert all(x.missing_facts == () for x in run.findings(ID))


def test_two_stores_are_one_crash():
    """The worst store decides; the other's crash is the same."""
    run = play(crashed(stores={"a": KEY_VALUE, "b": KEY_VALUE}), OPENED)
    run.app.restores("0_0", {"a": 1999 + 6001, "b": 1999}, puts=0)
    assert heard(ID, play(run, WORKS)) == PROVED
    assert "store b" in run.only(ID).summary


def test_aborted_offsets_prove_it_too():
    """Offset +12,002 but only 6,000 puts: as much as had been flushed was aborted (KAFKA-10362, recorded)."""
    run = Scenario("2.6.1", "exactly_once", 0, told={"commit_interval_ms": 60_000})
    play(run, "start, opens, 1 s, puts 2000, checkpoints 1999, puts 6000, flushes, 3 s, crash, 5 s")
    play(run, f"{OPENED}, puts 6000, checkpoints {1999 + 12002}, 2 s")
    assert heard(ID, run) == LIKELY
    assert run.only(ID).upstream == ("KAFKA-10362",)
    assert any("aborted" in step.what for step in run.only(ID).evidence)


@pytest.mark.parametrize("release", ["2.3.1", "3.5.2", "4.2.1"])
@pytest.mark.twin_of(ID, "a store without a changelog")
def test_quiet_where_a_source_topic_is_the_changelog(release):
    """Its checkpoint names the source topic: an orderly stop looked like an unclean end (found live, 4.2.1)."""
    run = play(Scenario(release, EOS, 0), "start, opens, 3 s, puts 600, flushes")
    run.app.write_checkpoint("0_0", {("in-table", 0): 599})
    play(run, "closes, ends, 5 s, start, opens, 30 s")
    assert run.findings(ID) == []
    assert run.world.pipeline is not None
    first = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"].sessions[0]
    assert first.closed is None  # a checkpoint that never names the store tells nothing of its end


# -- up to 2.5: KAFKA-7192, KAFKA-9891 ----------------------------------------------------------------------------

OLD = "start, opens, restores 2000, 2 s, puts 7609, flushes, 2 s, crash, 5 s"
"""2000 restored puts, 7609 flushed by processing, then a kill."""
STANDBY = OLD.replace("puts", "checkpoints 2000, puts")


@table(ID, "release, first, then, expected", {
    "KAFKA-7192: not wiped, and less comes back": (
        "2.0.0", OLD, "restores 2000, 2 s, puts 100, closes 2100", ("KAFKA-9891", "KAFKA-7192")),
    "KAFKA-9891: a standby reuses what an active left": (
        "2.5.0", OLD, "restores 900 puts=900, checkpoints 900", ("KAFKA-9891",)),
    "2.5.1 wipes": ("2.5.1", OLD, "wipes, restores 2000", None),
    "a standby's data is committed": ("2.5.0", STANDBY, "checkpoints 2000", "a standby of up to 2.5"),
})  # fmt: skip
def test_crash_of_an_old_release(release, first, then, expected):
    run = play(Scenario(release, "exactly_once", int(first is STANDBY)), f"{first}, {OPENED}, {then}, 30 s")
    found = run.findings(ID)
    assert [x.severity for x in found] == ([Severity.CRITICAL] if expected else [])
    assert all((x.upstream, x.affected) == (expected, Affected.YES) for x in found)


@table(ID, "release, flushed, expected", {
    "2.3, killed after it was resumed": ("2.3.1", 7609, Severity.CRITICAL),
    "2.4, killed after it was resumed": ("2.4.1", 7609, Severity.CRITICAL),
    "2.5, killed after it was resumed": ("2.5.0", 7609, Severity.CRITICAL),
    "killed while it was suspended: all is committed": ("2.5.0", 0, None),
})  # fmt: skip
def test_checkpoint_of_a_suspension_makes_no_standby(release, flushed, expected):
    """A suspension writes it, and the resumed task deletes it; killed, it comes back as a standby: nothing wipes it."""
    run = Scenario(release, "exactly_once", 1, stores={"s": KEY_VALUE})
    play(run, "start, opens, opens 0_1, restores 2000, 2 s, checkpoints 2000, 3 s")
    if flushed:
        run.world.play("unlink", "app/0_0/.checkpoint")
        play(run, f"puts {flushed}, flushes, 20 s")
    play(run, "crash, 5 s, start, opens, puts 900, checkpoints 2900, 30 s")
    assert [x.severity for x in run.findings(ID)] == ([expected] if expected else [])


@table(ID, "second, expected", {
    "both segments are open for bulk loading": ("puts 300 segment=1, reopens s bulk_loading=True", RESTORING),
    "one of them is not": ("reopens s bulk_loading=True, puts 300 segment=1", SUSPECTED),
})  # fmt: skip
def test_a_rebalance_cuts_the_restoration_of_a_windowed_store_short(second, expected):
    """Up to 2.5.0 it may come back as a standby, which nothing wipes: what it holds was committed."""
    run = Scenario("2.5.0", "exactly_once", 1, stores={"s": WINDOWED})
    play(
        run,
        f"start, opens, 1 s, puts 500, {second}, 1 s, puts 9000, flushes, 20 s, closes, 30 s, opens, 60 s",
    )
    assert heard(ID, run) == expected
