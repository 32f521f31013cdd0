"""Application level of the reducer: directory, application lock, lives of the process."""

from __future__ import annotations

from agent.inventory.disk import Unseen
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    FREE,
    GONE,
    HELD,
    UNKNOWN,
    Reducing,
    application_look,
    known,
    lock_look,
)

LOCK = "app/.lock"


def test_seen_and_gone():
    """A directory appears and disappears, each told once."""
    one = Reducing()
    assert one.see(application_look(1)) == []
    assert one.see(application_look(2, unseen=GONE)) == ["application-gone"]
    assert one.see(application_look(3, unseen=GONE)) == []
    assert one.see(application_look(4)) == ["application-seen"]


def test_reading_that_failed():
    """Not being allowed to look is not absence."""
    one = Reducing()
    assert one.see(application_look(1, unseen=Unseen.DENIED)) == []
    assert one.application.exists


def test_lives_of_the_process():
    """A held lock is a life, a free one its end."""
    one = Reducing()
    assert one.see(application_look(1, HELD)) == ["process-started"]
    assert one.see(application_look(2, HELD)) == []
    assert known(one.application.life).started_us == at(1)
    assert one.see(lock_look(9, FREE, LOCK)) == ["process-ended"]
    assert one.application.life is None
    assert one.application.lives[-1].ended_us == at(9)
    assert one.see(lock_look(12, HELD, LOCK)) == ["process-started"]
    assert len(one.application.lives) == 2


def test_free_lock_is_no_end():
    """A lock that was never seen held ends no life."""
    one = Reducing()
    assert one.see(application_look(1, FREE)) == []
    assert (one.application.life, one.application.lock_ever_held) == (None, False)


def test_unknown_keeps_what_is_known():
    """A query that failed is no end."""
    one = Reducing()
    one.see(application_look(1, HELD))
    assert one.see(lock_look(2, UNKNOWN, LOCK)) == []
    assert one.application.life is not None


def test_lock_file_replaced():
    """Another inode under the same name, held before and after, is remembered once."""
    one = Reducing()
    one.see(
        application_look(1, HELD, inode=7),
        lock_look(5, HELD, LOCK, inode=8),
        lock_look(6, HELD, LOCK, inode=8),
    )
    assert list(one.application.lock_replaced_us) == [at(5)]


def test_same_file_again():
    """The same inode, or none that could be seen, is no replacement."""
    one = Reducing()
    one.see(
        application_look(1, HELD, inode=7),
        lock_look(5, HELD, LOCK, inode=7),
        lock_look(6, HELD, LOCK, inode=0),
    )
    assert not one.application.lock_replaced_us


def test_restart_with_a_new_file():
    """A new lock file after the old one was free is the next process."""
    one = Reducing()
    one.see(
        application_look(1, HELD, inode=7),
        lock_look(5, FREE, LOCK, inode=7),
        lock_look(6, HELD, LOCK, inode=8),
    )
    assert not one.application.lock_replaced_us


def test_process_id_stays_known():
    """The metadata of the last look that had any."""
    one = Reducing()
    look = application_look(1)
    object.__setattr__(look, "process_id", "p-1")
    one.see(look, application_look(2))
    assert one.application.process_id == "p-1"
