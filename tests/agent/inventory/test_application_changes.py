"""Application level of the reducer: directory, application lock, lives of the process, replaced lock files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.inventory.disk import ProcessFact, Unseen
from agent.inventory.model import Inventory
from agent.inventory.reduce import reduce_observation
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
    """A directory appears and disappears, each reported once; not being allowed to look is not absence."""
    one = Reducing()
    looks = (None, Unseen.DENIED, GONE, GONE, None)
    said = [one.see(application_look(n, unseen=unseen)) for n, unseen in enumerate(looks, start=1)]
    assert said == [[], [], ["application-gone"], [], ["application-seen"]]
    nobody = Inventory()
    assert reduce_observation(nobody, application_look(1, unseen=GONE)) == []
    assert nobody.applications == {}


def test_lives_of_the_process():
    """A held lock is a life, a free one its end; one that was never held ends none, nor does a query that failed."""
    one = Reducing()
    assert one.see(application_look(0.5, FREE)) == []
    assert (one.application.life, one.application.lock_ever_held) == (None, False)
    assert one.see(application_look(1, HELD)) == ["process-started"]
    assert one.see(application_look(2, HELD), lock_look(2, UNKNOWN, LOCK)) == []
    assert known(one.application.life).started_us == at(1)
    assert one.see(lock_look(9, FREE, LOCK)) == ["process-ended"]
    assert (one.application.life, one.application.lives[-1].ended_us) == (None, at(9))
    assert one.see(lock_look(12, HELD, LOCK)) == ["process-started"]
    assert len(one.application.lives) == 2


@pytest.mark.parametrize(
    ("looks", "replaced_s"),
    [
        (((HELD, 7), (HELD, 8), (HELD, 8)), [2]),  # once
        (((HELD, 7), (HELD, 7), (HELD, 0)), []),  # the same, or none that could be seen
        (((HELD, 7), (HELD, 0), (HELD, 8)), [3]),
        (((HELD, 7), (FREE, 7), (HELD, 8)), []),  # the next process
        (((FREE, 7), (FREE, 8), (HELD, 9)), []),  # only under a holder it means trouble
        (((HELD, 0), (HELD, 8)), []),  # the first could not be seen
    ],
)
def test_replaced_lock_file(looks, replaced_s):
    """A held lock whose file is another one than before."""
    one = Reducing()
    one.see(*(lock_look(n, lock, LOCK, inode=inode) for n, (lock, inode) in enumerate(looks, start=1)))
    assert list(one.application.lock_replaced_us) == [at(x) for x in replaced_s]


def test_process_is_remembered():
    """Id and release stay known when a later look shows no process; a newer one replaces them."""
    one = Reducing()
    seen = ProcessFact(pid=7, started_at_us=at(0), kafka_streams_version="3.9.2")
    one.see(replace(application_look(1), process_id="a", processes=(seen,)), application_look(2))
    assert (one.application.process_id, one.application.process_version) == ("a", "3.9.2")
    assert not one.application.processes
    one.see(replace(application_look(3), processes=(ProcessFact(pid=7, started_at_us=at(2)),)))
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
    said = []
    for look in (
        replace(application_look(1, HELD), processes=(old,)),
        lock_look(10, FREE, LOCK),  # still the best guess
        replace(application_look(20, HELD), processes=(old,)),
        replace(application_look(30, HELD), processes=(old, new)),
    ):
        one.see(look)
        said.append(one.application.process_version)
    assert said == ["3.9.2", "3.9.2", None, "4.2.1"]
