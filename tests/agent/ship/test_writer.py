"""Who goes when room is needed: summaries, then transitions and heartbeats, then the rest; each loss is announced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.events import Kind, Origin, Record
from agent.errors import SpoolError, SpoolFullError
from agent.ship import drops
from agent.ship.database import Database, NoRoomError
from agent.ship.drops import Account, Cause, DropKey, Span
from agent.ship.spool import Spool
from agent.ship.values import HIGHEST, MIN_CAP_BYTES, rank_of
from tests.agent.ship.ship_support import (
    AT_US,
    HandClock,
    drain,
    drop_rows,
    finding,
    heartbeat,
    killed,
    names,
    on_disk,
    open_spool,
    sequences,
    summary,
    transition,
)

KIB = 1024
NEXT_BOOT = Origin(pod_uid="uid-1", boot_id="boot2", pod="orders-0")


@pytest.fixture
def spool(tmp_path: Path, clock: HandClock) -> Iterator[Spool]:
    """Give a spool with the smallest cap: about 890 KiB of records."""
    with open_spool(tmp_path / "spool", clock, cap_bytes=MIN_CAP_BYTES) as made:
        yield made


def kinds(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["kind"] for row in rows)


def fill(spool: Spool, record: Record, size_bytes: int) -> None:
    """Append the same until the spool is in use to a size."""
    while spool.stats().bytes < size_bytes:
        spool.append(record)


def drained(spool: Spool) -> list[dict[str, Any]]:
    spool.seal()
    return drain(spool)


def check_account(spool: Spool, rows: list[dict[str, Any]]) -> None:
    """Shipped and announced make one whole: each sequence once, each drop in its range and number."""
    seen, announced = sequences(rows), Counter[str]()
    covered: set[int] = set()
    for kind, count, first, until, _ in drop_rows(rows):
        assert until - first + 1 >= count
        announced[kind] += count
        covered |= set(range(first, until + 1))
    assert announced == spool.stats().dropped
    assert len(seen) == len(set(seen))
    assert len(seen) + sum(announced.values()) == max(seen)
    assert set(range(1, max(seen) + 1)) - set(seen) <= covered


def test_the_cap_holds_and_every_drop_announces_itself(tmp_path: Path, spool: Spool) -> None:
    """However much comes in, the directory stays below the cap, log included, and the account is whole."""
    for number in range(1_200):
        spool.append(transition(2_500, number) if number % 3 else heartbeat(number))
        assert on_disk(tmp_path / "spool") <= MIN_CAP_BYTES
    assert spool.stats().dropped["transition"] > 100
    rows = drained(spool)
    assert {reason for *_, reason in drop_rows(rows)} == {"spool-cap; boot boot1"}
    check_account(spool, rows)


def test_the_oldest_go_first_and_no_more_than_needed(spool: Spool) -> None:
    """What one more record needs is a piece at the beginning, announced with its exact range."""
    while not spool.stats().dropped:
        spool.append(transition(6 * KIB))
    rows = drained(spool)
    ((kind, count, first, last, _),) = drop_rows(rows)
    assert (kind, first, last) == ("transition", 1, count)
    assert 16 * KIB / 4 <= count * 6 * KIB <= 36 * KIB
    assert min(sequences(rows)) == count + 1


def test_summaries_leave_mixed_segments_and_the_rest_stays(spool: Spool) -> None:
    """Room is made inside segments: the summaries go, oldest first, and nothing else does."""
    for number in range(150):
        spool.append(summary(6 * KIB, number))
        spool.append(transition(KIB, number))
        spool.append(finding())
    assert any("-k" in name for name in names(spool))
    rows = drained(spool)
    assert set(spool.stats().dropped) <= {"summary", "drop"}
    assert (kinds(rows)["transition"], kinds(rows)["finding"]) == (150, 150)
    left = [row["sequence"] for row in rows if row["kind"] == "summary"]
    gone = {n for kind, _, first, until, _ in drop_rows(rows) if kind == "summary" for n in (first, until)}
    assert max(gone) < min(left)
    check_account(spool, rows)


def test_transitions_go_next_and_findings_last(spool: Spool) -> None:
    """Under one cap, more and more findings displace summaries first, then transitions, then old findings."""
    seen: list[dict[str, int]] = []
    for number in range(40):
        spool.append(summary(2 * KIB, number))
        spool.append(transition(2 * KIB, number))
    while "finding" not in spool.stats().dropped:
        spool.append(finding())
        seen.append(dict(spool.stats().dropped))
    first = {kind: next(n for n, x in enumerate(seen) if kind in x) for kind in seen[-1] if kind != "drop"}
    assert sorted(first, key=lambda kind: first[kind]) == ["summary", "transition", "finding"]
    assert seen[first["transition"]]["summary"] == 40
    assert seen[first["finding"]]["transition"] == 40


def test_a_record_that_ranks_below_all_that_is_left_is_rejected(spool: Spool) -> None:
    """When only findings are left, the summary that comes is the one that goes, and it is announced at once."""
    fill(spool, finding(), 850 * KIB)
    findings = spool.stats().records
    with pytest.raises(SpoolFullError, match="nothing may be dropped for this record"):
        spool.append(summary(20 * KIB))
    with pytest.raises(SpoolFullError):
        spool.append(transition(20 * KIB))
    assert spool.stats().dropped == {"summary": 1, "transition": 1}
    rows = drained(spool)
    assert kinds(rows)["finding"] == findings
    assert {row[0] for row in drop_rows(rows)} == {"summary", "transition"}


def test_announcements_do_not_fill_the_spool(spool: Spool) -> None:
    """Weeks without a sink: announcements are folded into one, and the newest records still find room."""
    for number in range(2_000):
        spool.append(summary(2 * KIB, number))
    rows = drained(spool)
    assert kinds(rows)["drop"] < 60
    assert kinds(rows)["summary"] > 150
    check_account(spool, rows)


def test_the_segment_on_its_way_is_never_dropped(spool: Spool) -> None:
    """A segment that the sink is taking stays, though it is the oldest; acknowledged, it is not shipped again."""
    spool.append(heartbeat())
    spool.seal()
    parcel = spool.next_parcel()
    assert parcel is not None
    while not spool.stats().dropped:
        spool.append(transition(6 * KIB))
    assert parcel.segment.records == 1
    spool.acknowledge(parcel)
    rows = drained(spool)
    assert 1 not in sequences(rows)
    assert drop_rows(rows)[0][:3] == ("transition", drop_rows(rows)[0][1], 2)


def test_a_record_larger_than_its_share_is_refused_and_announced(spool: Spool) -> None:
    """It uses its sequence up; the next record tells of it."""
    with pytest.raises(SpoolFullError, match="too large"):
        spool.append(transition(70 * KIB))
    assert spool.append(transition(60 * KIB)) == 2
    assert drop_rows(drained(spool)) == [("transition", 1, 1, 1, "spool-cap; boot boot1")]


def test_a_kill_in_the_middle_of_making_room_changes_nothing(
    tmp_path: Path, spool: Spool, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes and its announcement are one transaction: a copy from its middle holds what was there before it."""
    copied, real = tmp_path / "killed", Database.run

    def copy_first(self: Database, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        if statement == "COMMIT" and spool.stats().records > 100 and not copied.exists():
            killed(tmp_path / "spool", copied)
        return real(self, statement, values)

    monkeypatch.setattr(Database, "run", copy_first)
    while not spool.stats().dropped:
        spool.append(transition(6 * KIB))
    monkeypatch.undo()
    with open_spool(copied, clock, NEXT_BOOT) as after:
        rows = drain(after)
    assert drop_rows(rows) == []
    assert sequences(rows) == list(range(1, len(rows) + 1))


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, refusals: int) -> Iterator[None]:
    """Refuse so many insertions for want of room."""
    real, left = Database.run, [refusals]

    def run(self: Database, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        if statement.startswith("INSERT") and left[0]:
            left[0] -= 1
            raise NoRoomError("database or disk is full")
        return real(self, statement, values)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "run", run)
        yield


