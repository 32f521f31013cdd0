"""The trial file of a preflight."""

from __future__ import annotations

import errno
import os

from agent.home.probe import PROBE_PREFIX, try_to_write


def test_a_file_of_an_agent_with_the_same_process_id_does_not_matter(tmp_path):
    """Containers number their processes alike, and a killed one leaves its file on the shared volume."""
    shared = tmp_path / "events"
    shared.mkdir()
    left = shared / f"{PROBE_PREFIX}{os.getpid()}"
    left.touch()
    assert try_to_write(shared, tmp_path / "state") is None
    assert list(shared.iterdir()) == [left]


def test_a_place_that_takes_no_file_says_why(tmp_path):
    (tmp_path / "file").touch()
    refusal = try_to_write(tmp_path / "file", tmp_path / "state")
    assert refusal is not None
    assert refusal.errno == errno.ENOTDIR


def test_nothing_is_tried_in_the_state_directory(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    refusal = try_to_write(state / "events", state)
    assert refusal is not None
    assert refusal.errno == errno.EPERM
    assert list(state.iterdir()) == []
