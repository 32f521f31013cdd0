"""Detector `resurrected-checkpoint`: the exact limits of its conditions, on dossiers built by hand."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.model import Application, CheckpointFact, ProcessLife, Shape
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

ID = "resurrected-checkpoint"


def deleted(*, offset: int = 2050, puts: int = 50, prior: int = 2000, created: float = 30, **settings):
    """Deleted at 25 s at offset 2000, recreated at `created`; its first checkpoint holds `offset` and `puts`."""
    one = store(
        [database(puts=puts, born=created)],
        [session(created, created=True, first=mark(created + 5, offset, puts))],
    )
    one.past += (past(25, puts=prior),)
    chosen = {"release": "2.0.1", "guarantee": "at_least_once", **settings}
    return case(task(one, checkpoints=[checkpoint(10, 2000, ended=24, deleted=True, in_walk=True)]), **chosen)


WIPED_WHOLE = pytest.mark.twin_of(
    ID, "one process wiped all of the directory and made it anew (2.6 and later)"
)
ONE_LIFE = (ProcessLife(at(1)),)
TWO_LIVES = (ProcessLife(at(1), at(27)), ProcessLife(at(28)))


@pytest.mark.parametrize(
    ("more", "found"),
    [
        pytest.param({}, [], marks=WIPED_WHOLE),
        pytest.param({"release": None}, [], marks=WIPED_WHOLE),
        ({"release": "2.5.1"}, [Severity.CRITICAL]),  # a wipe takes the store only
        (
            {"lives": TWO_LIVES},
            [Severity.CRITICAL],
        ),  # killed in its wipe: the next process read what was left
        ({"lives": ()}, [Severity.CRITICAL]),
        ({"shape": Shape.CLEANER_WALK}, [Severity.CRITICAL]),
        ({"deleted": False}, [Severity.CRITICAL]),
    ],
)
def test_a_process_that_wiped_its_directory_finds_no_checkpoint_in_it(more, found):
    """On a busy machine the checkpoint's removal can be read before the others, and the new store before both."""
    chosen = {"release": "4.1.0", "lives": ONE_LIFE, "shape": Shape.OWNER_WALK, "deleted": True, **more}
    one = store([database(puts=50, born=30)], [session(30, created=True, offset_at_open=121)])
    one.past += (past(25, shape=chosen["shape"], puts=200),)
    gone = checkpoint(24, 121, ended=24.5 if chosen["deleted"] else None, deleted=chosen["deleted"])
    app = Application("app", exists=True, first_seen_us=at(0))
    app.lives += chosen["lives"]
    wiped = case(task(one, checkpoints=[gone]), release=chosen["release"], application=app)
    assert severities(ID, wiped) == found


def test_puts_must_not_explain_the_offset():
    """A few puts more than the advance are noise, clearly more are a restoration."""
    assert severities(ID, deleted(offset=2050, puts=52)) == [Severity.CRITICAL]
    assert severities(ID, deleted(offset=2050, puts=53)) == []
    assert severities(ID, deleted(offset=3000, puts=1010)) == [Severity.CRITICAL]
    assert severities(ID, deleted(offset=3000, puts=1011)) == []


def test_store_must_have_lost_something():
    """A new store that holds most of what was there before lost nothing."""
    assert severities(ID, deleted(offset=2050, puts=50, prior=63)) == [Severity.CRITICAL]
    assert severities(ID, deleted(offset=2050, puts=50, prior=62)) == []


def test_offset_must_not_have_fallen():
    """A first checkpoint below the old offset is a restoration that is under way."""
    assert severities(ID, deleted(offset=1999, puts=0)) == []
    assert severities(ID, deleted(offset=2000, puts=0)) == [Severity.CRITICAL]


def test_hand_over_within_a_minute_is_sure():
    """Later than one pass of the cleaner it is only suspected."""
    assert judge(ID, deleted(created=85))[0].confidence is Confidence.CONFIRMED
    assert judge(ID, deleted(created=85.1))[0].confidence is Confidence.SUSPECTED


