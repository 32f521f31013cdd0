"""The mailbox: newest state kept, order kept, no silent loss."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.hints import Hint, HintKind
from agent.watch.mailbox import MAILBOX_FULL, Mailbox

FILE_KINDS = [HintKind.CREATED, HintKind.WRITTEN, HintKind.MOVED_IN, HintKind.MOVED_OUT, HintKind.DELETED]


def _hints(*steps: tuple[str, HintKind, bool]) -> list[Hint]:
    return [Hint(path, kind, at_us, is_directory) for at_us, (path, kind, is_directory) in enumerate(steps)]


CREATED, WRITTEN, MOVED_IN, MOVED_OUT, DELETED = FILE_KINDS


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        # the newest, in the place of the newest
        (
            [("a", CREATED, False), ("b", CREATED, False), ("a", WRITTEN, False), ("a", MOVED_IN, False)],
            [1, 3],
        ),
        # a deletion is never merged away, and what came before it stays before it
        ([("a", CREATED, False), ("a", DELETED, False)] * 2, [0, 1, 2, 3]),
        # moved away is gone
        ([("a", MOVED_IN, False), ("a", MOVED_OUT, False), ("a", MOVED_IN, False)], [0, 1, 2]),
        # every announcement of a directory is kept
        ([("d", CREATED, True), ("d", CREATED, True), ("d", MOVED_IN, True)], [0, 1, 2]),
    ],
)
def test_what_waits(steps, kept):
    """Only what a newer hint says, too, is merged, and counted."""
    mailbox = Mailbox()
    hints = _hints(*steps)
    mailbox.put_all(hints)
    assert mailbox.counters().waiting == len(kept)
    assert mailbox.drain(0) == [hints[x] for x in kept]
    assert mailbox.counters().coalesced == len(steps) - len(kept)


def test_only_the_newest_canary_waits() -> None:
    """A canary that came proves all before it, so one is enough; it never stands for a path."""
    mailbox = Mailbox()
    canaries = [Hint(f"canary-{number}", HintKind.CANARY, number) for number in (1, 2)]
    written = Hint("canary-1", HintKind.WRITTEN, 3)
    mailbox.put_all([canaries[0], written, canaries[1]])
    assert mailbox.drain(0) == [written, canaries[1]]


def test_a_loss_is_dated_from_the_first_hint_that_was_dropped() -> None:
    """Since when something may have gone unseen is part of the rescan."""
    mailbox = Mailbox(capacity=1)
    mailbox.put_all([Hint(name, HintKind.WRITTEN, at_us) for at_us, name in enumerate("abc", start=10)])
    assert (mailbox.drain(0)[-1].since_us, mailbox.counters().dropped) == (11, 2)


def test_rescans_merge_only_with_the_same_directory_and_cause() -> None:
    """Two rescans of one directory are one, unless their causes differ."""
    mailbox = Mailbox()
    for at_us, (path, cause) in enumerate([("", "start"), ("a", "start"), ("", "periodic"), ("", "start")]):
        mailbox.put(Hint(path, HintKind.RESCAN, at_us, is_directory=True, cause=cause))
    causes = [(hint.path, hint.cause) for hint in mailbox.drain(0)]
    assert causes == [("a", "start"), ("", "periodic"), ("", "start")]


def test_full_mailbox_asks_for_one_rescan() -> None:
    """What does not fit is counted, and one rescan of everything stands for it; then life goes on."""
    mailbox = Mailbox(capacity=2)
    hints = _hints(*((f"f{number}", HintKind.CREATED, False) for number in range(5)))
    mailbox.put_all(hints)
    *kept, rescan = mailbox.drain(0)
    assert kept == hints[:2]
    assert (rescan.path, rescan.kind, rescan.cause, rescan.at_us) == ("", HintKind.RESCAN, MAILBOX_FULL, 4)
    assert mailbox.counters().dropped == 3
    mailbox.put(hints[4])
    assert mailbox.drain(0) == [hints[4]]


def test_long_standstill_keeps_the_newest_of_every_file() -> None:
    """However often the same few files are written while nobody takes, their newest states wait, in order."""
    mailbox = Mailbox(capacity=3)
    hints = _hints(*((name, HintKind.WRITTEN, False) for name in "abc" * 20))
    mailbox.put_all(hints)
    assert mailbox.counters().waiting == 3
    assert mailbox.drain(0) == hints[-3:]


def test_rescan_fits_into_a_full_mailbox() -> None:
    """A cause of blindness is never dropped for lack of room."""
    mailbox = Mailbox(capacity=1)
    mailbox.put(Hint("f", HintKind.CREATED, 1))
    mailbox.put(Hint("", HintKind.RESCAN, 2, is_directory=True, cause="queue-overflow"))
    assert [hint.cause for hint in mailbox.drain(0)] == ["", "queue-overflow"]


def test_take_returns_empty_after_the_timeout() -> None:
    """Nothing to say is an empty list, not a wait without end."""
    assert Mailbox().drain(0.01) == []


def test_put_wakes_the_taker() -> None:
    """A taker that waits gets what another thread puts."""
    mailbox = Mailbox()
    taken: list[Hint] = []
    taker = threading.Thread(target=lambda: taken.extend(mailbox.drain(120)))
    taker.start()
    hint = Hint("a", HintKind.CREATED, 1)
    mailbox.put(hint)
    taker.join(120)
    assert taken == [hint]


@pytest.mark.parametrize(
    ("path", "kind", "presses"),
    [
        *(("app/0_0/rocksdb/s/000012.sst", kind, kind in (DELETED, MOVED_OUT)) for kind in FILE_KINDS),
        *(("app/0_0/.checkpoint.tmp", kind, False) for kind in FILE_KINDS),
        ("app/0_0/s.position", MOVED_IN, False),
        ("app/0_0/.checkpoint", MOVED_IN, True),
        ("app/0_0/rocksdb/s/LOCK", WRITTEN, True),
        ("app/0_0/rocksdb/s/MANIFEST-000005", CREATED, True),
        ("", HintKind.RESCAN, True),
    ],
)
def test_only_what_a_running_store_adds_may_wait(path, kind, presses):
    """Because of a new SST nothing is read at once; a deletion is followed while its lock is still held, or free."""
    mailbox = Mailbox()
    mailbox.put(Hint(path, kind, 1))
    assert mailbox._is_pressing is presses
    if presses:
        mailbox.await_pressing(120)
    assert len(mailbox.drain(0)) == 1
    assert not mailbox._is_pressing


steps = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(FILE_KINDS), st.booleans()), max_size=60
)


@given(steps)
def test_nothing_but_older_states_is_merged_away(taken_steps):
    """Order is kept, deletions and directories are all there, and the last word on every path is there."""
    hints = _hints(*taken_steps)
    mailbox = Mailbox()
    mailbox.put_all(hints)
    taken = mailbox.drain(0)
    assert [hint.at_us for hint in taken] == sorted({hint.at_us for hint in taken})
    gone = (HintKind.DELETED, HintKind.MOVED_OUT)
    must_stay = [hint for hint in hints if hint.kind in gone or hint.is_directory]
    assert [hint for hint in taken if hint in must_stay] == must_stay
    assert {hint.path: hint for hint in taken} == {hint.path: hint for hint in hints}


@given(steps, st.integers(1, 4))
def test_every_loss_ends_in_a_rescan(taken_steps, capacity):
    """With little room, whatever last word is missing is covered by a rescan at the end."""
    hints = _hints(*taken_steps)
    mailbox = Mailbox(capacity)
    mailbox.put_all(hints)
    taken = mailbox.drain(0)
    is_covered = bool(taken) and taken[-1].cause == MAILBOX_FULL
    assert is_covered == (mailbox.counters().dropped > 0)
    assert len(taken) <= capacity + 1
    if not is_covered:
        assert {hint.path: hint for hint in taken} == {hint.path: hint for hint in hints}
