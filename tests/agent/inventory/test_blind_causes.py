"""The table of causes is complete."""

from __future__ import annotations

from agent.inventory.blind_causes import BY_SLUG, CAUSES, HIDING, SLOWING, Step
from agent.inventory.disk import Unseen
from agent.inventory.hints import LOSSES
from agent.watch.watches import Cause


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


def test_what_lasts_and_what_hides() -> None:
    """An overflow is over once everything was read again; what is only slower hides nothing."""
    assert {cause.slug for cause in CAUSES if cause.lasts} == {
        *("root-missing", "watch-refused", "denied", "unreadable", "too-large"),
        *("store-damaged", "store-unread", "store-being-read", "watch-limit", "polling", "self-limit"),
        "clock-differs",
    }
    assert set(SLOWING) == {"watch-limit", "polling", "clock-differs", "self-limit"}
    assert set(HIDING) == BY_SLUG.keys() - set(SLOWING)


def test_steps_are_numbered_as_the_metric_shows_them() -> None:
    """The rescan's pace is computed from them, and alerts compare with them."""
    assert [(step.value, step.slug) for step in Step] == [
        *((0, "none"), (1, "slower-rescan"), (2, "longer-batches")),
        *((3, "less-store-detail"), (4, "slowest-rescan")),
    ]
