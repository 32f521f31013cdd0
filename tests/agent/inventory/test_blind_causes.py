"""The table of causes is complete."""

from __future__ import annotations

from agent.inventory.blind_causes import BY_SLUG, CAUSES
from agent.inventory.disk import Unseen
from agent.inventory.hints import LOSSES
from agent.watch.source import Cause


def test_slugs_are_unique_and_every_cause_has_a_remedy() -> None:
    """One row per cause, and none without something to do."""
    assert len(BY_SLUG) == len(CAUSES)
    assert all(cause.what and cause.remedy for cause in CAUSES)


def test_whatever_the_agent_may_name_is_in_the_table() -> None:
    """Causes of the watch, of losses and of refused looks all have their row."""
    named = {str(cause) for cause in Cause} - {"start"} | LOSSES | {"agent-away", "baseline-lost", "missed"}
    named |= {"denied", "too-large", "unreadable"} & {str(unseen) for unseen in Unseen}
    assert named <= BY_SLUG.keys()
    assert all(BY_SLUG[cause].hides for cause in LOSSES)
