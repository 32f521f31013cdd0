"""Detector `carried-checkpoint`: a half-restored store trusted by an older owner's checkpoint (KAFKA-8574)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.scenario import KEY_VALUE, App, Scenario
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    past,
    session,
    severities,
    store,
    task,
)

ID = "carried-checkpoint"


def half_restored(
    release: str = "2.1.1",
    guarantee: str = "exactly_once",
    *,
    puts: int = 1200,
    own_checkpoint: int | None = None,
    **more,
) -> Scenario:
    """Owner A checkpoints 3000 and lets go; B, constructed before, wipes under the lock and restores `puts`."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.constructs("0_0")
    app.opens("0_0")
    app.restores("0_0", 0, puts=0)
    run.wait(1)
    app.puts("0_0", 3000)
    app.flushes("0_0")
    run.wait(1)
    app.closes("0_0", 3000)
    # B reads no checkpoint: it was constructed before A wrote one
    app.locks("0_0")
    app._open_store(run.task("0_0"), "s", KEY_VALUE)
    app.wipes("0_0")
    run.wait(1)
    app.begins_restoring("0_0")
    app.puts("0_0", puts)
    app.flushes("0_0")
    run.wait(5)
    app.closes("0_0", own_checkpoint)
    run.wait(0.1)
    return run


def third_owner(run: Scenario) -> App:
    """C reads A's checkpoint, deletes it before it has the lock, and opens without a wipe."""
    app = run.start()
    app.opens("0_0")
    return app


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_third_owner_trusts_the_first(release):
    """A wipe under the lock, a restoration cut short, and an opening at the old offset: the rest is missing."""
    run = half_restored(release)
    run.wait(20)
    assert run.findings(ID) == []
    third_owner(run)
    run.wait(1)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.store, finding.affected, finding.upstream) == ("s", Affected.YES, ("KAFKA-8574",))
    assert "1200 puts" in finding.summary
    times = [step.at_us for step in finding.evidence]
    assert times == sorted(times)


@pytest.mark.twin_of(ID, "restored in full: its puts come with the offset")
def test_finished_twin():
    """The same to the eye, but the second owner's puts equal the offset (recorded)."""
    run = half_restored(puts=3000)
    third_owner(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "it was let go with a checkpoint of its own")
def test_second_owner_writes_its_own_checkpoint():
    """An owner that closes with a checkpoint of its own replaces the old one."""
    run = half_restored(own_checkpoint=1200)
    third_owner(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "the next owner wiped it again")
def test_third_owner_wipes():
    """A third owner that wipes after all ends the finding with the store that it was about."""
    run = half_restored()
    app = third_owner(run)
    app.wipes("0_0")
    app.restores("0_0", 3000)
    run.wait(30)
    assert [x for x in run.findings(ID) if x.status is Status.OPEN] == []


@pytest.mark.parametrize(("release", "guarantee"), [("2.1.1", "at_least_once"), ("2.6.2", "exactly_once")])
def test_quiet_elsewhere(release, guarantee):
    """At-least-once does not wipe; from 2.6 on the checkpoint is read under the lock."""
    run = half_restored(release, guarantee) if release != "2.6.2" else Scenario(release, guarantee)
    third_owner(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_unknown_guarantee_is_suspected():
    """Without the guarantee the finding is a suspicion that names the missing setting."""
    run = half_restored(hidden=("processing_guarantee",))
    third_owner(run)
    run.wait(1)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.missing_facts) == (
        Severity.WARNING,
        Confidence.SUSPECTED,
        ("processing_guarantee",),
    )


def test_only_the_cut_store_is_named():
    """One store may be partly filled and the other whole."""
    run = half_restored(stores={"s": KEY_VALUE})
    third_owner(run)
    run.wait(1)
    assert [x.store for x in run.findings(ID)] == ["s"]


# -- the exact boundary ---------------------------------------------------------------------------------------


