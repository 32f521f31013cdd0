"""Detector `stale-segment-offset`: which segments and which ends it compares."""

from __future__ import annotations

from agent.contract.events import Confidence, Severity
from agent.inventory.observations import StoreOffsets
from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "stale-segment-offset"


def dossier(*offsets: int | None, ends: tuple[bool, ...] = (False,)):
    """Segments with these offsets, oldest first, and sessions that ended closed or not."""
    files = [database(segment=f"w.{n}", born=n, identity=f"id-{n}") for n in range(len(offsets))]
    for one, offset in zip(files, offsets, strict=True):
        one.seen_us = at(90)
        if offset is not None:
            one.offsets = StoreOffsets(offsets=(("app-w-changelog-0", offset, 5),))
    sessions = [session(10 * n, 10 * n + 5) for n in range(len(ends))]
    for ended, closed in zip(sessions, ends, strict=True):
        ended.closed = closed
    return case(task(store(files, sessions, segmented=True, name="w")), release="4.3.0")


def test_oldest_with_an_offset_against_the_newest():
    """Segments without an offset are left out; the highest offset is the newest state, wherever it is."""
    verdict = judge(ID, dossier(None, 599, 3599, 1000))[0]
    assert (verdict.identity, verdict.evidence[0].what) == ("id-1", "offset 599 against 3599")
    assert judge(ID, dossier(None, 599, None)) == []


def test_offset_zero_is_an_offset():
    """The first record has offset zero."""
    assert len(judge(ID, dossier(0, 3599))) == 1
    assert judge(ID, dossier(-1, 3599)) == []


def test_highest_of_several_topics():
    """A segment that holds several offsets is as new as the highest."""
    one = dossier(599, 3599)
    one.task.stores["w"].databases["w.0"].offsets = StoreOffsets(offsets=(("a", 599, 5), ("b", 3599, 5)))
    assert judge(ID, one) == []


def test_last_end_decides():
    """An unclean end before a clean one is history, and the other way round it counts."""
    assert judge(ID, dossier(599, 3599, ends=(False, True)))[0].severity is Severity.INFO
    later = judge(ID, dossier(599, 3599, ends=(True, False)))[0]
    assert (later.severity, later.confidence) == (Severity.WARNING, Confidence.CONFIRMED)
    assert later.opened_at_us == at(15)
    assert "unclean end" in later.summary


def test_dated_to_the_reading_without_an_unclean_end():
    """While nothing ended uncleanly the look is all there is."""
    verdict = judge(ID, dossier(599, 3599, ends=(True,)))[0]
    assert verdict.opened_at_us == at(90)
    assert "unclean end" not in verdict.summary


def test_no_offsets_at_all():
    """Segments that hold no offset yet, or a single one, have nothing to compare."""
    assert judge(ID, dossier(None, None)) == []
    assert judge(ID, dossier(599)) == []