@pytest.mark.parametrize(("release", "missing"), [("3.9.2", ()), (None, ("kafka_streams_version",))])
def test_other_releases_are_suspected(release, missing):
    """A release that is not affected, or not known, is never convicted by this rule."""
    verdict = judge(ID, deleted(release=release))[0]
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert verdict.missing_facts == missing


@pytest.mark.parametrize("offset", [0, -4, None])
def test_only_a_real_old_offset_counts(offset):
    """An entry of 0, unknown, or none at all was no state."""
    one = deleted()
    one.task.checkpoints[-1].offsets.clear()
    if offset is not None:
        one.task.checkpoints[-1].offsets["s"] = offset
    assert judge(ID, one) == []


def on_disk(
    offset_at_open: int | None, *, segmented: bool = False, shape: Shape | None = None, wiped: bool = False
):
    """A store made at 30 s with this entry in force, written at 10 s."""
    name = "w.0" if segmented else None
    opened = session(30, created=True, offset_at_open=offset_at_open)
    opened.wiped = wiped
    one = store([database(born=30, segment=name)], [opened], segmented=segmented)
    if shape is not None:
        one.past += (past(20, shape=shape),)
    return case(task(one, checkpoints=[checkpoint(10, 3000)]), release="3.9.2", guarantee="at_least_once")


@pytest.mark.parametrize(("offset", "said"), [(3000, 1), (1, 1), (0, 0), (-4, 0), (None, 0)])
def test_entry_in_force(offset, said):
    """Only an entry above 0 is trusted to anybody's loss."""
    assert len(judge(ID, on_disk(offset))) == said


@pytest.mark.parametrize(
    ("release", "guarantee", "started", "said"),
    [
        ("2.1.1", "exactly_once", 9, Severity.CRITICAL),
        ("2.1.1", "exactly_once", 11, Severity.WARNING),
        ("2.1.1", "exactly_once", 31, Severity.CRITICAL),
        ("2.1.1", "at_least_once", 11, Severity.CRITICAL),
        ("2.1.1", None, 11, Severity.WARNING),
        ("2.8.1", "exactly_once", 11, Severity.CRITICAL),
    ],
)
def test_wipe_that_no_one_saw(release, guarantee, started, said):
    """An agent that starts between the checkpoint and the new store may have missed the wipe of its owner."""
    made = store([database(born=30)], [session(30, created=True, offset_at_open=2000)])
    one = case(task(made, checkpoints=[checkpoint(10, 2000)]), release=release, guarantee=guarantee)
    one.inventory.started_us = at(started)
    assert severities(ID, one) == [said]


@pytest.mark.twin_of(ID, "wiped by its owner under its lock (carried-checkpoint)")
def test_wiped_session_is_not_this_bug():
    """A wipe under the lock is judged by `carried-checkpoint`."""
    assert judge(ID, on_disk(3000, wiped=True)) == []


@pytest.mark.twin_of(ID, "a young segment of a windowed store")
def test_segments_need_a_cleaner():
    """Segments count only where a cleaner's walk took those before."""
    assert len(judge(ID, on_disk(3000, segmented=True, shape=Shape.CLEANER_WALK))) == 1
    for shape in (Shape.OWNER_WALK, Shape.VANISHED_UNSEEN, None):
        assert judge(ID, on_disk(3000, segmented=True, shape=shape)) == []


def left_behind(
    *, written: float = 10, born: float = 50, puts: int = 10, reopened: tuple[float, ...] = (), **settings
):
    """No session was seen: a checkpoint written at `written` beside a store born at `born`."""
    files = database(puts=puts, flushed=[(puts, born + 1)] if puts else [], born=born)
    files.manifest, files.reopened_us = 5, tuple(at(x) for x in reopened)
    chosen = {"release": "3.9.2", "guarantee": "at_least_once", **settings}
    return case(task(store([files]), checkpoints=[checkpoint(written, 3000)]), **chosen)


