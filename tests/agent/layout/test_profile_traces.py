"""Profiles: exactness, and which traces mean what."""

from __future__ import annotations

import pytest

from agent.layout.profile import Evidence, Profile, infer
from agent.layout.releases import ANY_RELEASE, ReleaseRange


@pytest.mark.parametrize(
    ("known", "exact"),
    [
        (ReleaseRange.of("3.9.2"), True),
        (ReleaseRange.of("3.9"), False),
        (ReleaseRange.since("3.9.2"), False),
        (ReleaseRange.until("3.9.2"), False),
        (ANY_RELEASE, False),
    ],
)
def test_exact(known, exact):
    """Only a single release is exact."""
    assert Profile(known).is_exact is exact


@pytest.mark.parametrize(
    ("evidence", "known"),
    [
        (Evidence(), "any release"),
        (Evidence(task_lock_held=True), "up to 2.8.x"),
        (Evidence(offsets_family=True), "4.3.0 or later"),
        (Evidence(process_file=True), "2.6.2 or later"),
        (Evidence(process_file=False), "up to 2.7.0"),
        (Evidence(position_files=True), "3.2.0 or later"),
        (Evidence(task_lock_held=True, process_file=True), "2.6.2 to 2.8.x"),
    ],
)
def test_traces(evidence, known):
    """Each trace on its own, and two together."""
    assert str(infer(evidence).range) == known
