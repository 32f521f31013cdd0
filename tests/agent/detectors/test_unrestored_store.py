"""Detector `unrestored-store`: a task ran on a store that was not restored (KAFKA-7672, KAFKA-16017)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, ProcessLife, Shape
from tests.support.scenario import KEY_VALUE, WINDOWED, App, Scenario
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

ID = "unrestored-store"


def left(release: str, guarantee: str, *, offset: int = 3000, **more) -> Scenario:
    """A task that was whole when it was given up, with `offset` in its checkpoint."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 0, puts=0)
    run.wait(1)
    app.puts("0_0", offset)
    app.flushes("0_0")
    run.wait(1)
    app.closes("0_0", offset)
    run.wait(20)
    return run


# -- KAFKA-7672 ---------------------------------------------------------------------------------------------


def shape_e(release: str = "2.1.1", *, restores: bool = False, **more) -> tuple[Scenario, App]:
    """Exactly-once: the task is back, its store is wiped under the lock, and RUNNING follows at once."""
    run = Scenario(release, "exactly_once", **more)
    app = run.start()
    app.opens("0_0")
    app.wipes("0_0")
    if restores:
        app.restores("0_0", 12_000)
    run.wait(4)
    app.puts("0_0", 200)
    app.flushes("0_0")
    run.wait(1)
    app.closes("0_0", 12_204)
    run.wait(8)
    return run, app


@pytest.mark.parametrize("release", ["2.0.1", "2.1.0", "2.1.1"])
def test_shape_e(release):
    """Wiped, no bulk-load reopen, and a checkpoint near the changelog's end."""
    run, _ = shape_e(release)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.store, finding.affected, finding.upstream) == ("s", Affected.YES, ("KAFKA-7672",))
    times = [step.at_us for step in finding.evidence]
    assert times == sorted(times)


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_restoration_after_a_wipe(release):
    """A real restoration closes and opens the store twice, and its puts come with its offset."""
    run, _ = shape_e(release, restores=True)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "its puts and commit markers explain the offset")
def test_empty_changelog():
    """A wipe over an empty changelog is followed by a small offset."""
    run = Scenario("2.1.1", "exactly_once")
    app = run.start()
    app.opens("0_0")
    app.wipes("0_0")
    run.wait(2)
    app.puts("0_0", 200)
    app.closes("0_0", 202)
    run.wait(30)
    assert run.findings(ID) == []


def gap(release: str = "2.1.1", *, reopens: int = 1, **more) -> tuple[Scenario, App]:
    """At-least-once: back at 3000 of 12,200; one poll of 1,000 records is applied, then RUNNING."""
    run = left(release, "at_least_once", **more)
    app = run.start()
    app.opens("0_0")
    run.wait(0.1)
    for _ in range(reopens):
        app.reopens("0_0", "s")
    app.puts("0_0", 1200)
    app.flushes("0_0")
    run.wait(2)
    return run, app


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_shape_g(release):
    """Half of the reopen pair, and an offset far ahead of the puts; nothing before that checkpoint."""
    run, app = gap(release)
    assert run.findings(ID) == []
    app.checkpoints("0_0", 12_200)
    run.wait(8)
    assert run.only(ID).severity is Severity.CRITICAL


@pytest.mark.twin_of(ID, "it was restored: RocksDB was reopened twice")
def test_whole_pair():
    """With both reopens the restoration was complete: the offset jump has another reason."""
    run, app = gap(reopens=2)
    app.checkpoints("0_0", 12_200)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.0.0", "2.2.1", "2.3.1", "2.5.1", "2.8.2", "3.9.2"])
def test_offset_jump_on_other_releases(release):
    """Aborted or compacted records make the same jump: only the release separates."""
    run, app = gap(release, reopens=0)
    app.checkpoints("0_0", 12_200)
    run.wait(30)
    assert run.findings(ID) == []


def test_possible_standby_is_suspected():
    """With standbys configured an offset jump without a restoration may be a standby's."""
    run, app = gap(standbys=1)
    app.checkpoints("0_0", 12_200)
    run.wait(8)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)


def test_unknown_release_is_suspected():
    """The RocksDB version says 2.1: possibly affected, and the missing setting is named."""
    run, app = gap(hidden=("kafka_streams_version",))
    app.checkpoints("0_0", 12_200)
    run.wait(8)
    finding = run.only(ID)
    assert (finding.severity, finding.affected) == (Severity.WARNING, Affected.POSSIBLY)
    assert finding.missing_facts == ("kafka_streams_version",)


