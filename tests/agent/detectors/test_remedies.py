"""What a step says, and what a script may make of it, are the same."""

from __future__ import annotations

import re

import pytest

from agent.contract.units import Remedy
from agent.detectors import DETECTORS
from agent.judging.base import DetectorMeta

REMOVES = re.compile(r"[Rr]emove (this|that) (task )?directory|remove it, start", re.ASCII)
CHECKS = (
    "check whether",
    "Check for",
    "First check",
    "Compare",
    "Usually nothing",
    "If the application deletes keys",
    "Start once",
    "Find out",
)


@pytest.mark.parametrize("meta", [x.meta for x in DETECTORS], ids=lambda x: x.id)
def test_a_step_that_removes_a_directory_says_so_to_scripts(meta: DetectorMeta) -> None:
    """Who adds a detector whose step removes something declares it; one that removes nothing is never scripted."""
    says = REMOVES.search(meta.next_action) is not None or "remove that task directory" in meta.next_action
    assert says is (meta.remedy is not Remedy.OTHER)


@pytest.mark.parametrize("meta", [x.meta for x in DETECTORS], ids=lambda x: x.id)
def test_a_step_with_a_check_is_not_scripted_without_it(meta: DetectorMeta) -> None:
    """A condition in the text is a condition of the script."""
    if meta.remedy is Remedy.RESTORE:
        assert not any(word in meta.next_action for word in CHECKS)
    elif meta.remedy in (Remedy.CHECK_FIRST, Remedy.KEEP):
        assert any(word in meta.next_action for word in CHECKS)