def test_left_behind():
    """Under at-least-once nothing but a torn deletion does this; dated by the birth of the store that lies."""
    (verdict,) = judge(ID, left_behind())
    assert (verdict.severity, verdict.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)
    assert [step.at_us for step in verdict.evidence] == [at(10), at(50)]
    assert (verdict.subject, verdict.opened_at_us) == ("identity-1", at(50))
    assert "40 s later" in verdict.summary
    assert severities(ID, left_behind(written=50, born=50)) == []


def test_left_behind_under_unknown_guarantee():
    """Where the release may wipe a store beside its checkpoint, an old checkpoint alone is a suspicion."""
    assert severities(ID, left_behind(release="2.1.1", guarantee=None)) == [Severity.WARNING]
    assert severities(ID, left_behind(release="2.1.1", guarantee="at_least_once")) == [Severity.CRITICAL]
    assert severities(ID, left_behind(release="3.9.2", guarantee=None)) == [Severity.CRITICAL]


@pytest.mark.twin_of(ID, "a process opened the task since")
def test_copied_times_decide_nothing():
    """N25: IDENTITY and checkpoint within seconds, but data from long before: the times are those of a copy."""
    one = left_behind(written=50, born=51)
    one.task.stores["s"].databases[""].oldest_data_us -= 1_000_000
    verdict = judge(ID, one)[0]
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    one.task.stores["opened"] = store([database()], [session(60)], name="opened")
    assert judge(ID, one) == []
    assert severities(ID, left_behind(written=50, born=51)) == [Severity.CRITICAL]


@pytest.mark.parametrize(
    ("born", "reopened", "copied"),
    [
        (14.9, (9.8,), True),
        (14.9, (9.9,), False),
        (14.9, (9.91,), False),
        (14.9, (9.8, 9.91), True),
        (100, (9.8,), True),
        (14.9, (), False),
    ],
)
def test_copied_volume_by_its_opens(born, reopened, copied):
    """A store that was opened long before it was made was copied; asked where no file says how old its data is."""
    one = left_behind(born=born, reopened=reopened)
    one.task.stores["s"].databases[""].oldest_data_us = 0
    verdict = judge(ID, one)[0]
    assert (verdict.severity is Severity.INFO) is copied
    assert verdict.confidence is (Confidence.UNKNOWN if copied else Confidence.SUSPECTED)


@pytest.mark.parametrize(("oldest", "copied"), [(10, True), (29, True), (30, False), (32, False)])
def test_copied_volume_by_its_data(oldest, copied):
    """Data that is older than its store, by its own word: the store's name card has the time of a copy."""
    one = left_behind(born=30, reopened=(31,))
    one.task.stores["s"].databases[""].oldest_data_us = at(oldest)
    verdict = judge(ID, one)[0]
    assert (verdict.severity is Severity.INFO) is copied
    assert ("oldest data" in verdict.evidence[0].what) is copied


def test_empty_store_under_a_checkpoint():
    """Nothing was ever written, yet an offset is claimed: suspected, whatever the times say."""
    one = left_behind(born=5, puts=0)
    verdict = judge(ID, one)[0]
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert (verdict.subject, verdict.opened_at_us) == ("identity-1", at(10))
    assert judge(ID, left_behind(born=5)) == []
    unread = left_behind(born=5, puts=0)
    unread.task.stores["s"].databases[""].manifest = None
    assert judge(ID, unread) == []


def test_checkpoint_that_is_no_longer_remembered():
    """The history is bounded: the verdict rests on the session, the chain on what is left."""
    new = session(30, created=True, offset_at_open=2000)

    def chain(*facts: CheckpointFact) -> list[int]:
        one = case(task(store([database(born=30)], [new]), checkpoints=facts), release="3.9.2")
        return [step.at_us for step in judge(ID, one)[0].evidence]

    assert chain() == [at(30)]
    assert chain(checkpoint(10, 2000)) == [at(10), at(30)]
    assert [x.subject for x in judge(ID, on_disk(3000))] == ["identity-1"]
