"""Who goes when room is needed: summaries, then transitions and heartbeats, then the rest; each loss told first."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.events import Kind, Record
from agent.errors import SpoolError, SpoolFullError
from agent.ship import segments
from tests.agent.ship.ship_support import (
    AT_US,
    HandClock,
    drain,
    drop_rows,
    files,
    finding,
    heartbeat,
    open_spool,
    sequences,
    transition,
)

KIB = 1024


@pytest.fixture
def clock() -> HandClock:
    """Give a clock by hand."""
    return HandClock()


def summary(size_bytes: int = 0, number: int = 0) -> Record:
    """Make a summary of about the size that is asked for."""
    body = {"application_id": "a", "task_id": "0_0", "stores": [{"store": "x" * size_bytes}]}
    return Record(Kind.SUMMARY, AT_US + number, body)


def kinds(rows: list[dict[str, Any]]) -> Counter[str]:
    """Count records by kind."""
    return Counter(row["kind"] for row in rows)


def test_summaries_leave_mixed_segments_and_the_rest_stays(tmp_path: Path, clock: HandClock) -> None:
    """Room is made inside segments: the summaries go, oldest first, and nothing else does."""
    with open_spool(tmp_path, clock, cap_bytes=12 * 16 * KIB) as spool:
        for number in range(40):
            spool.append(summary(4 * KIB, number))
            spool.append(transition(KIB, number))
            spool.append(finding())
        spool.seal()
        assert any("-k" in name for name in files(tmp_path, "sealed"))
        dropped = spool.stats().dropped
        rows = drain(spool)
    assert set(dropped) == {"summary"}
    assert kinds(rows)["summary"] + dropped["summary"] == 40
    assert (kinds(rows)["transition"], kinds(rows)["finding"]) == (40, 40)
    left = [row["sequence"] for row in rows if row["kind"] == "summary"]
    gone = {n for _, _, first, until, _ in drop_rows(rows) for n in range(first, until + 1)}
    assert max(gone) < min(left)


def test_transitions_go_next_and_findings_last(tmp_path: Path, clock: HandClock) -> None:
    """Under one cap, more and more findings displace summaries first, then transitions, then old findings."""
    seen = []
    with open_spool(tmp_path, clock, cap_bytes=8 * 16 * KIB) as spool:
        for number in range(12):
            spool.append(summary(2 * KIB, number))
            spool.append(transition(2 * KIB, number))
        while "finding" not in spool.stats().dropped:
            spool.append(finding())
            seen.append(dict(spool.stats().dropped))
    first = {kind: next(n for n, x in enumerate(seen) if kind in x) for kind in seen[-1]}
    assert sorted(first, key=lambda kind: first[kind]) == ["summary", "transition", "finding"]
    assert seen[first["transition"]]["summary"] == 12
    assert seen[first["finding"]]["transition"] == 12


def test_a_summary_never_displaces_a_finding(tmp_path: Path, clock: HandClock) -> None:
    """When only findings are left, the summary that comes is the one that goes, and it is announced."""
    with open_spool(tmp_path, clock, cap_bytes=3 * 16 * KIB) as spool:
        while spool.stats().bytes < 31 * KIB:
            spool.append(finding())
        findings = spool.stats().records
        with pytest.raises(SpoolFullError, match="nothing may be dropped for this record"):
            spool.append(summary(2 * KIB))
        with pytest.raises(SpoolFullError):
            spool.append(transition(2 * KIB))
        assert spool.stats().dropped == {"summary": 1, "transition": 1}
        spool.seal()
        rows = drain(spool)
    assert kinds(rows)["finding"] == findings
    assert {row[0] for row in drop_rows(rows)} == {"summary", "transition"}


def test_announcements_do_not_fill_the_spool(tmp_path: Path, clock: HandClock) -> None:
    """Weeks without a sink: announcements are folded into one, and the newest records still find room."""
    with open_spool(tmp_path, clock, cap_bytes=6 * 16 * KIB) as spool:
        for number in range(1_000):
            spool.append(summary(KIB, number))
        spool.seal()
        dropped, rows = dict(spool.stats().dropped), drain(spool)
    assert kinds(rows)["drop"] < 20
    assert kinds(rows)["summary"] > 10
    assert sum(row[1] for row in drop_rows(rows) if row[0] == "summary") == dropped["summary"]


def test_the_cap_in_files_holds(tmp_path: Path, clock: HandClock) -> None:
    """However many small segments are sealed, the number of files stays below the cap, and drops are told."""
    with open_spool(tmp_path, clock, cap_files=6) as spool:
        spool.append(finding())
        for number in range(30):
            with suppress(SpoolFullError):  # a summary where only transitions are left
                spool.append(summary(10, number) if number % 2 else transition(10, number))
            spool.seal()
            assert len(list(tmp_path.iterdir())) <= 6 + 3  # lock, position file and reserve do not count
        spool.append(heartbeat())
        spool.seal()
        dropped, rows = dict(spool.stats().dropped), drain(spool)
    announced = Counter[str]()
    for kind, count, *_ in drop_rows(rows):
        announced[kind] += count
    assert announced == dropped
    assert kinds(rows)["finding"] == 1


def test_age_seals_no_more_while_many_segments_wait(tmp_path: Path, clock: HandClock) -> None:
    """A sink that is away does not cost a file per interval; when it has taken some, age counts again."""
    with open_spool(tmp_path, clock) as spool:
        for number in range(40):
            spool.append(heartbeat(number))
            clock.at_s += 20
            spool.maintain()
        assert len(files(tmp_path, "sealed")) == 16
        parcel = spool.take()
        assert parcel is not None
        spool.acknowledge(parcel)
        spool.maintain()
        assert files(tmp_path, "open") == []


def test_a_kill_before_the_deletion_leaves_every_record(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The announcement is on disk before the first file goes: a kill in between loses nothing."""
    real, copied = segments.sync_directory, tmp_path / "killed"

    def copy_then_sync(directory: Path) -> None:
        if not copied.exists() and any("-k" in name for name in files(directory, "sealed")):
            shutil.copytree(directory, copied)
        real(directory)

    monkeypatch.setattr(segments, "sync_directory", copy_then_sync)
    with open_spool(tmp_path / "spool", clock, cap_bytes=4 * 16 * KIB) as spool:
        for number in range(20):
            spool.append(summary(2 * KIB, number))
            spool.append(transition(100, number))
    both = [name for name in files(copied, "sealed") if name.startswith("boot1-000000000001-")]
    assert len(both) == 2  # the whole one and the thinned one
    with open_spool(copied, clock) as spool:
        rows = drain(spool)
    assert drop_rows(rows)[0][0] == "summary"
    left = sequences(rows)
    assert len(left) == len(set(left))
    assert [name for name in files(copied, "sealed") if name in both] == []


