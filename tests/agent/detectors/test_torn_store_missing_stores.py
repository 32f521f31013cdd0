"""Detector `torn-store`: a checkpoint without its store, and which life counts."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.blindness import note_blind
from agent.inventory.model import Application, Deletion, ProcessLife, Remains, Shape, Store
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario_case import at, case, checkpoint, database, judge, past, store, task

ID = "torn-store"


def gone(*ended: float, **more):
    """The checkpoint names `s`, which has no directory; its incarnations ended at these times."""
    one = store()
    one.past += tuple(past(x) for x in ended)
    return case(task(one, checkpoints=[checkpoint(10, 999)]), **{"release": "3.9.2", **more})


def test_known_store_is_reported_with_its_consequence():
    """A store that was seen before is gone for sure; the moment is the end of its newest incarnation."""
    verdict = judge(ID, gone(20, 30, 50))[0]
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.CONFIRMED)
    assert verdict.opened_at_us == at(50)
    assert "would trust it" in verdict.summary
    assert "custom store" not in verdict.summary


def test_unknown_store_is_reported_as_such():
    """A store that was never seen may be none of RocksDB's; the moment is the look."""
    for one in (gone(), case(task(checkpoints=[checkpoint(10, 999)]), release="3.9.2")):
        verdict = judge(ID, one)[0]
        assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.UNKNOWN)
        assert verdict.opened_at_us == at(10)
        assert "custom store" in verdict.summary
        assert "would trust it" not in verdict.summary


def windowed(shape: Shape, task_incarnation: int = 1):
    """The checkpoint names a windowed store that has no segment any more; its last one ended so."""
    one = store(segmented=True)
    ended = past(20, shape=shape, segment="0")
    ended.task_incarnation = task_incarnation
    one.past += (ended,)
    return case(task(one, checkpoints=[checkpoint(10, 999)]), release="2.0.1")


def test_windowed_store_may_have_no_segment():
    """Records that the changelog dropped, or that expired, leave a windowed store without a directory.

    Seen live on 2.0.1: the task came back, every record of its windows had expired, and the close wrote the end.
    """
    for one in (windowed(Shape.OWNER_WALK), windowed(Shape.CLEANER_WALK, task_incarnation=0)):
        verdict = judge(ID, one)[0]
        assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.UNKNOWN)
        assert "expired" in verdict.summary
    verdict = judge(ID, windowed(Shape.CLEANER_WALK))[0]
    assert (verdict.severity, verdict.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)


def test_last_moment_before_the_start():
    """A minute later nobody has taken it, and a start would trust the offset: critical, with the one thing to do."""
    assert judge(ID, gone(20, 30, 41))[0].severity is Severity.WARNING
    verdict = judge(ID, gone(20, 30, 40))[0]
    assert verdict.severity is Severity.CRITICAL
    assert verdict.next_action.startswith("BEFORE the next start: keep a copy of the task directory app/0_0")


def test_a_minute_that_the_clock_was_set_by_is_no_minute():
    """It was set forward by 20 s since: 40 s have passed. What it was set by before, or back, changes nothing."""
    one = gone(20, 30, 40)
    note_blind(one.inventory, at(50), at(70), "clock-step")
    assert judge(ID, one)[0].severity is Severity.WARNING
    for began, ended in ((10, 35), (90, 110)):
        one = gone(20, 30, 40)
        note_blind(one.inventory, at(began), at(ended), "clock-step")
        assert judge(ID, one)[0].severity is Severity.CRITICAL


def test_deletion_that_the_clock_was_set_in_is_not_over():
    """Five seconds without a removal end it; here the clock was set by 30 s, and 2 s have passed."""
    for name, said in (("clock-step", 0), ("agent-stalled", 1)):
        one = gone(68)
        note_blind(one.inventory, at(69), at(99), name)
        one.task.walk = Deletion(at(60), at(68), Shape.OWNER_WALK, held=False)
        assert len(judge(ID, one)) == said


def test_entries_in_order_hide_no_other():
    """A store that is there, remains of one, and an empty entry stand before the one that is gone."""
    fact = checkpoint(10, 999, name="z")
    fact.offsets.clear()
    fact.offsets.update({"there": 5, "left": 5, "empty": 0, "z": 999})
    left = store(name="left")
    left.remains[""] = Remains("app/0_0/rocksdb/left", at(99), 2)
    one = case(task(store([database()], name="there"), left, checkpoints=[fact]), release="3.9.2")
    assert [x.store for x in judge(ID, one)] == ["z"]


def test_a_deletion_dies_with_its_process():
    """The end of a life ends a walk that came before it, whoever runs now; of one that came later it says nothing."""
    app = Application("app", exists=True)
    app.lives += (ProcessLife(at(0), at(97)), ProcessLife(at(97.5)))
    one = task(store(), checkpoints=[checkpoint(10, 999)])
    one.walk = Deletion(at(96), at(96.5), Shape.CLEANER_WALK, held=False)
    assert len(judge(ID, case(one, application=app, release="3.9.2"))) == 1
    one.walk = Deletion(at(97.6), at(98), Shape.CLEANER_WALK, held=False)
    assert judge(ID, case(one, application=app, release="3.9.2")) == []
    app.lives[-1].ended_us = at(98)
    assert len(judge(ID, case(one, application=app, release="3.9.2"))) == 1


# -- one reading, and what its neighbours show ------------------------------------------------------------------


def beside(*stores: Store, task_id: str = "0_1", exists: bool = True) -> Application:
    """An application with another task that has these stores."""
    app, other = Application("app", exists=True), task(*stores)
    other.id, other.exists = task_id, exists
    app.tasks[task_id] = other
    return app


