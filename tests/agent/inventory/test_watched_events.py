"""What a watch asks for, by role of the directory."""

from __future__ import annotations

import pytest

from agent.inventory.hints import WATCHED_EVENTS, Hint, HintKind
from agent.layout.paths import PathRole

NAMES = {HintKind.CREATED, HintKind.DELETED, HintKind.MOVED_IN, HintKind.MOVED_OUT}
WITH_FILES = {PathRole.APPLICATION, PathRole.TASK, PathRole.STORE, PathRole.SEGMENT}


@pytest.mark.parametrize("role", WATCHED_EVENTS)
def test_names_and_the_end_everywhere(role):
    """Every directory tells of names that come and go and of its own end; closed writes count where files are."""
    assert {*NAMES, HintKind.SELF_GONE} <= WATCHED_EVENTS[role]
    assert (HintKind.WRITTEN in WATCHED_EVENTS[role]) == (role in WITH_FILES)


def test_every_kind_of_directory_is_watched():
    """State directory, application, topology, task, and the directories of stores."""
    above = {PathRole.STATE_DIRECTORY, PathRole.TOPOLOGY, PathRole.STORES, PathRole.SEGMENTED_STORE}
    assert set(WATCHED_EVENTS) == above | WITH_FILES


def test_hint_says_no_more_than_it_knows():
    """Unless the kernel says so a name is no directory."""
    hint = Hint("app", HintKind.CREATED, 1)
    assert (hint.is_directory, hint.cause) == (False, "")
