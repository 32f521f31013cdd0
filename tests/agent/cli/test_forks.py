"""Processes that read ahead: in order, each item once, and nothing but slower without them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.cli import forks
from agent.cli.forks import AT_ONCE, Forks, useful_number
from agent.layout.checkpoint import OffsetEntry

ITEMS = [f"app/0_{number:03}" for number in range(10 * AT_ONCE + 3)]
Start = Callable[..., Forks]


@pytest.fixture
def start() -> Iterator[Start]:
    """Give what starts processes and ends them after the test."""
    started: list[Forks] = []

    def begin(read: Callable[[str], object] = str.upper, number: int = 2) -> Forks:
        started.append(Forks(ITEMS, read, number, [OffsetEntry]))
        return started[-1]

    yield begin
    for each in started:
        each.close()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_everything_is_handed_over_once(start: Start, number: int) -> None:
    """An item that is asked for again was read when it was asked for first; what is not in the list was not read."""
    one = start(number=number)
    assert one.take("app/0_000/x") is None
    assert [one.take(item) for item in ITEMS] == [item.upper() for item in ITEMS]
    assert one.take(ITEMS[-1]) is None
    assert one.take(ITEMS[0]) is None


def test_what_is_not_asked_for_is_passed_over(start: Start) -> None:
    """A task that was deleted meanwhile is never asked for."""
    one = start()
    wanted = [ITEMS[1], ITEMS[5 * AT_ONCE + 2], ITEMS[9 * AT_ONCE]]
    assert [one.take(item) for item in wanted] == [item.upper() for item in wanted]


def test_records_arrive_as_they_were(start: Start) -> None:
    """A frozen dataclass goes through the pipe by its fields."""
    one = start(lambda item: OffsetEntry(item, 0, 7))
    assert one.take(ITEMS[0]) == OffsetEntry(ITEMS[0], 0, 7)


def test_a_process_that_dies_leaves_its_share_and_no_other(start: Start) -> None:
    """The one that meets the first item of its share ends in the middle of it."""

    def read(item: str) -> str:
        if item == ITEMS[2 * AT_ONCE]:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    one = start(read)
    first, second = (
        [ITEMS[AT_ONCE * n] for n in range(0, 10, 2)],
        [ITEMS[AT_ONCE * n] for n in range(1, 10, 2)],
    )
    found = {item: one.take(item) for item in sorted(first + second)}
    assert [found[item] for item in first] == [first[0], None, None, None, None]
    assert [found[item] for item in second] == second


def test_a_reader_that_raises_leaves_its_share(start: Start) -> None:
    """Nothing of it is printed: who asks for the item meets the same."""

    def read(item: str) -> str:
        raise MemoryError(item)

    one = start(read)
    assert [one.take(item) for item in ITEMS] == [None] * len(ITEMS)


def test_a_process_that_was_stopped_is_not_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its share is left after a while, and it is ended."""
    monkeypatch.setattr(forks, "PATIENCE_S", 0.01)
    one = start(lambda _: os.kill(os.getpid(), signal.SIGSTOP))
    assert one.take(ITEMS[0]) is None
    assert list(one._pids) == [1]


@pytest.mark.parametrize("name", ["fork", "pipe"])
def test_a_system_that_refuses_processes(start: Start, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No process, no descriptor left: everything is read by who asks."""

    def refuse() -> None:
        raise BlockingIOError

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(os, name, refuse)
    one = start()
    assert one.take(ITEMS[0]) is None
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_closing_early_leaves_no_process(start: Start) -> None:
    """Whatever they have not handed over."""
    one = start()
    pids = list(one._pids.values())
    one.close()
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, 0)


@pytest.mark.parametrize(
    ("cpu", "memory", "number"),
    [
        (None, None, 4),
        ("max 100000", "max", 4),
        ("200000 100000", "max", 2),
        ("50000 100000", "max", 0),
        ("max 100000", str(128 << 20), 1),
        ("max 100000", str(64 << 20), 0),
        ("rubbish", "rubbish", 4),
    ],
)
def test_as_many_as_are_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu: str | None, memory: str | None, number: int
) -> None:
    """CPUs that may be used, the quota, and the memory limit of the pod."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for name, content in (("cpu.max", cpu), ("memory.max", memory)):
        if content is not None:
            (tmp_path / name).write_text(content + "\n")
    assert useful_number(tmp_path) == number