def alone(*in_task: str, bare: float | None = None, application: Application | None = None, now: float = 100):
    """The checkpoint names `s`, of which nothing was ever seen; `in_task`: names in the task's directory."""
    one = task(checkpoints=[checkpoint(10, 999)])
    one.names = frozenset({".checkpoint", *in_task})
    if bare is not None:
        one.bare = {"s": at(bare)}
    return case(one, application=application, release="3.9.2", now=now)


KEY_VALUE, WINDOWED = store([database()]), store([database(segment="s.0")], segmented=True)


@pytest.mark.parametrize(
    ("one", "confidence", "says"),
    [
        (
            alone(application=beside(KEY_VALUE)),
            Confidence.SUSPECTED,
            "has no directory, and task 0_1 has that store",
        ),
        (alone("rocksdb", application=beside(KEY_VALUE)), Confidence.SUSPECTED, "task 0_1 has that store"),
        (alone(application=beside(WINDOWED)), Confidence.SUSPECTED, "task 0_1 has that store"),
        (
            alone("s", application=beside(WINDOWED)),
            Confidence.SUSPECTED,
            "unless all of its records have expired",
        ),
        (
            alone("s.position"),
            Confidence.SUSPECTED,
            "has no directory, and s.position shows that it was put to",
        ),
        (alone("s", "s.position"), Confidence.SUSPECTED, "has no segment, and s.position shows"),
        (alone("rocksdb", bare=10), Confidence.CONFIRMED, "has an empty directory"),
    ],
)
def test_neighbours_show_that_it_was_there(one, confidence, says):
    """The start would make an empty store and trust the offset: nothing else will ever say so."""
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.CRITICAL, confidence)
    assert says in verdict.summary
    assert "would trust it for an empty store" in verdict.summary


@pytest.mark.parametrize(
    "one",
    [
        alone("s"),
        alone("s", application=beside(store([database()], name="t"))),
        alone("t.position", "rocksdb", application=beside(store([database()], name="t"))),
        alone(application=beside(store())),
        alone(application=beside(KEY_VALUE, exists=False)),
        alone(application=beside(KEY_VALUE, task_id="global")),
    ],
)
def test_custom_store_stays_a_remark(one):
    """Neither another store, nor a task that is gone, shows what this one is kept in."""
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    assert "would trust it" not in verdict.summary


def test_what_could_not_be_read_is_not_gone():
    """A link that is not followed, a directory that may not be listed: nobody knows what is in it."""
    one = alone("rocksdb", application=beside(KEY_VALUE))
    note_blind(one.inventory, at(5), at(5), "denied", "app", "0_0").ended_us = None
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    assert "was not read" in verdict.summary


@pytest.mark.twin_of(ID, "the directory of the global stores cannot be read now")
def test_global_stores_that_cannot_be_read():
    """Which store an entry means, only the files show."""
    one = global_task()
    note_blind(one.inventory, at(5), at(5), "denied", "app", "global").ended_us = None
    assert judge(ID, one) == []


@pytest.mark.twin_of("torn-store", "the store may be about to be made, or copied to its place")
def test_not_before_it_is_settled():
    """It may be about to be made, or copied to its place."""
    for one in (alone(application=beside(KEY_VALUE), now=14.9), alone("rocksdb", bare=12, now=16.9)):
        assert judge(ID, one) == []
    (verdict,) = judge(ID, alone("rocksdb", bare=12, now=17))
    assert (verdict.severity, verdict.opened_at_us) == (Severity.WARNING, at(12))


def global_task(*stores: Store, in_task: tuple[str, ...] = (), offset: int = 4999, bare: str = ""):
    """The directory of the global stores; its checkpoint names topics."""
    fact = checkpoint(10, None)
    fact.foreign = (OffsetEntry("customers", 0, offset), OffsetEntry("customers", 1, 7))
    one = task(*stores, checkpoints=[fact])
    one.id, one.path, one.names = "global", "app/global", frozenset({".checkpoint", ".lock", *in_task})
    one.bare = {bare: at(10)} if bare else {}
    return case(one, release="3.9.2")


REMOVED = store(name="g")
REMOVED.past += (past(20),)


@pytest.mark.parametrize(
    ("one", "confidence", "says"),
    [
        (global_task(), Confidence.SUSPECTED, "a global store, which is not on disk, and nothing else is"),
        (global_task(in_task=("rocksdb",)), Confidence.SUSPECTED, "nothing else is"),
        (global_task(in_task=("g.position",)), Confidence.SUSPECTED, "store g, which has no directory, and g.position"),
        (global_task(store([database()], name="h"), in_task=("rocksdb", "g.position", "h.position")),
         Confidence.SUSPECTED, "store g, which has no directory, and g.position"),
        (global_task(REMOVED), Confidence.CONFIRMED, "store g, which has no directory: "),
        (global_task(in_task=("rocksdb",), bare="g"), Confidence.CONFIRMED, "store g, which has an empty directory"),
    ],
)  # fmt: skip
def test_global_store_that_vanished(one, confidence, says):
    """Its checkpoint names a topic, and the next start reads on from there."""
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.CRITICAL, confidence)
    assert says in verdict.summary


def test_global_stores_that_say_nothing():
    """One is there; nothing was read yet; a custom one has its own directory: a remark at most."""
    assert judge(ID, global_task(store([database()], name="g"), in_task=("rocksdb", "g.position"))) == []
    nothing = global_task()
    nothing.task.checkpoints[-1].foreign = (OffsetEntry("customers", 0, 0),)
    assert judge(ID, nothing) == []
    assert judge(ID, global_task(in_task=("lucene",)))[0].severity is Severity.INFO
