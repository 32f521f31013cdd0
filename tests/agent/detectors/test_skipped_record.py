"""Detector `skipped-record`: after an upgrade from 2.5 a copy goes on one record too far (D4)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application
from agent.judging.base import TaskCase
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, App, Scenario
from tests.support.scenario_case import (
    PLAIN,
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    session,
    store,
    task,
)

ID = "skipped-record"
ALOS = "at_least_once"
TWO = ("default", "keyValueWithTimestamp")
"""Column families of a timestamped store."""


def upgraded(
    old: str = "2.5.1",
    new: str = "2.8.2",
    *,
    kind: str = KEY_VALUE,
    next_to_read: int = 3000,
    orderly: bool = True,
    flushed_more: bool = False,
    told: Mapping[str, object | None] | None = None,
) -> tuple[Scenario, App]:
    """A copy with 3,000 records is left by the older release, and opened by the newer one."""
    known = {"kafka_streams_version": new, **(told or {})}
    run = Scenario(old, ALOS, stores={"s": kind}, told=known)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 3000)
    app.checkpoints("0_0", next_to_read)
    run.wait(5)
    if flushed_more:
        app.puts("0_0", 10)
        app.flushes("0_0")
        run.wait(5)
    if orderly:
        app.closes("0_0", next_to_read)
        app.ends()
    else:
        app.crash()
    run.wait(10)
    app = run.start(new)
    run.wait(1)
    app.opens("0_0")
    run.wait(20)
    return run, app


def reads(run: Scenario, app: App, puts: int, last: int) -> None:
    """It puts so much, and writes the offset of the last record."""
    app.puts("0_0", puts)
    run.wait(1)
    app.checkpoints("0_0", last)
    run.wait(15)


@pytest.mark.parametrize("new", ["2.6.2", "2.8.2", "3.6.2", "4.2.1"])
@pytest.mark.parametrize("old", ["2.0.1", "2.3.1", "2.5.1"])
def test_a_copy_that_is_behind_skips_a_record(old, new):
    """Another pod wrote records 3,000 to 3,100 meanwhile: all but the first of them are put."""
    run, app = upgraded(old, new)
    assert run.findings(ID) == []
    reads(run, app, puts=100, last=3100)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status, finding.affected) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
        Affected.YES,
    )
    assert "100 puts for 101 records" in finding.summary
    assert finding.store == "s"


@pytest.mark.parametrize("kind", [TIMESTAMPED, WINDOWED])
def test_other_kinds_of_stores(kind):
    run, app = upgraded(kind=kind)
    reads(run, app, puts=100, last=3100)
    assert run.only(ID).severity is Severity.WARNING


def test_an_empty_copy_skips_the_first_record_of_all():
    """Up to 2.5 the offset of nothing is 0, which 2.6 takes for the first record."""
    run = Scenario("2.5.1", ALOS, told={"kafka_streams_version": "2.8.2"})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.closes("0_0", 0)
    app.ends()
    run.wait(5)
    app = run.start("2.8.2")
    run.wait(1)
    app.opens("0_0")
    run.wait(20)
    reads(run, app, puts=50, last=50)
    assert "offset 0" in run.only(ID).summary


def test_a_killed_copy_skips_one_too():
    run, app = upgraded(orderly=False)
    reads(run, app, puts=100, last=3100)
    assert run.only(ID).severity is Severity.WARNING


def test_it_clears_with_the_copy():
    run, app = upgraded()
    reads(run, app, puts=100, last=3100)
    app.closes("0_0", 3100)
    app.ends()
    run.wait(5)
    app.deletes_directory("0_0")
    run.wait(30)
    assert run.only(ID).status is Status.RESOLVED


def test_it_is_said_once_and_stays():
    """A second restart goes on from the right offset, and the record is still missing."""
    run, app = upgraded()
    reads(run, app, puts=100, last=3100)
    app.closes("0_0", 3100)
    app.ends()
    run.wait(5)
    app = run.start("2.8.2")
    app.opens("0_0")
    run.wait(20)
    reads(run, app, puts=10, last=3110)
    assert run.only(ID).status is Status.OPEN


# -- it stays quiet -------------------------------------------------------------------------------------------


@pytest.mark.twin_of("skipped-record", "a record was put for each offset")
def test_quiet_for_a_task_that_writes_the_record_itself():
    """The offset was the end of the changelog, and the task went on: a record for each offset."""
    run, app = upgraded()
    reads(run, app, puts=101, last=3100)
    assert run.findings(ID) == []


def test_quiet_for_an_offset_out_of_range():
    """Everything is replayed over the old files."""
    run, app = upgraded()
    run.world.play("unlink", "app/0_0/.checkpoint")
    app.closes_dirty("0_0")
    run.wait(0.5)
    app.opens("0_0")
    reads(run, app, puts=3201, last=3200)
    assert run.findings(ID) == []


@pytest.mark.twin_of(
    "skipped-record", "the copy had flushed more than its checkpoint covers, and has the record"
)
def test_quiet_for_what_had_been_flushed():
    """A kill left more on disk than the checkpoint covers: the record is there."""
    run, app = upgraded(orderly=False, flushed_more=True)
    reads(run, app, puts=100, last=3100)
    assert run.findings(ID) == []


@pytest.mark.parametrize(("old", "new"), [("2.3.1", "2.5.1"), ("2.6.2", "2.8.2"), ("2.8.2", "3.9.2")])
def test_quiet_for_an_upgrade_on_one_side(old, new):
    run, app = upgraded(old, new)
    reads(run, app, puts=100, last=3100)
    assert run.findings(ID) == []


@pytest.mark.parametrize("told", ["exactly_once", None])
def test_quiet_under_exactly_once_or_if_that_is_not_known(told):
    """A transaction's marker is at that offset: one transaction of 100 records follows."""
    run, app = upgraded(told={"processing_guarantee": told})
    reads(run, app, puts=100, last=3100)
    assert run.findings(ID) == []


