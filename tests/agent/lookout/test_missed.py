"""Changes that nobody announced, told from those that were."""

from __future__ import annotations

import pytest

from agent.contract.events import Change, Source
from agent.inventory.hints import Hint, HintKind
from agent.inventory.transitions import Transition
from agent.lookout.missed import MAX_SUSPECTS, SLACK_US, MissedChanges

NOW_US = 1_700_000_000_000_000
SST = "app/0_0/rocksdb/s/000012.sst"


def change(
    kind: Change = Change.CHECKPOINT_WRITTEN,
    *,
    store: str | None = None,
    source: Source = Source.RESCAN,
    occurred_us: int | None = None,
) -> Transition:
    """Give a change that a walk found."""
    facts = {} if occurred_us is None else {"occurred_at_us": occurred_us}
    return Transition(kind, NOW_US, source, "app", "0_0", store, facts=facts)


def missed_of(*hints: Hint, found: Transition, after: tuple[Hint, ...] = ()) -> list[str]:
    """Hear hints, find a change, hear more, let the fence pass: what counts as missed."""
    missed = MissedChanges(lambda change: None)
    missed.receive(hints)
    missed.wait(missed.suspect([found], NOW_US - 60_000_000, NOW_US), 7)
    missed.receive(after)
    assert missed.decide(6, NOW_US + 1) == []
    return [one.thing for one in missed.decide(7, NOW_US + 1)]


def hint(path: str, at_us: int, kind: HintKind = HintKind.MOVED_IN) -> Hint:
    return Hint(path, kind, at_us)


def test_a_change_without_a_word_is_missed() -> None:
    """Nothing was heard of the thing that changed."""
    assert missed_of(found=change()) == ["app/0_0/.checkpoint"]
    assert missed_of(found=change(Change.STORE_CREATED, store="s")) == ["app/0_0/rocksdb/s"]
    assert missed_of(found=change(Change.TASK_CREATED)) == ["app/0_0"]


@pytest.mark.parametrize("late_us", [-SLACK_US, -1, 0, 500_000])
def test_a_word_just_before_or_after_the_reading_explains_it(late_us: int) -> None:
    """The look may overtake the notification; the fence waits for it."""
    word = hint("app/0_0/.checkpoint", NOW_US + late_us)
    before, after = ((word,), ()) if late_us < 0 else ((), (word,))
    assert missed_of(*before, found=change(), after=after) == []


def test_an_old_word_explains_nothing_new() -> None:
    """A notification from long before the file was written was about something else."""
    old = hint("app/0_0/.checkpoint", NOW_US - 2 * SLACK_US)
    assert missed_of(old, found=change()) == ["app/0_0/.checkpoint"]
    assert missed_of(old, found=change(occurred_us=NOW_US - 2 * SLACK_US)) == []


def test_another_thing_explains_nothing() -> None:
    """Checkpoints of another task, or files of another store, are not it."""
    other = hint("app/0_1/.checkpoint", NOW_US)
    assert missed_of(other, found=change()) == ["app/0_0/.checkpoint"]
    elsewhere = hint("app/0_0/rocksdb/t/000001.sst", NOW_US, HintKind.WRITTEN)
    assert missed_of(elsewhere, found=change(Change.STORE_FLUSHED, store="s")) == ["app/0_0/rocksdb/s"]


def test_a_file_is_about_its_store_and_a_new_task_about_all_in_it() -> None:
    """A closed SST announces the flush; a new directory is announced once, with what is in it."""
    flushed = change(Change.STORE_FLUSHED, store="s")
    assert missed_of(hint(SST, NOW_US, HintKind.WRITTEN), found=flushed) == []
    task = hint("app/0_0", NOW_US - 1_000_000, HintKind.CREATED)
    assert missed_of(task, found=change(Change.STORE_CREATED, store="s")) == []


@pytest.mark.parametrize("kind", [Change.TASK_HELD, Change.TASK_RELEASED, Change.PROCESS_STARTED])
def test_locks_are_never_announced_and_never_missed(kind: Change) -> None:
    """The kernel says nothing of locks: finding one by asking is no loss."""
    assert missed_of(found=change(kind)) == []


def test_what_another_source_found_is_not_in_question() -> None:
    """Only the walk beside the watch finds what should have been announced."""
    assert missed_of(found=change(source=Source.INOTIFY)) == []


def test_without_a_fence_time_decides() -> None:
    """No canary: a suspect waits as long as a notification could take."""
    missed = MissedChanges(lambda change: None)
    missed.wait(missed.suspect([change()], 0, NOW_US), None)
    assert missed.decide(99, NOW_US + SLACK_US - 1) == []
    assert len(missed.decide(0, NOW_US + SLACK_US)) == 1


def test_memory_is_bounded() -> None:
    """Neither suspects nor what was heard grows for ever."""
    missed = MissedChanges(lambda change: None)
    for number in range(3 * MAX_SUSPECTS):
        missed.receive([hint(f"app/1_{number}/.checkpoint", NOW_US)])
        missed.wait(missed.suspect([change()], 0, NOW_US), 1)
    assert len(missed.decide(1, NOW_US)) == MAX_SUSPECTS
    missed.forget(NOW_US + 2 * SLACK_US)
    assert missed.suspect([change()], 0, NOW_US)
    missed.clear()
    assert missed.decide(9, NOW_US) == []
