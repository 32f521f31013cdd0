"""Detector `unrestored-store`, of stores whose changelog is their source topic (KAFKA-20416, D13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Level, Status
from agent.inventory.model import Shape
from agent.judging.base import TaskCase
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario import KEY_VALUE, UNLOGGED, WINDOWED, App, Scenario
from tests.support.scenario_case import case, checkpoint, database, past, session, store, task
from tests.support.scenario_script import play
from tests.support.tables import QUIET, SUSPECTED, heard, said, table

ID = "unrestored-store"
EOS = "exactly_once_v2"
TOPIC = "in-table"
HELD = 8000
"""Records, each of another key, that the store had taken before its wipe."""


def claims(app: App, offset: int, *, topic: str = TOPIC) -> None:
    """Write the entry of the source topic: into `.checkpoint`, or from 4.3 on into the store."""
    if not app.habits.offsets_in_store:
        app.flushes("0_0")
        app.write_checkpoint("0_0", {(topic, 0): offset})
        return
    app.run.task("0_0").databases["s", ""].put_offset(f"{topic}-0", offset)


def ends_clean(app: App, offset: int, *, topic: str = TOPIC) -> None:
    """Close the task clean, claiming `offset`."""
    claims(app, offset, topic=topic)
    app.closes("0_0")
    app.run.wait(2)


def wiped(
    release: str = "4.1.2", guarantee: str = EOS, *, topic: str = TOPIC, cleaner: bool = False, **more
) -> App:
    """Filled by one process, closed clean; the next one goes on with it, and wipes it, or leaves it to a cleaner."""
    run = play(Scenario(release, guarantee, **more), f"start, opens, 2 s, puts {HELD}")
    ends_clean(run.app, HELD - 1, topic=topic)
    play(run, "ends, 5 s, start, opens, 5 s")
    if cleaner:
        ends_clean(run.app, HELD - 1)
        play(run, "deletes_directory, 1 s, opens")
    else:
        run.app.wipes("0_0")
    run.wait(1)
    return run.app


def emptied(puts: int = 300, offset: int | None = None, *, topic: str = TOPIC, **more) -> Scenario:
    """Wiped, declared restored while empty; it took `puts` records more and was closed clean."""
    app = wiped(topic=topic, **more)
    if puts:
        app.puts("0_0", puts)
    ends_clean(app, HELD + puts - 1 if offset is None else offset, topic=topic)
    return app.run


@pytest.mark.parametrize("release", ["2.7.2", "2.8.2", "3.4.1", "3.7.2", "3.9.2", "4.2.1", "4.3.1"])
def test_used_without_its_restoration(release):
    """The offset goes on from the old one, and only what came since was put: suspected, damage.

    2.7 writes no consumed offset at such a close: only the empty restoration is left as the reason.
    """
    run = emptied(release=release)
    finding = run.only(ID)
    assert heard(ID, run) == SUSPECTED
    assert (finding.level, finding.status) == (Level.DAMAGE, Status.OPEN)
    assert (finding.store, finding.affected) == ("s", Affected.YES)
    revived = () if release == "2.7.2" else ("offset of a revived task (no upstream issue)",)
    assert finding.upstream == ("KAFKA-20416", *revived)
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)


@table(ID, "more, expected", {
    # a revived task that is closed while it restores claims what it had consumed before
    "D13: closed half way": ({"release": "3.9.2", "puts": 2000, "offset": HELD - 1}, SUSPECTED),
    "D13: closed half way, 4.3": ({"release": "4.3.1", "puts": 2000, "offset": HELD - 1}, SUSPECTED),
    # a wipe says exactly-once, but is not the only reason for one
    "the guarantee is not known": ({"hidden": ("processing_guarantee",)}, SUSPECTED),
    "a windowed store beside it is never backed by a source topic": (
        {"stores": {"s": KEY_VALUE, "w": WINDOWED}}, SUSPECTED),
    "up to 2.5 stores are wiped one by one": ({"release": "2.5.1", "guarantee": "exactly_once"}, QUIET),
    **{f"restored, {x}": ({"release": x, "puts": HELD, "offset": HELD + 20}, QUIET)
       for x in ("3.7.2", "4.2.1", "4.3.1")},
    **{f"it claims what it restored, {x}": ({"release": x, "puts": 2000, "offset": 1999}, QUIET)
       for x in ("3.7.2", "4.2.1", "4.3.1")},
    **{f"it claims nothing, {x}": ({"release": x, "puts": 0, "offset": -4}, QUIET)
       for x in ("3.7.2", "4.2.1", "4.3.1")},
    "at-least-once wipes nothing": ({"guarantee": "at_least_once"}, QUIET),
    "moved away, and deleted by a cleaner": ({"cleaner": True}, QUIET),
    "a changelog's entry is the store's own": ({"release": "4.2.1", "topic": "app-s-changelog"}, QUIET),
    "a changelog's offset is the store's own": ({"release": "4.3.1", "topic": "app-s-changelog"}, QUIET),
    "up to 4.2 the entry names no store, and two have none": ({"stores": {"s": KEY_VALUE, "u": UNLOGGED}}, QUIET),
    "Kafka Streams purges repartition topics": ({"topic": "app-x-repartition"}, QUIET),
})  # fmt: skip
def test_closes(more, expected):
    run = emptied(**more)
    assert heard(ID, run) == expected
    missing = ("processing_guarantee",) if "hidden" in more else ()
    assert {(x.store, x.missing_facts) for x in run.findings(ID)} <= {("s", missing)}


def test_exposure_while_it_is_held():
    """3.8 to 4.2 write the claim at the end of the restoration: told at once, and gone when the records follow."""
    app = wiped()
    run = app.run
    claims(app, HELD - 1)
    assert play(run, "4 s").findings(ID) == []
    assert heard(ID, play(run, "3 s")) == SUSPECTED
    assert (run.only(ID).level, run.only(ID).status) == (Level.EXPOSURE, Status.OPEN)
    app.puts("0_0", HELD)
    claims(app, HELD)
    assert play(run, "1 s").only(ID).status is Status.RESOLVED


def test_4_3_claims_nothing_while_it_is_held():
    """4.3 puts the consumed offset beside every batch of a restoration; a kill there is wiped."""
    run = play(wiped("4.3.1").run, "puts 2000")
    claims(run.app, HELD - 1)
    assert play(run, "flushes, 1 s").findings(ID) == []
    assert play(run, "crash, 5 s").findings(ID) == []


def claimed(
    puts: int, held: int | None = 8000, *, offset: int = 79_999, old: int | None = 79_000
) -> TaskCase:
    """A store that was wiped at 10 s with `held` live entries, and claims `offset` with `puts`."""
    one = store([database(puts=puts, born=11, flushed=[(puts, 14)])], [session(11, 20, created=True)])
    one.past += (past(10, shape=Shape.OWNER_WALK, puts=80_000, entries_low=held, flushed=5, incarnation=0),)
    told = [(5, old), (15, offset)] if old is not None else [(15, offset)]
    facts = [
        replace(checkpoint(written, None), foreign=(OffsetEntry(TOPIC, 0, value),)) for written, value in told
    ]
    return case(task(one, checkpoints=facts))


CAME_BACK = "its live entries came back from a compacted changelog"
NOT_KNOWN = "what it claimed or held before the wipe is not known"


@table(ID, "one, expected", {
    # the old store was updated far more often than it has keys; each key comes back once
    "a compacted source topic": (claimed(8000), CAME_BACK),
    "four fifths of it": (claimed(6400), CAME_BACK),
    "less": (claimed(6399), SUSPECTED),
    "how many it held is not known": (claimed(100, None), NOT_KNOWN),
    "what it claimed before is not known": (claimed(100, old=None), NOT_KNOWN),
    "the offset from before the wipe": (claimed(100, offset=79_000), SUSPECTED),
    "a lower one is what was restored": (
        claimed(100, offset=78_999), "it claims less than before the wipe: what it restored"),
})  # fmt: skip
def test_limits(one, expected):
    assert said(ID, one) == expected