def test_a_finding_makes_room_on_a_full_disk(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full before the cap drops by the same order: a waiting summary goes for a finding."""
    spool.append(summary(KIB))
    spool.seal()
    with full_disk(monkeypatch, 2):
        assert spool.append(finding()) == 3  # behind the announcement
    rows = drained(spool)
    assert kinds(rows) == {"finding": 1, "drop": 1}
    assert drop_rows(rows) == [("summary", 1, 1, 1, "spool-cap; boot boot1")]


def test_a_full_disk_loses_only_what_it_refuses(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be given up, records are refused, counted, and announced when there is room again."""
    spool.append(finding())
    spool.seal()
    parcel = spool.next_parcel()  # on its way to the sink: it stays
    assert parcel is not None
    with full_disk(monkeypatch, 1_000):
        for _ in range(3):
            with pytest.raises(SpoolError, match="full; free or repair its volume"):
                spool.append(finding())
        spool.maintain()  # the announcement finds no room either, and does not raise
        spool.acknowledge(parcel)
    assert spool.append(heartbeat()) == 5
    assert spool.stats().write_failures == 3
    rows = drained(spool)
    assert sequences(rows) == [5, 6]
    assert drop_rows(rows) == [("finding", 3, 2, 4, "write-failed; boot boot1")]


def test_findings_are_recognised_after_a_restart(tmp_path: Path, clock: HandClock) -> None:
    """Records that an earlier boot left keep their place in the order of dropping."""
    with open_spool(tmp_path, clock, cap_bytes=MIN_CAP_BYTES) as spool:
        spool.append(finding())
        spool.seal()
        fill(spool, transition(9_000), 600 * KIB)
    with open_spool(tmp_path, clock, NEXT_BOOT, cap_bytes=MIN_CAP_BYTES) as spool:
        fill(spool, transition(9_000), 780 * KIB)
        for _ in range(30):
            spool.append(transition(9_000))
        rows = drained(spool)
    assert sequences(rows)[0] == 1
    assert drop_rows(rows)[0][0] == "transition"
    assert drop_rows(rows)[0][2:] == (2, drop_rows(rows)[0][3], "spool-cap; boot boot1")


def test_too_little_of_a_low_rank_is_a_full_spool_and_no_fault_of_the_disk(spool: Spool) -> None:
    """One small summary frees no page: the next summary is rejected, nothing above it goes."""
    spool.append(summary())
    fill(spool, transition(1_000), 850 * KIB)
    with pytest.raises(SpoolFullError):
        spool.append(summary(20 * KIB))
    assert set(spool.stats().dropped) == {"summary"}
    assert spool.stats().write_failures == 0
    rows = drained(spool)
    assert set(spool.stats().dropped) <= {"summary", "drop"}
    check_account(spool, rows)


def test_a_kill_after_a_rejection_keeps_its_announcement(
    tmp_path: Path, spool: Spool, clock: HandClock
) -> None:
    """Marking a segment and announcing its loss are one transaction."""
    spool.append(heartbeat())
    spool.seal()
    parcel = spool.next_parcel()
    assert parcel is not None
    spool.reject(parcel)
    with open_spool(killed(tmp_path / "spool", tmp_path / "killed"), clock, NEXT_BOOT) as after:
        assert drop_rows(drain(after)) == [("heartbeat", 1, 1, 1, "rejected-by-sink; boot boot1")]


def test_the_order_of_dropping_is_a_table() -> None:
    """Drop records, summaries, digests, transitions and heartbeats, then all the rest, unknown kinds included."""
    order = sorted(Kind, key=lambda kind: rank_of(kind.value))
    assert [kind.value for kind in order[:5]] == ["drop", "summary", "digest", "transition", "heartbeat"]
    assert {rank_of(kind.value) for kind in order[5:]} == {HIGHEST} == {rank_of("of a later release")}


def account_of(records: list[tuple[int, Record]]) -> Account:
    account: Account = {}
    for sequence, record in records:
        drops.add_record(account, "b", sequence, record.kind.value, record.body)
    return account


@given(numbers=st.lists(st.integers(1, 10_000), min_size=1, unique=True))
def test_spans_are_tight(numbers: list[int]) -> None:
    """In any order, a span counts each record once and reaches from the lowest to the highest."""
    account = account_of([(number, heartbeat()) for number in numbers])
    assert account == {DropKey("b", "heartbeat", ""): Span(len(numbers), min(numbers), max(numbers))}


def test_a_lost_announcement_hands_its_content_on() -> None:
    """Giving up a drop record gives up itself and announces again what it announced, cause and boot kept."""
    record = drops.announcement(DropKey("old", "summary", Cause.REJECTED), Span(3, 5, 9), AT_US)
    given_up: Account = {}
    drops.add_all(given_up, account_of([(7, record)]), Cause.CAP)
    assert given_up == {
        DropKey("b", "drop", Cause.CAP): Span(1, 7, 7),
        DropKey("old", "summary", Cause.REJECTED): Span(3, 5, 9),
    }


def test_only_own_records_are_counted() -> None:
    """The count of lost records leaves out what was only announced, because it was counted then."""
    record = drops.announcement(DropKey("old", "summary", Cause.CAP), Span(3, 5, 9), AT_US)
    assert drops.own_counts(account_of([(7, record), (8, heartbeat())])) == {"drop": 1, "heartbeat": 1}