def test_quiet_after_the_copy_was_removed_before_the_upgrade():
    """Mitigation: a restoration from empty reads everything."""
    run = Scenario("2.5.1", ALOS, told={"kafka_streams_version": "2.8.2"})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 3000)
    app.closes("0_0", 3000)
    app.ends()
    app.deletes_directory("0_0")
    run.wait(10)
    app = run.start("2.8.2")
    app.opens("0_0")
    run.wait(20)
    reads(run, app, puts=3101, last=3100)
    assert run.findings(ID) == []


# -- the edges ------------------------------------------------------------------------------------------------


def dossier(
    *,
    offset: int | None = 3000,
    last: int = 3100,
    puts: int = 3100,
    covered: int = 3000,
    written: float = 5,
    release: str = "2.8.2",
    guarantee: str | None = ALOS,
    version: str = "5.18.3",
    segmented: bool = False,
    families: tuple[str, ...] = PLAIN,
    used: tuple[str, ...] = (),
) -> TaskCase:
    """Held from 0 to 20 s by what wrote its options at `written`, opened again at 30 s."""
    before = session(0, 20, puts=3000, last=mark(18, 3000, covered))
    after = session(30, offset_at_open=offset, puts_at_open=3000, last=mark(40, last, puts))
    one = database(puts=puts, families=families, segment="s.0" if segmented else None)
    one.families_in_use = used
    application = Application("app", exists=True, first_seen_us=at(0))
    application.rocksdb_versions = {version: at(written), "5.18.4": at(31)}
    held = task(store([one], [before, after], segmented=segmented))
    return case(held, release=release, guarantee=guarantee, application=application)


def test_boundaries():
    """As many puts as the offset moved, and neither one more nor one less; and only if it moved."""
    assert len(judge(ID, dossier())) == 1
    assert judge(ID, dossier(puts=3101)) == []
    assert judge(ID, dossier(puts=3099)) == []
    assert len(judge(ID, dossier(last=3001, puts=3001))) == 1
    assert judge(ID, dossier(last=3000, puts=3000)) == []


