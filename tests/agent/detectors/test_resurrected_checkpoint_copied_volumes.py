"""Detector `resurrected-checkpoint`: what one look at artefacts tells, and copied volumes."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.model import CheckpointFact
from tests.support.scenario_case import at, case, checkpoint, database, judge, session, store, task

ID = "resurrected-checkpoint"


def left(
    *, born: float = 30, written: float = 10, puts: int = 40, flushed=((40, 32),), reopened=(), **settings
):
    """One look: a checkpoint of `written`, a store made at `born`, no session known."""
    files = database(puts=puts, born=born, flushed=flushed)
    files.manifest = 5
    files.reopened_us = tuple(at(x) for x in reopened)
    chosen = {"release": "3.9.2", "guarantee": "at_least_once", **settings}
    return case(task(store([files]), checkpoints=[checkpoint(written, 2000)]), **chosen)


def test_checkpoint_older_than_its_store():
    """Under at-least-once nothing but a torn deletion does this."""
    verdict = judge(ID, left())[0]
    assert (verdict.severity, verdict.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)
    assert [step.at_us for step in verdict.evidence] == [at(10), at(30)]
    assert "20 s later" in verdict.summary


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
    one = left(born=born, flushed=((40, born),), reopened=reopened)
    one.task.stores["s"].databases[""].oldest_data_us = 0
    verdict = judge(ID, one)[0]
    assert (verdict.severity is Severity.INFO) is copied
    assert verdict.confidence is (Confidence.UNKNOWN if copied else Confidence.SUSPECTED)


@pytest.mark.parametrize(("oldest", "copied"), [(10, True), (29, True), (30, False), (32, False)])
def test_copied_volume_by_its_data(oldest, copied):
    """Data that is older than its store, by its own word: the store's name card has the time of a copy."""
    one = left(reopened=(31,))
    one.task.stores["s"].databases[""].oldest_data_us = at(oldest)
    verdict = judge(ID, one)[0]
    assert (verdict.severity is Severity.INFO) is copied
    assert ("oldest data" in verdict.evidence[0].what) is copied


def test_empty_store_under_a_checkpoint():
    """Nothing was ever written, yet an offset is claimed: suspected, whatever the times say."""
    one = left(born=5, puts=0, flushed=())
    verdict = judge(ID, one)[0]
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert (verdict.subject, verdict.opened_at_us) == ("identity-1", at(10))
    assert judge(ID, left(born=5)) == []
    unread = left(born=5, puts=0, flushed=())
    unread.task.stores["s"].databases[""].manifest = None
    assert judge(ID, unread) == []


def test_named_by_its_store():
    """The incarnation is the subject: a second look, or a later checkpoint, tells nothing new."""
    assert judge(ID, left())[0].subject == "identity-1"
    new = session(30, created=True, offset_at_open=2000)
    on_disk = case(
        task(store([database(born=30)], [new]), checkpoints=[checkpoint(10, 2000)]), release="3.9.2"
    )
    assert [x.subject for x in judge(ID, on_disk)] == ["identity-1"]


def test_checkpoint_that_is_no_longer_remembered():
    """The history is bounded: the verdict rests on the session, the chain on what is left."""
    new = session(30, created=True, offset_at_open=2000)

    def chain(*facts: CheckpointFact) -> list[int]:
        one = case(task(store([database(born=30)], [new]), checkpoints=facts), release="3.9.2")
        return [step.at_us for step in judge(ID, one)[0].evidence]

    assert chain() == [at(30)]
    assert chain(checkpoint(10, 2000)) == [at(10), at(30)]