def test_clears_after_a_restoration_from_empty():
    """The finding ends with the incarnation that lacks its state."""
    run, app = gap()
    app.checkpoints("0_0", 12_200)
    run.wait(8)
    app.stops({"0_0": 12_200})
    run.wait(5)
    assert run.only(ID).status is Status.OPEN
    app.deletes_directory("0_0")
    run.wait(1)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 12_300)
    app.checkpoints("0_0", 12_300)
    run.wait(5)
    assert run.only(ID).status is Status.RESOLVED


# -- KAFKA-16017 --------------------------------------------------------------------------------------------


def abandoned(
    release: str, *, restored: int, offset: int, guarantee: str = "exactly_once_v2", **more
) -> Scenario:
    """Wiped at 8,000 records; the new owner restores some and is closed clean with `offset`."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 8000)
    app.flushes("0_0")
    run.wait(3)
    app.wipes("0_0")
    run.wait(1)
    if restored:
        app.puts("0_0", restored)
    app.closes("0_0", offset)
    run.wait(2)
    return run


@pytest.mark.parametrize("release", ["2.6.2", "2.8.2", "3.4.1", "3.5.2", "3.6.1"])
def test_16017(release):
    """The close of a half-restored task claims the offset from before the wipe; aborted records may look the same."""
    run = abandoned(release, restored=500, offset=7999)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.upstream) == (
        Severity.CRITICAL,
        Confidence.SUSPECTED,
        ("KAFKA-16017",),
    )


def twin(name: str) -> pytest.MarkDecorator:
    """The innocent that a run reaches."""
    return pytest.mark.twin_of(ID, name)


@pytest.mark.parametrize(
    ("release", "restored", "offset", "guarantee"),
    [
        pytest.param("3.6.2", 500, 7999, "exactly_once_v2", id="fixed"),
        pytest.param("4.1.2", 500, 7999, "exactly_once_v2", id="long fixed"),
        pytest.param("3.6.1", 500, 7999, "at_least_once", id="never wipes"),
        pytest.param("3.6.1", 0, -4, "exactly_once_v2", marks=twin("it claims no offset")),
        pytest.param("3.6.1", 8000, 7999, "exactly_once_v2", marks=twin("its puts explain the offset")),
    ],
)
def test_16017_twins(release, restored, offset, guarantee):
    """Fixed releases, at-least-once, a close that claims nothing, and a restoration that ended."""
    assert abandoned(release, restored=restored, offset=offset, guarantee=guarantee).findings(ID) == []


def test_16017_unknown_guarantee():
    """Without the guarantee it is a suspicion that names the setting."""
    run = abandoned("3.6.1", restored=500, offset=7999, hidden=("processing_guarantee",))
    finding = run.only(ID)
    assert (finding.severity, finding.missing_facts) == (Severity.WARNING, ("processing_guarantee",))


# -- the exact boundary ---------------------------------------------------------------------------------------


def jump(*, offset: int = 12_200, puts: int = 4200, reopens: int = 1, seconds: float = 5, **settings):
    """Opened at 3000 with 3000 puts; `seconds` later the checkpoint says `offset` with `puts`."""
    one = session(0, last=mark(seconds, offset, puts), offset_at_open=3000, puts_at_open=3000)
    one.reopens = reopens
    chosen = {"release": "2.1.1", "guarantee": "at_least_once", **settings}
    return case(task(store([database(puts=puts)], [one])), **chosen)


def test_noise_is_a_hundred_or_a_tenth():
    """Up to 100 records, or a tenth of the advance, may be missing."""
    assert severities(ID, jump(offset=3500, puts=3400)) == []
    assert severities(ID, jump(offset=3500, puts=3399)) == [Severity.CRITICAL]
    assert severities(ID, jump(offset=13_000, puts=12_000)) == []
    assert severities(ID, jump(offset=13_000, puts=11_999)) == [Severity.CRITICAL]


def test_commit_markers_take_offsets():
    """Under exactly-once a marker per commit interval explains part of the advance."""
    told = {"commit_interval_ms": 100}
    # 50 s: 500 markers and two
    explained = jump(offset=3602, puts=3000, seconds=50, guarantee="exactly_once", told=told)
    assert severities(ID, explained) == []
    more = jump(offset=3603, puts=3000, seconds=50, guarantee="exactly_once", told=told)
    assert severities(ID, more) == [Severity.CRITICAL]


def test_a_marker_behind_every_record():
    """With other intervals than told every second offset may be a marker: only what lies beyond that is proved."""
    told = {"commit_interval_ms": 10_000}
    some = jump(offset=3000 + 2101, puts=4000, guarantee="exactly_once", told=told)
    assert severities(ID, some) == [Severity.WARNING]
    more = jump(offset=3000 + 2102, puts=4000, guarantee="exactly_once", told=told)
    assert severities(ID, more) == [Severity.CRITICAL]


@pytest.mark.parametrize(("reopens", "said"), [(0, 1), (1, 1), (2, 0), (3, 0)])
def test_two_reopens_are_a_restoration(reopens, said):
    """The pair of reopens is the mark of a restoration that ended."""
    assert len(judge(ID, jump(reopens=reopens))) == said


def test_segments_and_global_are_left_alone():
    """Segments do not reopen like this, and global stores are restored by another thread."""
    one = jump()
    one.task.stores["s"].segmented = True
    assert judge(ID, one) == []
    other = jump()
    other.task.id = "global"
    assert judge(ID, other) == []


def test_wipe_proves_an_active_task():
    """Up to 2.5.0 only actives are wiped: with a wipe a standby is ruled out."""
    one = jump(standbys=1)
    one.task.stores["s"].sessions[0].wiped = True
    assert judge(ID, one)[0].confidence is Confidence.CONFIRMED


def claimed(
    *,
    offset: int = 7999,
    puts: int = 500,
    held: int | None = 8000,
    shape: Shape = Shape.OWNER_WALK,
    old: int | None = None,
    process: float | None = 2,
    **settings,
):
    """Wiped at 10 s with 8,000 puts, flushed at 5 s; recreated at 11 s; the first checkpoint says `offset` with `puts`.

    The process lives since `process`; a checkpoint of the old store said `old`.
    """
    one = store([database(puts=puts, born=11)], [session(11, created=True, first=mark(15, offset, puts))])
    one.past += (past(10, shape=shape, puts=8000, entries_low=held, flushed=5),)
    app = Application("app", exists=True)
    app.lives += () if process is None else (ProcessLife(at(process)),)
    told = [] if old is None else [checkpoint(3, old)]
    return case(task(one, checkpoints=told), application=app, **{"release": "3.6.1", **settings})


@pytest.mark.parametrize(
    ("shape", "said"), [(Shape.OWNER_WALK, 1), (Shape.CLEANER_WALK, 0), (Shape.VANISHED_UNSEEN, 0)]
)
def test_16017_needs_a_wipe(shape, said):
    """Only the owner's own deletion makes the old offset stay in its memory."""
    assert len(judge(ID, claimed(shape=shape))) == said


