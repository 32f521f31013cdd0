"""Detector `stale-segment-offset`: 4.3.0, the oldest segment holds an old offset (KAFKA-20663 a)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.observations import StoreOffsets
from tests.support.scenario import WINDOWED, App, Scenario
from tests.support.scenario_case import at, case, database, judge, session, severities, store, task

ID = "stale-segment-offset"


def two_segments(release: str = "4.3.0", **more) -> tuple[Scenario, App]:
    """The first segment stored offset 599 with its last data, the second is at 3599."""
    run = Scenario(release, stores={"w": WINDOWED}, **more)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 600, segment=0)
    app.commits("0_0", 599)
    app.flushes("0_0")
    run.wait(2)
    app.puts("0_0", 3000, segment=60_000)
    task = run.task("0_0")
    newest = task.databases["w", "60000"]
    newest.put_offset("app-w-changelog-0", 3599)
    newest.flush()
    run.wait(2)
    return run, app


def test_info_while_it_runs_and_warning_after_a_crash():
    """On 4.3.0 this is normal while the task runs; after an unclean end the restoration begins there."""
    run, app = two_segments()
    before = run.only(ID)
    assert (before.level, before.severity, before.status) == (Level.EXPOSURE, Severity.INFO, Status.OPEN)
    assert (before.store, before.affected, before.upstream) == ("w", Affected.YES, ("KAFKA-20663",))
    assert before.lasting  # nothing is to do at once
    assert "599" in before.summary
    assert "3599" in before.summary
    app.crash()
    run.wait(5)
    normal, warning = run.findings(ID)
    assert (normal.severity, normal.status) == (Severity.INFO, Status.RESOLVED)
    assert (warning.severity, warning.status, warning.lasting) == (Severity.WARNING, Status.OPEN, False)


def test_clears_with_a_clean_close():
    """A clean close writes the offset into every segment."""
    run, app = two_segments()
    app.closes("0_0", 3599)
    run.wait(5)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.parametrize("release", ["4.3.1", "4.2.1"])
def test_quiet_on_other_releases(release):
    """4.3.1 has the same picture and restores from the right offset."""
    run, app = two_segments(release) if release != "4.2.1" else (Scenario(release), None)
    if app is not None:
        app.crash()
    run.wait(5)
    assert run.findings(ID) == []


def dossier(old: int = 599, new: int = 3599, *, segments: int = 2, closed: bool | None = False, **settings):
    """Segments with these offsets; the last session ended unclean, clean, or (None) goes on."""
    files = [database(segment=f"w.{n}", born=n, identity=f"id-{n}") for n in range(segments)]
    for one, offset in zip(files, (old, new), strict=False):
        one.offsets = StoreOffsets(offsets=(("app-w-changelog-0", offset, 5),))
    last = session(0, None if closed is None else 50)
    last.closed = bool(closed)
    return case(task(store(files, [last], segmented=True, name="w")), **{"release": "4.3.0", **settings})


@pytest.mark.twin_of("stale-segment-offset", "the oldest segment is hardly behind the newest")
def test_a_hundred_records_are_noise():
    """The distance must be more than a hundred."""
    assert judge(ID, dossier(3499, 3599)) == []
    assert severities(ID, dossier(3498, 3599)) == [Severity.WARNING]


@pytest.mark.parametrize(
    ("closed", "severity"), [(None, Severity.INFO), (True, Severity.INFO), (False, Severity.WARNING)]
)
def test_only_an_unclean_end_is_a_warning(closed, severity):
    """A task that runs, or was closed, is no reason to worry."""
    assert severities(ID, dossier(closed=closed)) == [severity]


def test_unknown_release_is_suspected():
    """4.3 without a patch number may be 4.3.1."""
    verdict = judge(ID, dossier(release="4.3"))[0]
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.SUSPECTED)


def test_needs_two_segments_with_offsets():
    """One segment, an unknown offset, or no offsets at all: nothing to compare."""
    assert judge(ID, dossier(segments=1)) == []
    assert judge(ID, dossier(-4, 3599)) == []
    one = dossier()
    one.task.stores["w"].segmented = False
    assert judge(ID, one) == []


def test_oldest_is_by_birth():
    """The oldest segment is the one that was made first; a newest one that lags is no such thing."""
    assert judge(ID, dossier(3599, 599)) == []
    assert judge(ID, dossier())[0].identity == "id-0"
    assert judge(ID, dossier())[0].opened_at_us == at(50)
