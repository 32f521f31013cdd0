"""Detector `stale-segment-offset`: 4.3.0, the oldest segment holds an old offset (KAFKA-20663 a)."""

from __future__ import annotations

from agent.contract.events import Affected, Level, Severity, Status
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_case import at, case, database, session, store, task
from tests.support.scenario_script import play
from tests.support.tables import NOTED, QUIET, REMARKED, WARNED, said, table

ID = "stale-segment-offset"


def two_segments(release: str = "4.3.0", **more) -> Scenario:
    """The first segment stored offset 599 with its last data, the second is at 3599."""
    run = Scenario(release, stores={"w": WINDOWED}, **more)
    play(run, "start, opens, puts 600 segment=0, commits 599, flushes, 2 s, puts 3000 segment=60000")
    newest = run.task("0_0").databases["w", "60000"]
    newest.put_offset("app-w-changelog-0", 3599)
    newest.flush()
    run.wait(2)
    return run


def test_info_while_it_runs_and_warning_after_a_crash():
    """On 4.3.0 this is normal while the task runs; after an unclean end the restoration begins there."""
    run = two_segments()
    before = run.only(ID)
    assert (before.level, before.severity, before.status) == (Level.EXPOSURE, Severity.INFO, Status.OPEN)
    assert (before.store, before.affected, before.upstream) == ("w", Affected.YES, ("KAFKA-20663",))
    assert before.lasting  # nothing is to do at once
    assert "599" in before.summary
    assert "3599" in before.summary
    play(run, "crash, 5 s")
    normal, warning = run.findings(ID)
    assert (normal.severity, normal.status) == (Severity.INFO, Status.RESOLVED)
    assert (warning.severity, warning.status, warning.lasting) == (Severity.WARNING, Status.OPEN, False)


def test_clears_with_a_clean_close():
    """A clean close writes the offset into every segment."""
    run = play(two_segments(), "closes 3599, 5 s")
    assert run.only(ID).status is Status.RESOLVED


def dossier(
    *offsets: int | None,
    ends: tuple[bool | None, ...] = (False,),
    topics: tuple[int, ...] = (),
    segmented: bool = True,
    made: int = 1,
    release: str | None = "4.3.0",
) -> TaskCase:
    """Segments with these offsets, oldest first, read at 90 s; sessions that ended closed or not, or (None) last.

    `topics`: the first segment holds these offsets, of as many topics. `made`: -1 = the newest segment was made first.
    """
    files = [database(segment=f"w.{n}", born=9 + made * n, identity=f"id-{n}") for n in range(len(offsets))]
    for one, offset in zip(files, offsets, strict=True):
        one.seen_us = at(90)
        held = topics if one is files[0] and topics else () if offset is None else (offset,)
        one.offsets = (
            StoreOffsets(offsets=tuple((f"t{n}", x, 5) for n, x in enumerate(held))) if held else None
        )
    sessions = [session(10 * n, None if closed is None else 10 * n + 5) for n, closed in enumerate(ends)]
    for ended, closed in zip(sessions, ends, strict=True):
        ended.closed = closed
    return case(task(store(files, sessions, segmented=segmented, name="w")), release=release)


HARDLY = "the oldest segment is hardly behind the newest"


@table(ID, "one, expected", {
    "more than a hundred behind": (dossier(3498, 3599), WARNED),
    "a hundred behind": (dossier(3499, 3599), HARDLY),
    "the newest lags": (dossier(3599, 599), HARDLY),
    "late records made the oldest last": (dossier(3599, 599, made=-1), HARDLY),
    "the first record has offset zero": (dossier(0, 3599), WARNED),
    "an unknown offset": (dossier(-1, 3599), QUIET),
    "an offset that says unknown": (dossier(-4, 3599), QUIET),
    "one segment": (dossier(599), QUIET),
    "one segment with an offset": (dossier(None, 599, None), QUIET),
    "no offsets": (dossier(None, None), QUIET),
    "no windowed store": (dossier(599, 3599, segmented=False), QUIET),
    "of several topics the highest": (dossier(599, 3599, topics=(599, 3599)), HARDLY),
    "it runs": (dossier(599, 3599, ends=(None,)), NOTED),
    "closed": (dossier(599, 3599, ends=(True,)), NOTED),
    "an unclean end before a clean one is history": (dossier(599, 3599, ends=(False, True)), NOTED),
    "an unclean end after a clean one": (dossier(599, 3599, ends=(True, False)), WARNED),
    "4.3 may be 4.3.1": (dossier(599, 3599, release="4.3"), REMARKED),
})  # fmt: skip
def test_limits(one, expected):
    assert said(ID, one) == expected
