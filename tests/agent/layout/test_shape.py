"""What a directory is, by the names in it."""

from __future__ import annotations

import pytest

from agent.layout.shape import is_application, is_surely_application, is_task, is_topology

PROCESS_FILE = "kafka-streams-process-metadata"


@pytest.mark.parametrize(
    ("found", "guessed", "surely"),
    [
        (set(), False, False),
        ({"notes"}, False, False),
        ({PROCESS_FILE}, True, True),
        ({".lock"}, True, True),
        ({"0_0", "notes"}, True, True),
        ({"global"}, True, False),
        ({"__T1__"}, True, False),
    ],
)
def test_what_an_application_has(found: set[str], guessed: bool, surely: bool) -> None:
    """A directory of global stores, or of a named topology, may be anybody's where an application is not expected."""
    assert (is_application(found), is_surely_application(found)) == (guessed, surely)


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("0_0", set(), True),
        ("0_0", {".lock"}, True),
        ("0_0", {".checkpoint", "rocksdb"}, True),
        ("0_0", {"rocksdb"}, True),
        ("0_0", {"notes"}, False),
        ("orders", {".lock", ".checkpoint"}, False),
        ("orders", set(), False),
        ("0_0", {PROCESS_FILE, ".lock"}, False),
        ("0_0", {".lock", "1_1"}, False),
        ("0_0", {"rocksdb", "1_1"}, False),
    ],
)
def test_what_is_a_task(name: str, found: set[str], expected: bool) -> None:
    """By its own name and by what is in it: an application may have the name of a task."""
    assert is_task(name, found) is expected


@pytest.mark.parametrize(("name", "expected"), [("__T1__", True), ("0_0", False), ("T1", False)])
def test_what_is_a_topology(name: str, expected: bool) -> None:
    """Two underscores on both sides."""
    assert is_topology(name) is expected
