"""Operations -> the notifications that a kernel watch would have brought."""

from __future__ import annotations

import pytest

from agent.inventory.hints import WATCHED_EVENTS, HintKind
from agent.layout.paths import PathRole, classify
from agent.replay.player import Player
from agent.replay.trace import OPERATIONS, Operation

DIRECTORIES = {
    PathRole.STATE_DIRECTORY: "",
    PathRole.APPLICATION: "app",
    PathRole.TOPOLOGY: "app/__one__",
    PathRole.TASK: "app/0_0",
    PathRole.STORES: "app/0_0/rocksdb",
    PathRole.STORE: "app/0_0/rocksdb/s",
    PathRole.SEGMENTED_STORE: "app/0_0/w",
    PathRole.SEGMENT: "app/0_0/w/w.0",
}
KINDS = {
    "mkdir": HintKind.CREATED,
    "create": HintKind.CREATED,
    "rmdir": HintKind.DELETED,
    "unlink": HintKind.DELETED,
    "close_w": HintKind.WRITTEN,
}
SILENT = OPERATIONS - KINDS.keys() - {"rename"}


def test_the_directories_are_what_they_are_called() -> None:
    """The table of this test covers every role of a directory."""
    assert DIRECTORIES.keys() == WATCHED_EVENTS.keys()
    for role, path in DIRECTORIES.items():
        assert classify(path).role is role


@pytest.mark.parametrize("role", sorted(DIRECTORIES))
@pytest.mark.parametrize("operation", sorted(KINDS))
def test_hints_follow_the_table(role: PathRole, operation: str) -> None:
    """A name in a directory raises a hint exactly where the kernel watch asks for it."""
    path = f"{DIRECTORIES[role]}/x".lstrip("/")
    hints = Player().hints(Operation(7, operation, path))
    if KINDS[operation] in WATCHED_EVENTS[role]:
        (hint,) = hints
        assert (hint.path, hint.kind, hint.at_us) == (path, KINDS[operation], 7)
        assert hint.is_directory is (operation in ("mkdir", "rmdir"))
    else:
        assert hints == ()


@pytest.mark.parametrize("role", sorted(DIRECTORIES))
def test_a_rename_is_out_then_in(role: PathRole) -> None:
    """Both ends of a rename are told in kernel order."""
    base = f"{DIRECTORIES[role]}/".lstrip("/")
    hints = Player().hints(Operation(7, "rename", f"{base}x.tmp", to=f"{base}x"))
    expected = [(HintKind.MOVED_OUT, f"{base}x.tmp"), (HintKind.MOVED_IN, f"{base}x")]
    assert [(hint.kind, hint.path) for hint in hints] == [x for x in expected if x[0] in WATCHED_EVENTS[role]]


def test_a_rename_out_of_sight_shows_one_end() -> None:
    """Below a directory that nobody watches nothing is told."""
    hints = Player().hints(Operation(7, "rename", "app/0_0/.checkpoint", to="app/0_0/other/deep/x"))
    assert [hint.kind for hint in hints] == [HintKind.MOVED_OUT]


@pytest.mark.parametrize("operation", sorted(SILENT))
def test_what_raises_no_notification(operation: str) -> None:
    """Writes, reads, locks, times and the life of a process are never announced."""
    assert Player().hints(Operation(7, operation, "app/0_0/.lock", size=1, data=b"x")) == ()


@pytest.mark.parametrize("operation", sorted(KINDS))
def test_nameless_files_are_silent(operation: str) -> None:
    """A file without a name raises nothing in its former directory."""
    assert Player().hints(Operation(7, operation, "app/0_0/.lock", nameless=True)) == ()


def test_an_unwatched_place_is_silent() -> None:
    """What lies in no directory of ours is not announced."""
    assert Player().hints(Operation(7, "create", "app/0_0/rocksdb/s/archive/x")) == ()
