"""Which closes get a digest: the newest first, each content once, and whatever gets none is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.disk import LockState
from agent.inventory.model import Application, CheckpointFact, Database, Inventory, Session, Store, Task
from agent.inventory.observations import StoreOffsets
from agent.verify.closes import KEPT, SETTLES_US, Close, Closes, Outcome, closes_of

APP, OFFSET, LATER_US = "orders", 41, 10 * SETTLES_US


def session(released_us: int | None, *, closed: bool | None = True) -> Session:
    """Make a session that began at 0."""
    return Session(0, frozenset({"i"}), 0, None, created=True, released_us=released_us, closed=closed)


def store(
    name: str, released_us: int | None = 1, *, closed: bool | None = True, identity: str | None = "i"
) -> Store:
    """Make a store with one session."""
    lock = LockState.HELD if released_us is None else LockState.FREE
    database = Database(f"{APP}/0_0/rocksdb/{name}", None, identity=identity, lock=lock)
    return Store(name, False, {"": database}, sessions=(session(released_us, closed=closed),))


def task(*stores: Store, offset: int = OFFSET, name: str = "0_0") -> Task:
    """Make a task whose checkpoint names all of its stores."""
    fact = CheckpointFact(1, 1, {x.name: offset for x in stores}, (), 1, held=True)
    found = Task(APP, name, f"{APP}/{name}", exists=True, checkpoints=(fact,))
    found.stores = {x.name: x for x in stores}
    return found


def inventory(*tasks: Task) -> Inventory:
    """Make an inventory of one application."""
    return Inventory({APP: Application(APP, exists=True, tasks={x.id: x for x in tasks})})


def test_a_store_that_was_closed_in_order_is_due() -> None:
    """With identity and offset; when it was let go."""
    assert closes_of(task(store("s", 7))) == [Close((APP, "0_0", "s"), (frozenset({"i"}), OFFSET), 7)]


def with_own_offset() -> Task:
    """From 4.3 on a store says its offset: what a checkpoint says does not count then."""
    own = store("s")
    own.databases[""].offsets = StoreOffsets(0, 6, ((f"{APP}-s-changelog-0", 99, 5),))
    return task(own)


def closed_dirty() -> Task:
    """From 4.3 on a dirty close leaves the offset of an earlier commit behind."""
    dirty = task(store("s"))
    dirty.stores["s"].sessions[-1].closed_with_offset = False
    return dirty


def but(**fields: object) -> Task:
    """Change a task whose store is due."""
    return replace(task(store("s")), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "offsets"),
    [
        (task(store("s")), [OFFSET]),
        (with_own_offset(), [99]),
        (task(store("s", None)), []),
        (task(store("s", closed=False)), []),
        (task(store("s", identity=None)), []),
        (task(store("s"), offset=-4), []),
        (task(), []),
        (closed_dirty(), []),
        (but(checkpoints=()), []),
        # up to 2.8 a task lock that is held means that somebody is about to open
        (but(lock=LockState.HELD), []),
        (but(exists=False), []),
        (task(store("s"), name="global"), []),
    ],
)
def test_only_what_was_closed_in_order_is_due(found: Task, offsets: list[int]) -> None:
    """Nothing is made of a store of which nothing could be said."""
    assert [x.content[1] for x in closes_of(found)] == offsets


def test_a_close_is_started_when_it_has_settled() -> None:
    """A restart opens it again within moments."""
    closes = Closes()
    closes.see(inventory(task(store("s", 1_000))), APP)
    assert closes.next(1_000 + SETTLES_US - 1) is None
    assert closes.next(1_000 + SETTLES_US) is not None
    assert closes.next(LATER_US) is None  # one at a time


def test_the_newest_close_comes_first() -> None:
    """It says most of how the application ended."""
    closes, order = Closes(), []
    closes.see(inventory(task(store("a", 3), store("b", 9), store("c", 5))), APP)
    while (close := closes.next(LATER_US)) is not None:
        order.append(close.key[2])
        closes.end(Outcome.MADE)
    assert order == ["b", "c", "a"]
    assert closes.outcomes == {Outcome.MADE: 3}


def test_the_same_content_is_digested_once() -> None:
    """Closed again at the same offset; after a later offset or in another incarnation it is due again."""
    closes = Closes()
    for offset, identity, is_due in ((41, "i", True), (41, "i", False), (42, "i", True), (42, "j", True)):
        found = inventory(task(store("s", identity=identity), offset=offset))
        closes.see(found, APP, "0_0")
        assert (closes.next(LATER_US) is not None) is is_due
        if is_due:
            closes.end(Outcome.MADE)
    assert closes.outcomes == {Outcome.MADE: 3}


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    ("task_id", "later"),
    [("", inventory(task(store("s", None)))), ("", Inventory()), ("0_0", inventory())],
    ids=["opened", "application deleted", "task deleted"],
)
def test_what_is_opened_or_deleted_overtakes_its_digest(begun: bool, task_id: str, later: Inventory) -> None:
    """Waiting or being made; the next close with the same content is due, for none was made."""
    closes = Closes()
    closes.see(inventory(task(store("s"))), APP)
    if begun:
        closes.next(LATER_US)
    closes.see(later, APP, task_id)
    assert (len(closes), closes.current) == (0, None)
    assert closes.outcomes == {Outcome.OVERTAKEN: 1}
    closes.see(inventory(task(store("s"))), APP)
    assert closes.next(LATER_US) is not None


def test_of_too_many_the_oldest_are_left_out_and_counted() -> None:
    """They are not taken in again by the next look."""
    closes = Closes()
    found = inventory(task(*(store(f"s{number}", number + 1) for number in range(KEPT + 3))))
    for _ in range(2):
        closes.see(found, APP)
        assert len(closes) == KEPT
        assert closes.outcomes == {Outcome.LEFT_OUT: 3}
    newest = closes.next(LATER_US)
    assert newest is not None
    assert newest.key[2] == f"s{KEPT + 2}"


def test_what_is_left_at_the_end_is_counted() -> None:
    """The one that is being made, too."""
    closes = Closes()
    closes.see(inventory(task(store("a"), store("b"))), APP)
    closes.next(LATER_US)
    assert closes.leave_out() == 2
    assert (len(closes), closes.outcomes) == (0, {Outcome.LEFT_OUT: 2})


class World:
    """Two stores that are opened, closed and deleted, and a maker that goes on at its own time."""

    def __init__(self) -> None:
        """Begin with both open, at offset 0."""
        self.closes, self.now_us, self.made = Closes(), 0, Counter[tuple[object, ...]]()
        self.stores: dict[str, tuple[int | None, int]] = {"a": (None, 0), "b": (None, 0)}

    def do(self, step: tuple[str, str]) -> None:
        """Do one step."""
        what, name = step
        self.now_us += SETTLES_US // 2
        released_us, offset = self.stores.get(name, (None, 0))
        if what == "open":
            self.stores[name] = (None, offset)
        elif what == "write" and released_us is None:
            self.stores[name] = (None, offset + 1)
        elif what == "close" and released_us is None:
            self.stores[name] = (self.now_us, offset)
        elif what == "delete":
            self.stores.pop(name, None)
        elif what == "look":
            self.look()
        elif what == "begin":
            self.closes.next(self.now_us)
        elif what == "made" and self.closes.current is not None:
            self.made[self.closes.current.key, self.closes.current.content] += 1
            self.closes.end(Outcome.MADE)

    def due(self) -> set[Close]:
        """List what is closed now."""
        return {x for each in self.tasks() for x in closes_of(each)}

    def tasks(self) -> list[Task]:
        """Describe both, each in its own task."""
        return [task(store(x, at), offset=y, name=f"{x == 'b':d}_0") for x, (at, y) in self.stores.items()]

    def look(self) -> None:
        """Let the queue see all of it."""
        self.closes.see(inventory(*self.tasks()), APP)


_WHAT = st.sampled_from(["open", "write", "close", "delete", "look", "begin", "made"])


@given(st.lists(st.tuples(_WHAT, st.sampled_from("ab")), max_size=60))
def test_in_every_order_only_what_is_closed_is_made_and_nothing_is_forgotten(
    steps: list[tuple[str, str]],
) -> None:
    """Whatever opens, closes and goes meanwhile."""
    world = World()
    for step in steps:
        world.do(step)
        if step[0] == "look":
            current = world.closes.current
            due = {x.key: x.content for x in world.due()}
            assert current is None or due.get(current.key) == current.content
    world.look()
    world.now_us += SETTLES_US
    while world.closes.current is not None or world.closes.next(world.now_us) is not None:
        world.do(("made", ""))
    assert len(world.closes) == 0
    made = set(world.made)
    assert {(x.key, x.content) for x in world.due()} <= made
    assert world.closes.outcomes[Outcome.MADE] == sum(world.made.values())
    assert world.closes.outcomes[Outcome.LEFT_OUT] == 0