@pytest.mark.twin_of(ID, "its live entries came back from a compacted changelog")
def test_16017_compares_with_the_store_before():
    """Live entries are what the store had; four fifths of them are a finished restoration."""
    assert severities(ID, claimed(puts=799, held=1000)) == [Severity.CRITICAL]
    assert severities(ID, claimed(puts=800, held=1000)) == []
    assert severities(ID, claimed(puts=799, held=None)) == [Severity.WARNING]


@pytest.mark.twin_of(ID, "it claims less than before the wipe: what it restored")
def test_16017_needs_the_old_offset():
    """A restoration that a rebalance ended half way claims less than the old store: that is what it restored."""
    assert severities(ID, claimed(offset=7999, old=7999)) == [Severity.CRITICAL]
    assert severities(ID, claimed(offset=7998, old=7999)) == []


@pytest.mark.twin_of(ID, "another process wrote the claim, and remembers nothing")
def test_16017_needs_the_process_that_wrote():
    """Only a process that had worked on the old store remembers its offsets; a new one remembers nothing."""
    assert severities(ID, claimed(process=4)) == [Severity.CRITICAL]
    assert severities(ID, claimed(process=6)) == []
    assert severities(ID, claimed(process=None)) == [Severity.WARNING]


def test_16017_store_must_be_new():
    """A store that was not recreated was not wiped."""
    one = claimed()
    one.task.stores["s"].sessions[0].created = False
    assert judge(ID, one) == []


def test_16017_ignores_a_later_deletion():
    """Only an incarnation that ended before this session counts, and no segment."""
    one = claimed()
    one.task.stores["s"].past = ()
    one.task.stores["s"].past += (past(12, shape=Shape.OWNER_WALK, puts=8000),)
    assert judge(ID, one) == []


@pytest.mark.twin_of(ID, "a windowed store is restored without a reopen")
def test_windowed_stores_are_not_judged_by_reopens():
    """Through the pipeline: a windowed store on 2.1.1 with an offset jump says nothing."""
    run = Scenario("2.1.1", "at_least_once", stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 3000)
    app.flushes("0_0")
    run.wait(1)
    app.checkpoints("0_0", 12_200)
    run.wait(5)
    assert run.findings(ID) == []


def test_two_stores_are_judged_apart():
    """One store restored, the other not."""
    run = Scenario("2.1.1", "at_least_once", stores={"a": KEY_VALUE, "b": KEY_VALUE})
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 12_000, store="a")
    run.wait(1)
    app.checkpoints("0_0", {"a": 12_000, "b": 12_000})
    run.wait(8)
    assert [x.store for x in run.findings(ID)] == ["b"]
