"""Changes that nobody announced, told from those that were."""

from __future__ import annotations

from posixpath import normpath

import pytest

from agent.contract.events import Change, Source
from agent.inventory.hints import Hint, HintKind
from agent.inventory.transitions import Transition
from agent.lookout.missed import MAX_SUSPECTS, SLACK_US, MissedChanges

NOW_US = 1_700_000_000_000_000


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


def hint(name: str, at_us: int, kind: HintKind = HintKind.MOVED_IN) -> Hint:
    """A notification about something in task 0_0."""
    return Hint(normpath(f"app/0_0/{name}"), kind, at_us)


OLD = hint(".checkpoint", NOW_US - 2 * SLACK_US)
FLUSHED, MADE = change(Change.STORE_FLUSHED, store="s"), change(Change.STORE_CREATED, store="s")
# fmt: off
CASES = {
    "nothing was heard of the checkpoint that changed": ((), change(), (), [".checkpoint"]),
    "nor of a store": ((), MADE, (), ["rocksdb/s"]),
    "nor of a task": ((), change(Change.TASK_CREATED), (), [""]),
    **{f"a word {-late_us} us before the reading explains it": ((hint(".checkpoint", NOW_US + late_us),), change(),
         (), [])
       for late_us in (-SLACK_US, -1)},
    **{f"so does one {late_us} us after it: the fence waits for it": ((), change(), (hint(".checkpoint",
         NOW_US + late_us),), [])
       for late_us in (0, 500_000)},
    "a word from long before the file was written was about something else": ((OLD,), change(), (), [".checkpoint"]),
    "unless that was written then": ((OLD,), change(occurred_us=NOW_US - 2 * SLACK_US), (), []),
    "a checkpoint of another task is not it": ((hint("../0_1/.checkpoint", NOW_US),), change(), (), [".checkpoint"]),
    "nor are files of another store":
        ((hint("rocksdb/t/000001.sst", NOW_US, HintKind.WRITTEN),), FLUSHED, (), ["rocksdb/s"]),
    "a closed SST announces the flush": ((hint("rocksdb/s/000012.sst", NOW_US, HintKind.WRITTEN),), FLUSHED, (), []),
    "a new directory is announced once, with what is in it": ((hint("", NOW_US - 1_000_000, HintKind.CREATED),),
         MADE, (), []),
    **{f"the kernel says nothing of locks: {kind}": ((), change(kind), (), [])
       for kind in (Change.TASK_HELD, Change.TASK_RELEASED, Change.PROCESS_STARTED)},
    "only the walk finds what should have been announced": ((), change(source=Source.INOTIFY), (), []),
}
# fmt: on


@pytest.mark.parametrize(("before", "found", "after", "missed"), CASES.values(), ids=CASES)
def test_what_is_missed(before, found, after, missed):
    """Each row says what it is about."""
    assert missed_of(*before, found=found, after=after) == [f"app/0_0/{x}".rstrip("/") for x in missed]


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
        missed.receive([hint(f"../1_{number}/.checkpoint", NOW_US)])
        missed.wait(missed.suspect([change()], 0, NOW_US), 1)
    assert len(missed.decide(1, NOW_US)) == MAX_SUSPECTS
    missed.forget(NOW_US + 2 * SLACK_US)
    assert missed.suspect([change()], 0, NOW_US)
    missed.clear()
    assert missed.decide(9, NOW_US) == []
