"""Places and stores that cannot be read: blind intervals, from when to when, and of whom."""

from __future__ import annotations

import pytest

from agent.engine.unreadable_paths import UnreadablePaths
from agent.inventory.disk import Entry, EntryKind, Unseen
from agent.inventory.model import BlindInterval, Inventory
from agent.layout.paths import classify
from tests.support.scenario_case import at, database

STORE = classify("app/0_0/rocksdb/s")
SEGMENT = classify("app/0_0/w/w.60000")
COMPRESSED = "000007.sst: unsupported: compressed block (kind 7)"
SHORT = "000008.sst: corrupt: file is too short"


class Minding:
    """Unreadable paths on an empty inventory, and a database with problems."""

    def __init__(self) -> None:
        self.inventory = Inventory(started_us=at(0))
        self.refusals = UnreadablePaths(self.inventory)

    def finds(self, seconds: float, *problems: str, since: float = 10, place=STORE) -> None:
        """A look at this time cannot read these, which it could not since then."""
        one = database()
        one.problems, one.problem_since_us = problems, dict.fromkeys(problems, at(since))
        self.refusals.note_content(place, one, at(seconds))

    @property
    def only(self) -> BlindInterval:
        (interval,) = self.inventory.blind
        return interval


def test_begins_with_the_second_reading():
    """What could not be read once may be passing; after five seconds it blinds since the first look."""
    minding = Minding()
    minding.finds(10, COMPRESSED)
    minding.finds(14.9, COMPRESSED)
    assert not minding.inventory.blind
    minding.finds(15, COMPRESSED)
    minding.finds(16, COMPRESSED)
    interval = minding.only
    assert (interval.started_us, interval.ended_us, interval.cause) == (at(10), None, "store-unread")
    assert (interval.application, interval.task, interval.store) == ("app", "0_0", "s")
    assert interval.detail == f"store s: {COMPRESSED}"


@pytest.mark.parametrize(
    ("problems", "cause"),
    [
        ((COMPRESSED,), "store-unread"),
        ((COMPRESSED, SHORT), "store-damaged"),
        (("MANIFEST-000005: cut: it ends inside the record at byte 9",), "store-damaged"),
        (("MANIFEST-000005: gone: CURRENT names it, and it is not there",), "store-damaged"),
        (("000007.sst: denied",), "store-unread"),
        (("000007.sst: vanished",), None),
        (("000007.sst: elsewhere: on another path",), None),
        (("000007.sst: elsewhere: on another path", COMPRESSED), "store-unread"),
    ],
)
def test_cause(problems, cause):
    """Damage is told apart from what only the agent cannot read; a gap that is known blinds nobody."""
    minding = Minding()
    minding.finds(20, *problems)
    assert [x.cause for x in minding.inventory.blind] == ([cause] if cause else [])


def test_follows_what_it_finds():
    """More of the same is one interval; another cause is another one; none ends it."""
    minding = Minding()
    minding.finds(20, COMPRESSED)
    minding.finds(21, COMPRESSED, "000009.sst: denied")
    assert minding.only.detail.endswith("and 1 more")
    minding.finds(22, SHORT)
    assert [(x.cause, x.ended_us) for x in minding.inventory.blind] == [
        ("store-unread", at(22)),
        ("store-damaged", None),
    ]
    minding.finds(30)
    assert [x.ended_us for x in minding.inventory.blind] == [at(22), at(30)]


def test_never_before_the_agent():
    """What an earlier agent had found counts from this one's start: the time before was told by that one."""
    minding = Minding()
    minding.inventory.started_us = at(18)
    minding.finds(20, COMPRESSED)
    assert minding.only.started_us == at(18)


def test_segments():
    """Each segment has its own interval, and says which."""
    minding = Minding()
    minding.finds(20, COMPRESSED, place=SEGMENT)
    minding.finds(20, COMPRESSED)
    assert [x.store for x in minding.inventory.blind] == ["w", "s"]
    assert "segment w.60000" in minding.inventory.blind[0].detail


@pytest.mark.parametrize("gone", ["app/0_0/rocksdb/s", "app/0_0", "app"])
def test_ends_with_what_is_gone(gone):
    """Nobody is blind for a directory that is not there, nor for anything below it."""
    minding = Minding()
    minding.finds(20, COMPRESSED)
    minding.finds(20, COMPRESSED, place=classify("app2/0_0/rocksdb/s"))
    minding.refusals.note(classify("app/0_0/rocksdb/s"), Unseen.DENIED, at(21))
    minding.refusals.forget_below(gone, at(30))
    assert [(x.application, x.ended_us) for x in minding.inventory.blind] == [
        ("app", at(30)),
        ("app2", None),
        ("app", at(30)),
    ]
    minding.finds(40, COMPRESSED, since=33)
    assert minding.inventory.blind[-1].started_us == at(33)


def test_database_that_is_not_there():
    """No database, nothing to be blind for."""
    minding = Minding()
    minding.finds(20, COMPRESSED)
    minding.refusals.note_content(STORE, None, at(25))
    assert minding.only.ended_us == at(25)


def test_long_manifest_has_its_own_cause():
    """What the next looks read by themselves wakes nobody, and ends as something else if they cannot."""
    minding = Minding()
    one = database()
    one.problems, one.goes_on = ("MANIFEST-000005: too-large: it is read on",), True
    one.problem_since_us = {one.problems[0]: at(10)}
    minding.refusals.note_content(STORE, one, at(20))
    assert minding.only.cause == "store-being-read"
    one.goes_on = False
    minding.refusals.note_content(STORE, one, at(21))
    assert [x.cause for x in minding.inventory.blind] == ["store-being-read", "store-unread"]


def test_links_are_not_followed():
    """A task or a topology that is a symbolic link is told, until it is gone; other links are none of ours."""
    minding, app = Minding(), classify("app")
    links = [Entry(name, EntryKind.SYMLINK) for name in ("0_0", "__T__", "global", "notes", ".lock")]
    entries = (*links, Entry("0_1", EntryKind.DIRECTORY))
    for seconds in (10, 20):
        minding.refusals.note_listing(app, entries, at(seconds))
    found = {x.detail.partition(", a symbolic link: it is not")[0]: x for x in minding.inventory.blind}
    assert all("Mount its target" in x.detail for x in minding.inventory.blind)
    assert {(x.started_us, x.ended_us, x.cause) for x in found.values()} == {(at(10), None, "unreadable")}
    assert set(found) == {"at 'app/0_0'", "at 'app/__T__'", "at 'app/global'"}
    minding.refusals.note_listing(app, entries[1:], at(30))
    assert [name for name, x in found.items() if x.ended_us is not None] == ["at 'app/0_0'"]
    minding.refusals.note_listing(app, Unseen.DENIED, at(40))
    assert minding.inventory.blind[-1].cause == "denied"
