"""A volume that is put back from a snapshot keeps identities, inode numbers and times: what it held decides."""

from __future__ import annotations

from copy import deepcopy

from agent.contract.events import Status
from agent.inventory.disk import Unseen
from agent.replay.memory_disk import MemoryDisk
from tests.agent.home.restarting import away
from tests.support.scenario import Scenario
from tests.support.scenario_script import play

EOS = "exactly_once_v2"


def taken(run: Scenario) -> MemoryDisk:
    """Take a snapshot; nobody holds a lock on it."""
    disk = deepcopy(run.world.disk)
    for node in disk._nodes.values():
        node.locked = False
    return disk


def mounted(run: Scenario, disk: MemoryDisk) -> None:
    """Put another volume in the place of the one that is there, while the agent is away."""
    with away(run):
        run.world.disk._nodes = deepcopy(disk)._nodes
        run.wait(30)
    run.wait(130)


def test_an_earlier_state_of_a_store_holds_nothing_beyond_its_checkpoint() -> None:
    """The memory knows of 30,010 more puts; they went with the volume, and so did who wrote them."""
    run = play(Scenario("4.1.2", EOS), "start, opens, puts 20000, flushes, 10 s, checkpoints 19999, 10 s")
    snapshot = taken(run)
    play(run, "puts 30000, flushes, 20 s, puts 10, flushes, 5 s, stops 50010, 60 s")
    mounted(run, snapshot)
    assert run.findings("stale-eos-checkpoint") == []
    assert run.world.pipeline is not None
    (store,) = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores.values()
    assert (store.puts, store.sessions) == (20000, ())


def test_damage_that_is_put_back_behind_a_restart_is_open_again() -> None:
    """Which process left it is forgotten by then: that its store is there is enough."""
    script = "start, opens, puts 20000, flushes, checkpoints 100, puts 20000, flushes, 10 s, crash, 2 s"
    run = play(Scenario("4.1.2", EOS), f"{script}, start, opens, 60 s")
    damaged = taken(run)
    for volume, status in ((MemoryDisk(), Status.RESOLVED), (damaged, Status.OPEN)):
        mounted(run, volume)
        assert run.only("skipped-eos-wipe").status is status


def test_a_store_that_gets_its_name_back_is_the_one_that_was_damaged() -> None:
    """Its IDENTITY could not be read at first: what opened under a substitute goes on, and nothing dates from 1970."""
    run = play(Scenario("4.1.2", EOS), "start, opens, puts 20000, flushes, checkpoints 100, 5 s")
    disk, read = run.world.disk, run.world.disk.read_dated
    disk.read_dated = lambda path, most_bytes: (  # type: ignore[method-assign]
        Unseen.UNREADABLE if path.endswith("/IDENTITY") else read(path, most_bytes)
    )
    run.world.pipeline = None
    run.world.watch()
    play(run, "puts 20000, flushes, 20 s, crash, 2 s, start, opens, 60 s")
    assert run.findings("zombie-state") == []
    for _ in range(2):
        assert run.only("skipped-eos-wipe").status is Status.OPEN
        disk.read_dated = read  # type: ignore[method-assign]
        run.wait(130)
