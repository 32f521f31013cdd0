"""Whatever happened to the notifications: after a rescan the agent sees what a rescan alone would see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agent.contract.events import Source
from agent.detectors import DETECTORS
from agent.inventory.disk import LockState, Unseen
from agent.inventory.hints import Hint
from agent.inventory.model import Inventory
from agent.inventory.observations import Removal
from agent.inventory.reduce import reduce_observation
from agent.layout.paths import classify
from tests.support.scenario import TIMESTAMPED, WINDOWED, App, Scenario
from tests.support.scenario_case import case
from tests.support.scenario_looks import (
    application_look,
    checkpoint_look,
    database_look,
    flush,
    lock_look,
    removal,
    task_look,
)

TASKS = ("0_0", "0_1")


class Play:
    """Does one thing after the other, as far as it is possible at that moment."""

    def __init__(self, release: str) -> None:
        """Begin with a process."""
        self.run = Scenario(release, "exactly_once", stores={"s": TIMESTAMPED, "w": WINDOWED})
        self.app: App = self.run.start()

    def do(self, action: str, task_id: str, count: int) -> None:
        """Do it, or nothing where it makes no sense."""
        held = task_id in self.app.held
        there = self.run.world.has(f"app/{task_id}")
        if action == "open" and not held:
            self.app.opens(task_id)
        elif action == "work" and held:
            self.app.puts(task_id, count, segment=count % 3 * 60_000)
            self.app.flushes(task_id)
        elif action == "compact" and held:
            self.app.compacts(task_id)
        elif action == "checkpoint" and held:
            self.app.checkpoints(task_id, count)
        elif action == "close" and held:
            self.app.closes(task_id, count)
        elif action == "wipe" and held:
            self.app.wipes(task_id)
        elif action == "clean" and there and not held:
            self.app.cleaner.deletes(task_id)
        elif action == "crash":
            self.app.crash()
            self.run.wait(0.1)
            self.app = self.run.start()
        elif action == "wait":
            self.run.wait(count / 10)
        elif action == "garble" and held:
            self.run.world.replace(f"app/{task_id}/.checkpoint", b"?", f"app/{task_id}/.checkpoint.tmp")


class Mangling:
    """Loses, doubles and delays hints, as drawn."""

    def __init__(self, fates: Sequence[int]) -> None:
        """Use these fates in turn."""
        self.fates = list(fates) or [0]
        self.late: list[Hint] = []
        self.turn = 0

    def __call__(self, hints: Sequence[Hint]) -> Sequence[Hint]:
        """Decide what becomes of each hint; delayed ones come back in reverse order."""
        out: list[Hint] = []
        for hint in hints:
            fate = self.fates[self.turn % len(self.fates)]
            self.turn += 1
            if fate == 1:
                continue
            if fate == 3:
                self.late.append(hint)
                continue
            out += [hint, hint] if fate == 2 else [hint]
            if fate == 4:
                out += reversed(self.late)
                self.late.clear()
        return out


DATABASE = "identity born_us inode manifest files size_bytes lock reopened_us offsets"


def values(record: object, names: str) -> tuple[object, ...]:
    """Fields of a record."""
    return tuple(getattr(record, name) for name in names.split(" "))


def current_view(inventory: Inventory) -> dict[str, Any]:
    """What is there now, without any history.

    An empty directory is left out: who saw its last task go knows that it is an application's, who comes later can't.
    """
    view: dict[str, Any] = {}
    for application in inventory.applications.values():
        is_known = application.lock or application.process_id
        if not application.exists or not (is_known or any(x.exists for x in application.tasks.values())):
            continue
        view[application.id] = values(application, "inode lock lock_inode process_id")
        for task in application.tasks.values():
            if not task.exists:
                continue
            fact = task.checkpoint
            view[task.path] = (task.inode, task.mtime_us, task.names, task.lock, bool(task.held))
            view[f"{task.path} checkpoint"] = fact and (fact.written_us, fact.offsets, fact.foreign)
            view[f"{task.path} problem"] = task.checkpoint_problem
            for store in task.stores.values():
                for database in store.databases.values():
                    view[database.path] = (*values(database, DATABASE), store.segmented)
                for remains in store.remains.values():
                    view[f"{remains.path} remains"] = remains.files
    return view


ACTIONS = ["open", "work", "compact", "checkpoint", "close", "wipe", "clean", "crash", "wait", "garble"]
releases = st.sampled_from(["2.1.1", "2.3.1", "2.8.2", "3.9.2", "4.1.2", "4.3.1"])
steps = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.sampled_from(TASKS), st.integers(1, 50)), min_size=1, max_size=12
)


@given(release=releases, steps=steps, fates=st.lists(st.integers(0, 4), max_size=40))
def test_rescan_repairs_everything(release, steps, fates):
    """Any interleaving of lost, doubled and reordered hints that ends in a rescan gives the view of a rescan alone."""
    play = Play(release)
    world = play.run.world
    world.through = Mangling(fates)
    for action, task_id, count in steps:
        play.do(action, task_id, count)
    assert world.pipeline is not None
    world.overflows()
    seen = current_view(world.pipeline.inventory)
    world.watch()
    assert seen == current_view(world.pipeline.inventory)
    assert world.faults == []


@given(release=releases, steps=steps)
@example(release="2.1.1", steps=[("open", "0_0", 1), ("crash", "0_0", 1), ("clean", "0_0", 1)])
def test_notifications_alone_keep_up(release, steps):
    """With every hint delivered, six seconds of quiet are enough: the view is that of a rescan."""
    play = Play(release)
    world = play.run.world
    for action, task_id, count in steps:
        play.do(action, task_id, count)
    play.run.wait(6)
    assert world.pipeline is not None
    seen = current_view(world.pipeline.inventory)
    world.watch()
    assert held_view(seen) == held_view(current_view(world.pipeline.inventory))
    assert world.faults == []


def held_view(view: dict[str, Any]) -> dict[str, Any]:
    """Without the direct children of a task and its mtime: position and lock files announce nothing that matters."""
    return {
        key: (value[0], *value[3:])
        if key.count("/") == 1 and isinstance(value, tuple) and len(value) == 5
        else value
        for key, value in view.items()
    }


# -- garbage ------------------------------------------------------------------------------------------------

PATHS = [
    "app",
    "app/.lock",
    "app/0_0",
    "app/0_0/.lock",
    "app/0_0/.checkpoint",
    "app/0_0/.checkpoint_c",
    "app/0_0/rocksdb",
    "app/0_0/rocksdb/s",
    "app/0_0/rocksdb/s/CURRENT",
    "app/0_0/rocksdb/s/000007.sst",
    "app/0_0/w/w.0",
    "app/0_0/w/w.0/LOCK",
    "app/__t__/0_1/rocksdb/s",
    "app/global/rocksdb/g",
    "app/nonsense/x",
    "lost+found",
    "",
]
seconds = st.floats(0, 100, allow_nan=False)
locks = st.sampled_from([None, *LockState])
unseen = st.sampled_from([None, None, None, *Unseen])
flushes = st.lists(st.builds(flush, st.integers(0, 9), st.integers(0, 500), st.none() | seconds), max_size=3)
looks = st.one_of(
    st.builds(removal, seconds, st.sampled_from(PATHS)),
    st.builds(
        task_look, seconds, inode=st.integers(0, 3), lock=locks, unseen=unseen, path=st.sampled_from(PATHS)
    ),
    st.builds(
        checkpoint_look,
        seconds,
        st.dictionaries(st.sampled_from(["s", "w", "x"]), st.integers(-4, 1000)),
        unseen=unseen,
        problem=st.sampled_from([None, None, "bad"]),
        path=st.sampled_from(PATHS),
    ),
    st.builds(
        database_look,
        seconds,
        st.sampled_from([None, "a", "b"]),
        born=seconds,
        lock=locks,
        puts=st.integers(0, 500),
        flushes=flushes.map(tuple),
        manifest=st.none() | st.integers(1, 9),
        reopened=st.lists(seconds, max_size=3).map(tuple),
        leftovers=st.integers(0, 3),
        unseen=unseen,
        path=st.sampled_from(
            [path for path in PATHS if classify(path).store and classify(path).database == path]
        ),
    ),
    st.builds(
        lock_look, seconds, locks, st.sampled_from(["app/.lock", "app/0_0/.lock"]), inode=st.integers(0, 3)
    ),
    st.builds(application_look, seconds, locks, inode=st.integers(0, 3), unseen=unseen),
)


@given(st.lists(looks, max_size=30), st.sampled_from([None, "2.1.1", "3.9.2", "4.1.2", "4.3.1"]))
def test_random_observations_never_raise(history, release):
    """No history of looks, in no order, makes the reducer or a detector fail."""
    inventory = Inventory()
    for look in history:
        reduce_observation(inventory, look)
    for application in inventory.applications.values():
        for task in application.tasks.values():
            one = case(task, application=application, release=release, told={"delete_retention_ms": 1000})
            for detector in DETECTORS:
                list(detector.judge(one))


@given(st.lists(looks, max_size=30))
def test_same_observations_same_inventory(history):
    """The reducer is deterministic."""
    first, second = Inventory(), Inventory()
    told = [change for look in history for change in reduce_observation(first, look)]
    again = [change for look in history for change in reduce_observation(second, look)]
    assert told == again
    assert first == second


def test_unknown_task_directory_is_not_made_by_a_removal():
    """What was never seen cannot go."""
    inventory = Inventory()
    look = Removal(classify("app/0_0/rocksdb/s/CURRENT"), 5, Source.INOTIFY)
    assert reduce_observation(inventory, look) == []
    assert inventory.applications["app"].tasks == {}
