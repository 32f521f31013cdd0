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

IN = InotifyConstants


def _event(watch: int, mask: int, name: bytes = b"", padding: int = 0, cookie: int = 0) -> bytes:
    name += b"\0" * padding
    return struct.pack("=iIII", watch, mask, cookie, len(name)) + name


def test_masks_follow_the_table_of_watched_events() -> None:
    """Every role that is to be watched has a mask; none asks for what reading raises, nor for every block written."""
    assert MASKS.keys() == WATCHED_EVENTS.keys()
    assert MASKS[PathRole.TASK] & IN.IN_CLOSE_WRITE
    assert not MASKS[PathRole.STORES] & IN.IN_CLOSE_WRITE
    assert all(mask & IN.IN_MOVED_TO for mask in MASKS.values())
    own = IN.IN_OPEN | IN.IN_ACCESS | IN.IN_CLOSE_NOWRITE | IN.IN_MODIFY
    assert not any(mask & own for mask in MASKS.values())


_CREATE, _CLOSE, _FROM, _TO = IN.IN_CREATE, IN.IN_CLOSE_WRITE, IN.IN_MOVED_FROM, IN.IN_MOVED_TO
TMP = b".checkpoint.tmp"


def _replaced(name: bytes) -> bytes:
    temporary = name + b".tmp"
    made = _event(7, _CREATE, temporary, 1) + _event(7, _CLOSE, temporary, 1)
    return made + _event(7, _FROM, temporary, 1, cookie=9) + _event(7, _TO, name, 5, cookie=9)


# fmt: off
PARSED = {
    "several events come out in order, with names cut to their length":
        (_event(1, _CREATE | IN.IN_ISDIR, b"0_1", 13) + _event(2, _TO, b".checkpoint", 5) + _event(2, IN.IN_IGNORED),
         [(1, HintKind.CREATED, True, b"0_1"), (2, HintKind.MOVED_IN, False, b".checkpoint"),
          (2, HintKind.SELF_GONE, False, b"")], 3),
    "the kernel's overflow record, which belongs to no watch, is a request for a rescan":
        (_event(-1, IN.IN_Q_OVERFLOW), [(-1, HintKind.RESCAN, False, b"")], 1),
    "an event that nobody asked for does not hide the next one":
        (_event(1, IN.IN_OPEN, b"x", 15) + _event(1, IN.IN_DELETE, b"y", 15), [(1, HintKind.DELETED, False, b"y")], 1),
    **{f"a replaced {name!r} is one event of four, and all are counted":
        (_replaced(name), [(7, HintKind.MOVED_IN, False, name)], 4) for name in (b".checkpoint",
         b".checkpoint_my-store")},
    **{f"where the next event does not say what became of it, its going is passed on: {why}":
        (_event(7, _FROM, TMP, 1, cookie=9) + after, [(7, HintKind.MOVED_OUT, False, TMP), *more], 1 + len(more))
       for why, after, more in (
           ("the end", b"", []),
           ("another move", _event(7, _TO, b".checkpoint", 5, cookie=8), [(7, HintKind.MOVED_IN, False,
            b".checkpoint")]),
           ("another directory", _event(8, _TO, b".checkpoint", 5, cookie=9),
            [(8, HintKind.MOVED_IN, False, b".checkpoint")]),
           ("another event", _event(7, _CREATE, b"other", 3), [(7, HintKind.CREATED, False, b"other")]))},
    "a deletion, a move there, a directory of that name, and temporary files of others are passed on":
        (_event(7, IN.IN_DELETE, TMP, 1) + _event(7, _TO, TMP, 1) + _event(7, _CREATE | IN.IN_ISDIR, TMP, 1)
         + _event(7, _CREATE, b"x.tmp", 1) + _event(7, _CREATE, b".checkpoint", 5),
         [(7, HintKind.DELETED, False, TMP), (7, HintKind.MOVED_IN, False, TMP), (7, HintKind.CREATED, True, TMP),
          (7, HintKind.CREATED, False, b"x.tmp"), (7, HintKind.CREATED, False, b".checkpoint")], 5),
}
# fmt: on


@pytest.mark.parametrize(("buffer", "events", "count"), PARSED.values(), ids=PARSED)
def test_what_is_parsed(buffer, events, count):
    """Each row says what it is about."""
    assert parse_events(buffer) == ([RawEvent(*x) for x in events], count)


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


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        (errno.EMFILE, WatchLimitError, r"fs\.inotify\.max_user_instances=\d+"),
        (errno.ENOMEM, WatchError, "Cannot allocate memory"),
    ],
)
def test_refused_queue(code, error, said, monkeypatch):
    """The error says which number to raise; any other refusal is passed on in the kernel's words."""

    def init() -> int:
        ctypes.set_errno(code)
        return -1

    monkeypatch.setattr(inotify, "inotify_init", init)
    with pytest.raises(error, match=said):
        InotifyQueue()