@pytest.mark.parametrize("offset", [None, -4, 2999])
def test_another_offset_in_force(offset):
    """None, unknown, or not that of the session before and of no checkpoint that is known."""
    assert judge(ID, dossier(offset=offset)) == []


def test_what_was_flushed_with_the_offset_must_be_what_it_was_opened_with():
    assert judge(ID, dossier(covered=2990)) == []


@pytest.mark.parametrize("written", [-2, 30, 35])
@pytest.mark.twin_of("skipped-record", "which release held it before, if an earlier one did")
def test_who_held_it_before_must_be_known(written):
    """The options of the older release were written before that session, or after the next one began."""
    assert judge(ID, dossier(written=written)) == []


@pytest.mark.parametrize("version", ["5.18.4", "5.17.2", "6.29.4"])
def test_another_rocksdb_says_nothing_of_the_offset(version):
    assert judge(ID, dossier(version=version)) == []


@pytest.mark.parametrize("release", ["2.5.1", None])
def test_the_release_that_runs_must_take_it_for_the_last(release):
    assert judge(ID, dossier(release=release)) == []


@pytest.mark.parametrize("guarantee", ["exactly_once", None])
def test_only_at_least_once(guarantee):
    assert judge(ID, dossier(guarantee=guarantee)) == []


@pytest.mark.twin_of("skipped-record", "how often this store puts a record")
def test_a_store_that_converts_its_values_puts_more_than_once_per_record():
    assert len(judge(ID, dossier(families=TWO, used=TWO[1:]))) == 1
    assert judge(ID, dossier(families=TWO, used=TWO)) == []


@pytest.mark.parametrize("change", ["created", "wiped"])
@pytest.mark.twin_of("skipped-record", "the opening made the store, or wiped it")
def test_new_stores_skip_nothing(change):
    one = dossier()
    setattr(one.task.stores["s"].sessions[1], change, True)
    assert judge(ID, one) == []


@pytest.mark.twin_of("skipped-record", "another incarnation of the store was there")
def test_other_incarnation():
    one = dossier()
    one.task.stores["s"].sessions[0].identities = frozenset({"identity-2"})
    one.task.stores["s"].sessions[0].final_identities = frozenset({"identity-2"})
    assert judge(ID, one) == []


def test_an_agent_that_was_away_goes_by_the_checkpoint():
    """What the last session wrote at its end was read after it: it counts if as much was flushed by then."""
    one = dossier()
    held = one.task.stores["s"]
    held.sessions[0].first = held.sessions[0].last = mark(10, 2000, 2000)
    assert judge(ID, one) == []
    one.task.checkpoints += (checkpoint(19, 3000),)
    assert judge(ID, one) == []
    held.databases[""].flushed += ((3000, at(18)), (3100, at(39)))
    assert len(judge(ID, one)) == 1


@pytest.mark.twin_of("skipped-record", "what was flushed when the old offset was written")
@pytest.mark.twin_of("skipped-record", "how far the copy has come since")
def test_a_count_that_is_not_sure_decides_nothing():
    unsure = dossier()
    after = unsure.task.stores["s"].sessions[1]
    assert after.last is not None
    after.last.unsure = True
    after.first = None
    assert judge(ID, unsure) == []
    before = dossier()
    covered = before.task.stores["s"].sessions[0].last
    assert covered is not None
    covered.unsure = True
    assert judge(ID, before) == []


def test_chain_of_the_verdict():
    """Released, opened by the newer release, and the checkpoint that shows it; the opening is the event."""
    verdict = judge(ID, dossier())[0]
    assert [step.at_us for step in verdict.evidence] == [at(20), at(30), at(40)]
    assert (verdict.opened_at_us, verdict.store, verdict.identity) == (at(30), "s", "identity-1")
    assert "checkpoint with offset 3100" in verdict.evidence[2].what
