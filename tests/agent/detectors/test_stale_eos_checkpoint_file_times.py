"""Detector `stale-eos-checkpoint`: what file times alone tell, and which issue it names."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.observations import StoreOffsets
from tests.support.scenario_case import at, case, checkpoint, database, judge, mark, session, store, task

ID = "stale-eos-checkpoint"


def at_rest(*, flushed: float = 20, offset: int | None = 1999, **settings):
    """One look at a store that nobody held since: 2,000 puts at 9 s, 500 more at `flushed`; checkpoint of 10 s."""
    files = database(puts=2500, flushed=[(2000, 9), (2500, flushed)])
    return case(task(store([files]), checkpoints=[checkpoint(10, offset)]), **settings)


def test_file_times_show_what_was_flushed_since():
    """Without any history the times of the files say it; the chain begins at the checkpoint."""
    verdict = judge(ID, at_rest())[0]
    assert verdict.severity is Severity.CRITICAL
    assert "500 puts" in verdict.summary
    assert "ended uncleanly" in verdict.summary
    assert [step.at_us for step in verdict.evidence] == [at(10), at(20)]


@pytest.mark.twin_of(ID, "its file times may be those of a copy")
@pytest.mark.twin_of(ID, "nothing was flushed beyond the checkpoint")
def test_times_must_differ():
    """A volume copied without its times has everything within half a second: unknown."""
    for flushed, said in ((10.4, 0), (10.499, 0), (10.5, 1), (9.5, 0)):
        assert len(judge(ID, at_rest(flushed=flushed))) == said


@pytest.mark.twin_of(ID, "the checkpoint does not name it")
def test_needs_an_entry_and_a_flush():
    """A store that the checkpoint does not name, or without any file, tells nothing."""
    assert judge(ID, at_rest(offset=None)) == []
    empty = at_rest()
    empty.task.stores["s"].databases[""].flushed = ()
    assert judge(ID, empty) == []
    gone = at_rest()
    gone.task.stores["s"].databases.clear()
    assert judge(ID, gone) == []


def test_store_that_keeps_its_offsets():
    """4.3 and later keep them in the store: one that a predecessor left says nothing."""
    one = at_rest()
    assert one.task is not None
    one.task.stores["s"].databases[""].offsets = StoreOffsets(status=1)
    assert judge(ID, one) == []


@pytest.mark.parametrize(
    ("offset", "flushed", "severity"),
    [(10_000, 20, Severity.CRITICAL), (10_001, 20, Severity.WARNING), (10_001, 40, Severity.CRITICAL)],
)
def test_checkpoint_that_a_commit_may_have_written(offset, flushed, severity):
    """A restoration that was killed leaves the like within seconds: what is flushed later was processed."""
    verdict = judge(ID, at_rest(offset=offset, flushed=flushed))[0]
    assert verdict.severity is severity
    assert verdict.confidence is Confidence.SUSPECTED  # a pause leaves the same


def test_running_task_is_not_called_ended():
    """While the store is held a crash is still to come."""
    files = database(puts=2500, flushed=[(2000, 9), (2500, 20)])
    held = store([files], [session(0, first=mark(10, 1999, 2000))])
    verdict = judge(ID, case(task(held, checkpoints=[checkpoint(10, 1999)])))[0]
    assert "a crash would" in verdict.summary
    assert [step.at_us for step in verdict.evidence] == [at(0), at(10), at(20)]


@pytest.mark.parametrize(
    ("release", "issue"), [("2.6.1", "KAFKA-10362"), ("4.1.2", "KAFKA-20685"), (None, "KAFKA-20685")]
)
def test_names_the_issue_of_the_release(release, issue):
    """The older issue is named only where the newer one is excluded."""
    assert judge(ID, at_rest(release=release))[0].upstream == (issue,)


def test_store_without_a_verdict_hides_no_other():
    """A store in order, before or after the exposed one, changes nothing; of two equals the first speaks."""

    def dossier(*names: str):
        stores = []
        for name in names:
            flushed = [(2000, 9)] if name == "quiet" else [(2000, 9), (2500, 20)]
            files = database(puts=flushed[-1][0], flushed=flushed)
            stores.append(store([files], [session(0, first=mark(10, 1999, 2000))], name=name))
        return case(task(*stores, checkpoints=[checkpoint(10, 1999)]))

    assert len(judge(ID, dossier("quiet", "s"))) == 1
    assert len(judge(ID, dossier("s", "quiet"))) == 1
    assert "store a were" in judge(ID, dossier("a", "b"))[0].summary


def test_store_that_is_gone_exposes_nothing():
    """What was released with flushed data and then deleted cannot be trusted by anyone."""
    ended = session(0, 30, puts=2500, first=mark(10, 1999, 2000))
    files = database(puts=2500, flushed=[(2000, 9), (2500, 20)])
    one = case(task(store([files], [ended]), checkpoints=[checkpoint(10, 1999)]))
    assert len(judge(ID, one)) == 1
    assert one.task is not None
    one.task.stores["s"].databases.clear()
    assert judge(ID, one) == []


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [(None, 49, 0), (None, 50, 1), (2000, 49, 1), (1999, 49, 0), (1999, 50, 1)],
)
def test_checkpoint_on_the_way_of_a_restoration(before, now, said):
    """One that moved by more than 10,000 offsets may not be the last: only when it stands for long it is."""
    files = database(puts=12_500, flushed=[(12_000, 9), (12_500, 20)])
    held = store([files], [session(0, first=mark(10, 12_000, 12_000))])
    older = [] if before is None else [checkpoint(5, before, ended=10)]
    one = case(task(held, checkpoints=[*older, checkpoint(10, 12_000)]), now=now)
    assert len(judge(ID, one)) == said
