"""Application level of the reducer: what is kept, and replaced lock files."""

from __future__ import annotations

from dataclasses import replace

from agent.inventory.disk import ProcessFact
from agent.inventory.model import Inventory
from agent.inventory.reduce import reduce_observation
from tests.support.scenario_case import at
from tests.support.scenario_looks import FREE, GONE, HELD, Reducing, application_look, lock_look

LOCK = "app/.lock"


def test_gone_before_it_was_seen():
    """An application that nobody knew did not go."""
    inventory = Inventory()
    assert reduce_observation(inventory, application_look(1, unseen=GONE)) == []
    assert inventory.applications == {}


def test_replaced_lock_file():
    """A held lock whose file is another one than before; a first inode, or none, is no replacement."""
    one = Reducing()
    one.see(application_look(1, HELD, inode=7), lock_look(2, HELD, LOCK, inode=7))
    assert list(one.application.lock_replaced_us) == []
    one.see(lock_look(3, HELD, LOCK, inode=0))
    assert list(one.application.lock_replaced_us) == []
    one.see(lock_look(4, HELD, LOCK, inode=8))
    assert list(one.application.lock_replaced_us) == [at(4)]
    one.see(lock_look(5, HELD, LOCK, inode=8))
    assert list(one.application.lock_replaced_us) == [at(4)]


def test_free_lock_files_may_be_replaced():
    """Only under a holder does another file mean trouble."""
    one = Reducing()
    one.see(application_look(1, FREE, inode=7), lock_look(2, FREE, LOCK, inode=8))
    one.see(lock_look(3, HELD, LOCK, inode=9))
    assert list(one.application.lock_replaced_us) == []


def test_held_lock_without_a_known_file():
    """Where the first look could not tell the inode, the next one is no replacement."""
    one = Reducing()
    one.see(lock_look(1, HELD, LOCK, inode=0), lock_look(2, HELD, LOCK, inode=8))
    assert list(one.application.lock_replaced_us) == []


def test_process_is_remembered():
    """Id and release stay known when a later look shows no process; a newer one replaces them."""
    one = Reducing()
    seen = ProcessFact(pid=7, started_at_us=at(0), kafka_streams_version="3.9.2")
    look = replace(application_look(1), process_id="a", processes=(seen,))
    one.see(look, application_look(2))
    assert (one.application.process_id, one.application.process_version) == ("a", "3.9.2")
    assert not one.application.processes
    nameless = ProcessFact(pid=7, started_at_us=at(2))
    one.see(replace(application_look(3), processes=(nameless,)))
    assert one.application.process_version == "3.9.2"
    other = ProcessFact(pid=8, started_at_us=at(3), kafka_streams_version="4.0.2")
    one.see(replace(application_look(3), process_id="b", processes=(other,)))
    assert (one.application.process_id, one.application.process_version) == ("b", "4.0.2")
    assert one.application.processes == (other,)


def test_release_of_an_ended_process():
    """The next process may be of another release; a list of processes from before its start says nothing of it."""
    one = Reducing()
    old = ProcessFact(pid=7, started_at_us=at(0), kafka_streams_version="3.9.2")
    new = ProcessFact(pid=8, started_at_us=at(19), kafka_streams_version="4.2.1")
    told = []
    for look in (
        replace(application_look(1, HELD), processes=(old,)),
        lock_look(10, FREE, LOCK),  # still the best guess
        replace(application_look(20, HELD), processes=(old,)),
        replace(application_look(30, HELD), processes=(old, new)),
    ):
        one.see(look)
        told.append(one.application.process_version)
    assert told == ["3.9.2", "3.9.2", None, "4.2.1"]


def test_problem_is_of_the_last_reading():
    """A process file that can be read again has no problem."""
    one = Reducing()
    one.see(replace(application_look(1), process_problem="cut"))
    assert one.application.process_problem == "cut"
    one.see(application_look(2))
    assert one.application.process_problem is None