def test_a_finding_makes_room_on_a_full_disk(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full before the cap drops by the same order: a waiting summary goes for a finding."""
    real, refuse = os.pwrite, [0]

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if refuse[0]:
            refuse[0] -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with open_spool(tmp_path, clock) as spool:
        spool.append(summary(KIB))
        spool.seal()
        refuse[0] = 1
        assert spool.append(finding()) == 3  # behind the announcement
        spool.seal()
        rows = drain(spool)
    assert kinds(rows) == {"finding": 1, "drop": 1}
    assert drop_rows(rows) == [("summary", 1, 1, 1, "spool-cap; boot boot1")]


def test_another_fault_of_the_disk_costs_nothing_that_waits(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a full disk is helped by deleting: a volume that turned read-only keeps what it has."""
    with open_spool(tmp_path, clock) as spool:
        spool.append(summary(KIB))
        spool.seal()

        def refuse(*_: object) -> int:
            raise OSError(errno.EROFS, "Read-only file system")

        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refuse)
            with pytest.raises(SpoolError, match="Read-only file system; free or mend its volume"):
                spool.append(finding())
        assert kinds(drain(spool)) == {"summary": 1}
        assert spool.stats().write_failures == 1


@given(st.lists(st.tuples(st.sampled_from("stfh"), st.integers(0, 3 * KIB)), max_size=120))
def test_shipped_and_announced_make_one_whole(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Whatever comes, the caps hold, and every sequence is shipped once or announced."""
    make = {"s": summary, "t": transition, "f": lambda *_: finding(), "h": lambda _, n: heartbeat(n)}
    folder, cap = tmp_path_factory.mktemp("spool"), 4 * 16 * KIB
    with open_spool(folder, HandClock(), cap_bytes=cap, cap_files=5) as spool:
        for number, (kind, size) in enumerate(steps):
            try:
                spool.append(make[kind](size, number))
            except SpoolFullError:
                assert kind != "f"
            assert sum(x.stat().st_size for x in folder.iterdir() if x.name != "reserve") <= cap
        spool.append(finding())
        spool.seal()
        dropped, rows = dict(spool.stats().dropped), drain(spool)
    announced = Counter[str]()
    for kind, count, *_ in drop_rows(rows):
        announced[kind] += count
    assert announced == dropped
    seen = sequences(rows)
    assert len(seen) == len(set(seen))
    assert len(seen) + sum(announced.values()) == max(seen)
    holes = set(range(1, max(seen) + 1)) - set(seen)
    assert holes <= {n for _, _, first, until, _ in drop_rows(rows) for n in range(first, until + 1)}
