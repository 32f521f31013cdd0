"""Which stores checkpoints can speak of: one without a changelog is never named, and is no crash's victim for that."""

from __future__ import annotations

import pytest

from agent.inventory.model import Task
from tests.support.scenario_case import checkpoint, database, session, store, task

UNLOGGED = "u"


def passed_over(
    written: float, *, released: float | None = 20, offset: int | None = 99, **flushed: float
) -> Task:
    """A store that is held from 2 s on, has data from 5 s on, and that a checkpoint of its sibling does not name."""
    files = database(puts=600, flushed=[(600, flushed.get("data", 5))])
    one = store([files], [session(2, released, puts=600)], name=UNLOGGED)
    return task(store([database()]), one, checkpoints=[checkpoint(written, offset)])


@pytest.mark.parametrize("released", [20, None])
@pytest.mark.parametrize("written", [5, 10, 20, 20.5])
def test_has_no_changelog(written, released):
    """Held, with data, and not named beside its siblings; up to 2.1 exactly-once writes after the close."""
    assert not passed_over(written, released=released).names_changelog_of(UNLOGGED)


def test_checkpoint_before_its_data():
    """Up to 2.5 a store without data may be left out; from 2.6 on none is."""
    one = passed_over(4)
    assert one.names_changelog_of(UNLOGGED)
    assert not one.names_changelog_of(UNLOGGED, lists_all=True)


@pytest.mark.parametrize("written", [1, 2, 20.6])
def test_checkpoint_of_another_session(written):
    """A checkpoint from before it was opened or after it was let go may be of a topology without it."""
    one = passed_over(written, data=0)
    assert one.names_changelog_of(UNLOGGED)
    assert one.names_changelog_of(UNLOGGED, lists_all=True)


def test_nothing_said_of_anyone():
    """No checkpoint at all, or a store that nobody knows."""
    assert task(store([database()])).names_changelog_of("s", lists_all=True)
    assert passed_over(10).names_changelog_of("stranger", lists_all=True)


def test_empty_checkpoint():
    """Up to 2.6 a task none of whose stores has a changelog leaves a checkpoint without entries."""
    assert not passed_over(10, offset=None).names_changelog_of(UNLOGGED)
    assert passed_over(4, offset=None).names_changelog_of(UNLOGGED)


def test_one_entry_is_enough():
    """Named once: it has a changelog, whatever a later checkpoint leaves out."""
    one = passed_over(10)
    one.checkpoints += (checkpoint(12, 5, name=UNLOGGED),)
    assert one.names_changelog_of(UNLOGGED, lists_all=True)
    assert one.names_changelog_of("s", lists_all=True)
