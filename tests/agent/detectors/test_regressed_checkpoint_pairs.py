"""Detector `regressed-checkpoint`: every pair and every entry is compared."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.timeline import Timeline
from tests.support.scenario_case import at, case, checkpoint, database, judge, session, store, task

ID = "regressed-checkpoint"


def test_a_new_directory_ends_no_comparison():
    """Two checkpoints of different directories are not compared; those after them are."""
    facts = [
        checkpoint(10, 9000, ended=20, incarnation=1),
        checkpoint(20, 5000, ended=30, incarnation=2),
        checkpoint(30, 3000, incarnation=2),
    ]
    verdicts = judge(ID, case(task(store([database()], [session(25)]), checkpoints=facts)))
    assert [x.opened_at_us for x in verdicts] == [at(30)]
    assert "from 5000 to 3000" in verdicts[0].summary


def test_an_entry_in_order_hides_no_other():
    """A store whose offset grew, one that is new and one that is gone stand before the one that went back."""
    before, after = checkpoint(10, 5000, ended=20, name="z"), checkpoint(20, 3000, name="z")
    before.offsets.update({"a": 10, "gone": 10})
    after.offsets.clear()
    after.offsets.update({"new": 1, "a": 11, "gone": 5, "z": 3000})
    stores = [store([database()], [session(15)], name=name) for name in ("a", "new", "z")]
    verdicts = judge(ID, case(task(*stores, checkpoints=[before, after])))
    assert [x.store for x in verdicts] == ["z"]


@pytest.mark.parametrize(
    ("release", "severity", "confidence"),
    [
        ("2.0.1", Severity.INFO, Confidence.CONFIRMED),
        ("2.4.1", Severity.INFO, Confidence.CONFIRMED),
        (None, Severity.INFO, Confidence.UNKNOWN),
    ],
)
def test_a_standby_reads_again_after_a_rebalance(release, severity, confidence):
    """Up to 2.4 it seeks back to where it opened; what it reads again is flushed again. Seen live at 2.0.1."""
    one = database()
    one.flushed = Timeline(((17_000, at(9)), (27_000, at(19))))
    facts = [checkpoint(10, 17_003, ended=20), checkpoint(20, 7_002)]
    again = session(0)
    again.offset_at_open = 2_000
    verdict = judge(ID, case(task(store([one], [again]), checkpoints=facts), release=release))[0]
    assert (verdict.severity, verdict.confidence) == (severity, confidence)