def dossier(
    *,
    restored: int = 1200,
    offset: int | None = 3000,
    written: float = 5,
    held: int | None = 3000,
    **settings,
):
    """Wiped with `held` live entries at 10 s, let go at 20 s with `restored` puts, opened at 30 s at `offset`."""
    before = session(0, 20, puts=restored)
    before.wiped = True
    after = session(30, offset_at_open=offset)
    one = store([database(puts=restored, born=10)], [before, after])
    one.past += (past(10, puts=3000, entries_low=held),)
    facts = [checkpoint(written, 3000, ended=29, deleted=True)]
    return case(task(one, checkpoints=facts), **{"release": "2.1.1", "guarantee": "exactly_once", **settings})


def test_four_fifths_are_a_finished_restoration():
    """From 0.8 puts per offset on the restoration counts as finished."""
    assert severities(ID, dossier(restored=2399)) == [Severity.CRITICAL]
    assert severities(ID, dossier(restored=2400)) == []


@pytest.mark.twin_of(ID, "its live entries came back from a compacted changelog")
def test_compacted_changelog_gives_back_less():
    """A finished restoration of a compacted changelog puts each live entry once, however high the offset is."""
    assert severities(ID, dossier(restored=800, held=1000)) == []
    assert severities(ID, dossier(restored=799, held=1000)) == [Severity.CRITICAL]
    assert severities(ID, dossier(restored=799, held=None)) == [Severity.WARNING]


@pytest.mark.parametrize("offset", [0, -4, None])
@pytest.mark.twin_of(ID, "no offset was trusted")
def test_old_offset_must_be_real(offset):
    """Nothing was trusted that was not there."""
    assert judge(ID, dossier(offset=offset)) == []


@pytest.mark.twin_of(ID, "the checkpoint is younger than the wipe")
def test_checkpoint_must_be_older_than_the_store():
    """A checkpoint written after the wipe belongs to the owner that restored."""
    assert judge(ID, dossier(written=10)) == []
    assert severities(ID, dossier(written=9.9)) == [Severity.CRITICAL]


def test_needs_a_wipe_without_a_checkpoint():
    """The owner in the middle wiped and wrote nothing itself; the one after it did not wipe."""
    one = dossier()
    middle, last = one.task.stores["s"].sessions
    middle.wiped = False
    assert judge(ID, one) == []
    middle.wiped, last.wiped = True, True
    assert judge(ID, one) == []
    last.wiped, middle.last = False, mark(15, 1200, 1200)
    assert judge(ID, one) == []
    middle.last = None
    assert severities(ID, one) == [Severity.CRITICAL]


def test_read_under_the_lock():
    """From 2.6 on no owner can have read another's checkpoint."""
    assert judge(ID, dossier(release="2.6.0")) == []
    assert judge(ID, dossier(guarantee="at_least_once")) == []


def test_other_incarnation():
    """The opening must be of the very store that was let go half restored."""
    one = dossier()
    one.task.stores["s"].sessions[1].identities = frozenset({"identity-2"})
    assert judge(ID, one) == []


def test_release_not_known_to_be_affected():
    """2.3 still reads before the lock, but writes at suspension: suspected, not affected."""
    verdict = judge(ID, dossier(release="2.3.1"))[0]
    assert (verdict.severity, verdict.affected) == (Severity.WARNING, Affected.NO)


def test_chain():
    """Old checkpoint, wipe, release, reopening, each at its own time."""
    verdict = judge(ID, dossier())[0]
    assert [step.at_us for step in verdict.evidence] == [at(5), at(10), at(20), at(30)]
    assert (verdict.subject, verdict.opened_at_us) == ("identity-1", at(30))


def test_other_sessions_hide_nothing():
    """A session in order stands before the pair; a second such pair is the same damage."""
    one = dossier()
    held = one.task.stores["s"]
    held.sessions = (session(-9, -1), *held.sessions, session(40, 50, puts=500, offset_at_open=3000))
    assert len(judge(ID, one)) == 1


def test_without_the_facts():
    """No database, no manifest that was read, or no checkpoint before the opening: nothing can be told."""
    gone, unread = dossier(), dossier()
    gone.task.stores["s"].databases.clear()
    unread.task.stores["s"].databases[""].manifest_problem = "MANIFEST-000005: denied: unreadable"
    for one in (gone, unread, dossier(written=31)):
        assert judge(ID, one) == []
