"""The judge: offsets that claim too much up to 2.5, and that no file shows."""

from __future__ import annotations

import dataclasses

import pytest

from tests.lab.design import Run
from tests.lab.plan import ALOS, EOS
from tests.lab.test_judge import kinds, run, true
from tests.lab.timeline import Marks
from tests.lab.truth import Difference

S = 1_000_000
NINETEEN = Difference("kv", 0, 19, 0, 60)
STARTS = ((1, "a starts 2.5.1"), (2, "b starts 2.5.1"), (3, "800 records sent"), (4, "committed"))
SENT = "20 records sent"
PAUSED = (*STARTS, (10, "a is frozen"), (10 + 9 * S, "a goes on"), (11 + 9 * S, SENT))
STALLED = (*STARTS, (10, "step stall for_ms=15000"), (11, SENT), (10 + 15 * S, "the broker goes on"))
FULL = (*STARTS, (10, "step disk-full pod=a for_ms=6000"), (5 * S, SENT), (11 * S, "step check"))


def judged(
    marks: Marks, of: Run | None = None, difference: Difference = NINETEEN, pod: str = "a"
) -> list[str]:
    truth = dataclasses.replace(true(difference, pod=pod), at_us=60 * S)
    return kinds(of or run("2.5.1"), [truth], marks=marks)


def on(release: str, marks: Marks) -> Marks:
    return tuple((at_us, what.replace("2.5.1", release)) for at_us, what in marks)


@pytest.mark.parametrize("marks", [PAUSED, STALLED, FULL])
def test_what_an_offset_covers_and_no_file_shows_is_announced(marks):
    """Found by the hunt: 2.5.1, 19 of the 20 records that another pod had written in a pause of nine seconds."""
    assert judged(marks) == ["blind_spot"]
    assert judged(marks, pod="") == ["blind_spot"]
    assert judged(on("2.6.2", marks), run("2.6.2")) == ["miss"]


@pytest.mark.parametrize("marks", [PAUSED, STALLED, FULL])
def test_what_was_committed_before_is_a_miss(marks):
    """Found by the hunt: 2.0.1, 4,040 lost where 2,500 had been sent since all were committed: another fault."""
    assert judged(marks, difference=dataclasses.replace(NINETEEN, lost=21, expected=900)) == ["miss"]


@pytest.mark.parametrize(
    ("marks", "guarantee", "kind"),
    [
        (PAUSED, ALOS, "blind_spot"),
        (PAUSED, EOS, "miss"),
        (FULL, ALOS, "blind_spot"),
        (FULL, EOS, "blind_spot"),
    ],
)
def test_a_pause_loses_nothing_under_exactly_once(marks, guarantee, kind):
    assert judged(marks, run("2.5.1", guarantee)) == [kind]


def test_older_releases_fail_with_the_flush():
    assert judged(on("2.3.1", FULL), run("2.3.1")) == ["miss"]
    assert judged(on("2.3.1", PAUSED), run("2.3.1")) == ["blind_spot"]


@pytest.mark.parametrize("marks", [PAUSED, FULL])
def test_it_is_the_pod_that_was_paused_or_full_and_nothing_is_too_many(marks):
    late = tuple((at_us + 100 * S, what) for at_us, what in marks[4:])
    assert judged(marks, pod="b") == ["miss"]
    assert judged(marks, difference=dataclasses.replace(NINETEEN, extra=1)) == ["miss"]
    assert judged((*STARTS, *late)) == ["miss"]


def test_a_pause_shorter_than_the_session_costs_nothing():
    assert judged((*STARTS, (10, "a is frozen"), (10 + 2 * S, "a goes on"), (11 + 2 * S, SENT))) == ["miss"]


def test_with_one_pod_no_other_one_takes_over():
    assert judged((STARTS[0], *PAUSED[2:])) == ["miss"]


def test_no_owner_writes_to_a_source_topic():
    table = dataclasses.replace(NINETEEN, store="table")
    optimised = dataclasses.replace(run("2.5.1"), settings={"topology.optimization": "all"})
    assert judged(PAUSED, difference=table) == ["blind_spot"]
    assert judged(PAUSED, optimised, difference=table) == ["miss"]
    assert judged(PAUSED, optimised) == ["blind_spot"]


def test_silence_about_a_store_in_memory_is_announced():
    """Found by the hunt: KAFKA-7672 of a store in memory, 2.0.1; the stores on disk beside it were right."""
    lost = Difference("memory", 0, 1500, 0, 2700)
    assert judged(FULL[:1], difference=lost) == ["blind_spot"]
    assert judged(FULL[:1], difference=dataclasses.replace(lost, store="kv")) == ["miss"]


@pytest.mark.parametrize(
    ("release", "step", "kind"),
    [
        ("4.3.1", "commit-fails pod=a away_ms=0 kill=False", "blind_spot"),
        ("3.7.2", "commit-fails pod=a away_ms=0 kill=False", "miss"),
        ("4.3.1", "kill pod=a away_ms=0", "miss"),
    ],
)
def test_silence_about_input_that_a_task_skipped(release, step, kind):
    """Found by the hunt: 277 records behind a commit that had timed out, 4.3.1."""
    marks = (*on(release, STARTS), (20, f"step {step}"), (21, "a commit has timed out"))
    lost = Difference("kv", 0, 277, 0, 542)
    assert judged(marks, run(release, EOS), lost, pod="") == [kind]
    assert judged(marks, run(release, EOS), lost, pod="a") == [
        "miss"
    ]  # what the others hold, it has lost since
    assert judged(marks, run(release, EOS), dataclasses.replace(lost, extra=1), pod="") == ["miss"]


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        (("delete=True back_ms=0", "delete=False back_ms=15000"), "blind_spot"),
        (("delete=True back_ms=0", "delete=False back_ms=0"), "miss"),
        (("delete=False back_ms=15000", "delete=True back_ms=0"), "miss"),
        (("delete=False back_ms=15000",), "miss"),
    ],
)
def test_silence_about_a_deletion_that_a_versioned_store_forgets(steps, kind):
    """Found by the hunt: 500 keys came back with a value of before their deletion, 4.3.0."""
    extra = Difference("versioned", 0, 0, 500, 400)
    again = [f"step again share=50 {step}" for step in steps]
    marks = (*STARTS, *((20, what) for step in again for what in (step, "records sent again")))
    assert judged(marks, run("4.3.0", EOS), difference=extra) == [kind]
    assert judged(marks, run("4.3.0", EOS), difference=dataclasses.replace(extra, lost=1)) == ["miss"]
