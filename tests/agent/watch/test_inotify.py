"""The inotify queue: what is asked for, what is understood, and what is said when the kernel refuses."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchdog.observers.inotify_c import InotifyConstants

from agent.errors import WatchError, WatchLimitError
from agent.inventory.hints import WATCHED_EVENTS, HintKind
from agent.layout.paths import PathRole
from agent.watch import inotify
from agent.watch.inotify import MASKS, InotifyQueue, RawEvent, parse_events


def _event(watch: int, mask: int, name: bytes = b"", padding: int = 0, cookie: int = 0) -> bytes:
    name += b"\0" * padding
    return struct.pack("=iIII", watch, mask, cookie, len(name)) + name


def test_masks_follow_the_table_of_watched_events() -> None:
    """Every role that is to be watched has a mask, and no other."""
    assert MASKS.keys() == WATCHED_EVENTS.keys()
    assert MASKS[PathRole.TASK] & InotifyConstants.IN_CLOSE_WRITE
    assert not MASKS[PathRole.STORES] & InotifyConstants.IN_CLOSE_WRITE
    assert all(mask & InotifyConstants.IN_MOVED_TO for mask in MASKS.values())


def test_masks_leave_out_what_reading_raises() -> None:
    """No mask asks for events that the agent's own looks would raise, nor for every block written."""
    own = (
        InotifyConstants.IN_OPEN
        | InotifyConstants.IN_ACCESS
        | InotifyConstants.IN_CLOSE_NOWRITE
        | InotifyConstants.IN_MODIFY
    )
    assert not any(mask & own for mask in MASKS.values())


def test_events_are_parsed_with_padding_and_directory_flag() -> None:
    """A buffer of several events comes out in order, with names cut to their length."""
    buffer = (
        _event(1, InotifyConstants.IN_CREATE | InotifyConstants.IN_ISDIR, b"0_1", 13)
        + _event(2, InotifyConstants.IN_MOVED_TO, b".checkpoint", 5)
        + _event(2, InotifyConstants.IN_IGNORED)
    )
    assert parse_events(buffer) == (
        [
            RawEvent(1, HintKind.CREATED, True, b"0_1"),
            RawEvent(2, HintKind.MOVED_IN, False, b".checkpoint"),
            RawEvent(2, HintKind.SELF_GONE, False, b""),
        ],
        3,
    )


def test_overflow_is_parsed() -> None:
    """The kernel's overflow record, which belongs to no watch, is a request for a rescan."""
    assert parse_events(_event(-1, InotifyConstants.IN_Q_OVERFLOW)) == (
        [RawEvent(-1, HintKind.RESCAN, False, b"")],
        1,
    )


def test_unknown_events_are_left_out() -> None:
    """An event that nobody asked for does not hide the next one."""
    buffer = _event(1, InotifyConstants.IN_OPEN, b"x", 15) + _event(1, InotifyConstants.IN_DELETE, b"y", 15)
    assert parse_events(buffer) == ([RawEvent(1, HintKind.DELETED, False, b"y")], 1)


_CREATE, _CLOSE, _FROM, _TO, _DELETE = (
    InotifyConstants.IN_CREATE,
    InotifyConstants.IN_CLOSE_WRITE,
    InotifyConstants.IN_MOVED_FROM,
    InotifyConstants.IN_MOVED_TO,
    InotifyConstants.IN_DELETE,
)


@pytest.mark.parametrize("name", [b".checkpoint", b".checkpoint_my-store"])
def test_a_replaced_checkpoint_is_one_event_of_four(name: bytes) -> None:
    """Its temporary name says nothing before the rename does; all four are counted."""
    temporary = name + b".tmp"
    buffer = (
        _event(7, _CREATE, temporary, 1)
        + _event(7, _CLOSE, temporary, 1)
        + _event(7, _FROM, temporary, 1, cookie=9)
        + _event(7, _TO, name, 5, cookie=9)
    )
    assert parse_events(buffer) == ([RawEvent(7, HintKind.MOVED_IN, False, name)], 4)


