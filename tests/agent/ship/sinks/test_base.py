"""Names under which sinks get segments."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ship.sinks.base import object_name


@pytest.mark.parametrize(
    ("uid", "folder"),
    [
        ("0d9c-11ee", "0d9c-11ee"),
        ("a/b", "a%2Fb"),
        ("..", "%2E."),
        ("", "unknown"),
        ("Prüfung 1", "Pr%C3%BCfung%201"),
    ],
)
def test_folders(uid: str, folder: str) -> None:
    """An ordinary uid stays as it is; what could leave the directory or hide is escaped."""
    assert object_name(uid, "b-1-2") == f"{folder}/b-1-2"


@given(
    first=st.text(st.characters(exclude_categories=())), second=st.text(st.characters(exclude_categories=()))
)
def test_folders_are_safe(first: str, second: str) -> None:
    """Any uid gives one short, visible path component of safe characters; distinct printable uids differ."""
    folder = object_name(first, "n").removesuffix("/n")
    assert re.fullmatch(r"[A-Za-z0-9%_-][A-Za-z0-9%._-]{0,99}", folder)
    if first.isascii() and second.isascii() and first and second:
        assert (folder == object_name(second, "n").removesuffix("/n")) == (first == second)