@pytest.mark.parametrize(
    "after",
    [
        b"",  # the end of what was read
        _event(7, _TO, b".checkpoint", 5, cookie=8),  # another move
        _event(8, _TO, b".checkpoint", 5, cookie=9),  # into another directory
        _event(7, _CREATE, b"other", 3),
    ],
)
def test_a_temporary_file_that_goes_elsewhere_is_passed_on(after: bytes) -> None:
    """Where the next event does not say what became of it, its going is passed on."""
    events, _ = parse_events(_event(7, _FROM, b".checkpoint.tmp", 1, cookie=9) + after)
    assert events[0] == RawEvent(7, HintKind.MOVED_OUT, False, b".checkpoint.tmp")


def test_what_else_happens_to_a_temporary_name_is_passed_on() -> None:
    """A deletion, a file that is moved there, a directory of that name, and temporary files of others."""
    buffer = (
        _event(7, _DELETE, b".checkpoint.tmp", 1)
        + _event(7, _TO, b".checkpoint.tmp", 1)
        + _event(7, _CREATE | InotifyConstants.IN_ISDIR, b".checkpoint.tmp", 1)
        + _event(7, _CREATE, b"x.tmp", 1)
        + _event(7, _CREATE, b".checkpoint", 5)
    )
    assert [(x.kind, x.name) for x in parse_events(buffer)[0]] == [
        (HintKind.DELETED, b".checkpoint.tmp"),
        (HintKind.MOVED_IN, b".checkpoint.tmp"),
        (HintKind.CREATED, b".checkpoint.tmp"),
        (HintKind.CREATED, b"x.tmp"),
        (HintKind.CREATED, b".checkpoint"),
    ]


@given(st.binary(max_size=200))
def test_garbage_never_raises(buffer: bytes) -> None:
    """Whatever a read gives, parsing ends."""
    events, count = parse_events(buffer)
    assert len(events) <= count <= len(buffer) // 16


@pytest.mark.inotify
def test_queue_gives_what_happened(tmp_path: Path) -> None:
    """A watched directory's new file is announced; an empty queue gives nothing at once."""
    queue = InotifyQueue()
    directory = os.open(tmp_path, os.O_RDONLY)
    watch = queue.add(directory, PathRole.TASK)
    os.close(directory)
    assert queue.read() == []
    (tmp_path / "f").touch()
    assert queue.read() == [
        RawEvent(watch, HintKind.CREATED, False, b"f"),
        RawEvent(watch, HintKind.WRITTEN, False, b"f"),
    ]
    (tmp_path / ".checkpoint.tmp").touch()
    (tmp_path / ".checkpoint.tmp").rename(tmp_path / ".checkpoint")
    assert queue.read() == [RawEvent(watch, HintKind.MOVED_IN, False, b".checkpoint")]
    assert queue.notifications == 6
    queue.remove(watch)
    queue.remove(watch)
    queue.close()


@pytest.mark.inotify
def test_refused_watch_raises(tmp_path: Path) -> None:
    """A file cannot be watched, and says so."""
    queue = InotifyQueue()
    (tmp_path / "f").touch()
    descriptor = os.open(tmp_path / "f", os.O_RDONLY)
    with pytest.raises(NotADirectoryError):
        queue.add(descriptor, PathRole.TASK)
    os.close(descriptor)
    queue.close()


def _refuse_with(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> int:
        ctypes.set_errno(code)
        return -1

    monkeypatch.setattr(inotify, "inotify_init", init)


def test_too_many_queues_names_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which number to raise."""
    _refuse_with(errno.EMFILE, monkeypatch)
    with pytest.raises(WatchLimitError, match=r"fs\.inotify\.max_user_instances=\d+"):
        InotifyQueue()


def test_other_refusals_are_watch_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other refusal is passed on in the kernel's words."""
    _refuse_with(errno.ENOMEM, monkeypatch)
    with pytest.raises(WatchError, match="Cannot allocate memory"):
        InotifyQueue()
