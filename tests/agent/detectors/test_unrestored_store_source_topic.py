"""Detector `unrestored-store`, of stores whose changelog is their source topic (KAFKA-20416, D13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Shape
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario import KEY_VALUE, UNLOGGED, WINDOWED, App, Scenario
from tests.support.scenario_case import case, checkpoint, database, past, session, severities, store, task

ID = "unrestored-store"
EOS = "exactly_once_v2"
TOPIC = "in-table"
HELD = 8000
"""Records, each of another key, that the store had taken before its wipe."""


def claims(run: Scenario, app: App, offset: int, *, topic: str = TOPIC) -> None:
    """Write the entry of the source topic: into `.checkpoint`, or from 4.3 on into the store."""
    if not app.habits.offsets_in_store:
        app.flushes("0_0")
        app.write_checkpoint("0_0", {(topic, 0): offset})
        return
    run.task("0_0").databases["s", ""].put_offset(f"{topic}-0", offset)


def ends_clean(run: Scenario, app: App, offset: int, *, topic: str = TOPIC) -> None:
    """Close the task clean, claiming `offset`."""
    claims(run, app, offset, topic=topic)
    app.closes("0_0")
    run.wait(2)


def filled(
    release: str = "4.1.2", guarantee: str = EOS, *, topic: str = TOPIC, **more
) -> tuple[Scenario, App]:
    """Filled by one process, closed clean; the next one goes on with it."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", HELD)
    ends_clean(run, app, HELD - 1, topic=topic)
    app.ends()
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    run.wait(5)
    return run, app


def wiped(release: str = "4.1.2", guarantee: str = EOS, **more) -> tuple[Scenario, App]:
    """Filled, opened again, and wiped by its owner."""
    run, app = filled(release, guarantee, **more)
    app.wipes("0_0")
    run.wait(1)
    return run, app


def emptied(release: str = "4.1.2", guarantee: str = EOS, *, puts: int = 300, **more) -> Scenario:
    """Wiped, declared restored while empty; it took `puts` records more and was closed clean."""
    run, app = wiped(release, guarantee, **more)
    app.puts("0_0", puts)
    ends_clean(run, app, HELD + puts - 1)
    return run


@pytest.mark.parametrize("release", ["2.8.2", "3.4.1", "3.7.2", "3.9.2", "4.2.1", "4.3.1"])
def test_used_without_its_restoration(release):
    """The offset goes on from the old one, and only what came since was put: suspected, damage."""
    finding = emptied(release).only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
    )
    assert (finding.store, finding.affected) == ("s", Affected.YES)
    assert finding.upstream == ("KAFKA-20416", "offset of a revived task (no upstream issue)")
    times = [step.at_us for step in finding.evidence]
    assert times == sorted(times)


def test_releases_that_forget_what_was_consumed():
    """2.7 writes no consumed offset at such a close: only the empty restoration is left as the reason."""
    assert emptied("2.7.2").only(ID).upstream == ("KAFKA-20416",)


def test_releases_before_the_wipe_of_directories():
    """Up to 2.5 offset limits came from elsewhere, and stores are wiped one by one."""
    assert emptied("2.5.1", "exactly_once").findings(ID) == []


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_closed_half_way(release):
    """D13: a revived task that is closed while it restores claims what it had consumed before."""
    run, app = wiped(release)
    app.puts("0_0", 2000)
    ends_clean(run, app, HELD - 1)
    assert run.only(ID).confidence is Confidence.SUSPECTED


def test_clears_with_the_store():
    """It ends with the store that lacks its records."""
    run = emptied()
    app = run.start()
    app.opens("0_0")
    app.wipes("0_0")
    app.puts("0_0", HELD + 300)
    ends_clean(run, app, HELD + 299)
    assert run.only(ID).status is Status.RESOLVED


def test_exposure_while_it_is_held():
    """3.8 to 4.2 write the claim at the end of the restoration: told at once, and gone when the records follow."""
    run, app = wiped()
    claims(run, app, HELD - 1)
    run.wait(4)
    assert run.findings(ID) == []
    run.wait(3)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Status.OPEN,
    )
    app.puts("0_0", HELD)
    claims(run, app, HELD)
    run.wait(1)
    assert run.only(ID).status is Status.RESOLVED


def test_4_3_claims_nothing_while_it_is_held():
    """4.3 puts the consumed offset beside every batch of a restoration; a kill there is wiped."""
    run, app = wiped("4.3.1")
    app.puts("0_0", 2000)
    claims(run, app, HELD - 1)
    app.flushes("0_0")
    run.wait(1)
    assert run.findings(ID) == []
    app.crash()
    run.wait(5)
    assert run.findings(ID) == []


def test_unknown_guarantee():
    """A wipe says exactly-once, but is not the only reason for one: the missing setting is named."""
    finding = emptied(hidden=("processing_guarantee",)).only(ID)
    assert finding.missing_facts == ("processing_guarantee",)


# -- twins ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["3.7.2", "4.2.1", "4.3.1"])
def test_a_restoration_that_finished(release):
    """Everything was put again before the offset was claimed."""
    run, app = wiped(release)
    app.puts("0_0", HELD)
    ends_clean(run, app, HELD + 20)
    assert run.findings(ID) == []


def claimed(*, puts: int, held: int | None, offset: int = 79_999, old: int | None = 79_000) -> list[Severity]:
    """What is said of a store that was wiped at 10 s with `held` live entries, and claims `offset` with `puts`."""
    one = store([database(puts=puts, born=11, flushed=[(puts, 14)])], [session(11, 20, created=True)])
    one.past += (past(10, shape=Shape.OWNER_WALK, puts=80_000, entries_low=held, flushed=5),)
    told = [(5, old), (15, offset)] if old is not None else [(15, offset)]
    facts = [
        replace(checkpoint(written, None), foreign=(OffsetEntry(TOPIC, 0, value),)) for written, value in told
    ]
    return severities(ID, case(task(one, checkpoints=facts)))


def test_a_compacted_source_topic() -> None:
    """The old store was updated far more often than it has keys; each key comes back once."""
    assert claimed(puts=8000, held=8000) == []
    assert claimed(puts=6400, held=8000) == []
    assert claimed(puts=6399, held=8000) == [Severity.WARNING]


def test_what_the_store_held_must_be_known() -> None:
    """Without the number of live entries, or an offset from before, there is nothing to compare with."""
    assert claimed(puts=100, held=None) == []
    assert claimed(puts=100, held=8000, old=None) == []


def test_a_lower_offset_is_what_was_restored() -> None:
    """The offset from before the wipe, or a later one: nothing else is claimed for records that are not there."""
    assert claimed(puts=100, held=8000, offset=79_000) == [Severity.WARNING]
    assert claimed(puts=100, held=8000, offset=78_999) == []


@pytest.mark.parametrize("release", ["3.7.2", "4.2.1", "4.3.1"])
def test_a_restoration_that_ended_half_way(release):
    """A task that was never revived claims what it restored, below the old offset; an unknown offset claims nothing."""
    run, app = wiped(release)
    app.puts("0_0", 2000)
    ends_clean(run, app, 1999)
    assert run.findings(ID) == []
    run, app = wiped(release)
    ends_clean(run, app, -4)
    assert run.findings(ID) == []


def test_an_application_that_begins_again():
    """After a reset of the group the task consumes its topic from the start: the offset comes with the puts."""
    run, app = wiped()
    claims(run, app, -4)
    app.puts("0_0", HELD + 500)
    ends_clean(run, app, HELD + 499)
    assert run.findings(ID) == []


def test_at_least_once():
    """At-least-once wipes nothing."""
    assert emptied(guarantee="at_least_once").findings(ID) == []


def test_deleted_by_a_cleaner():
    """A directory that nobody held was moved away: what the next owner does here has another detector."""
    run, app = filled()
    ends_clean(run, app, HELD - 1)
    app.deletes_directory("0_0")
    run.wait(1)
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 300)
    ends_clean(run, app, HELD + 299)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["4.2.1", "4.3.1"])
def test_a_store_with_a_changelog(release):
    """A changelog's entry is the store's own: the fix of KAFKA-16017 holds there."""
    run = Scenario(release, EOS)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", HELD)
    app.stops({"0_0": HELD - 1})
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    run.wait(5)
    app.wipes("0_0")
    run.wait(1)
    app.puts("0_0", 300)
    app.closes("0_0", HELD + 299)
    run.wait(2)
    assert run.findings(ID) == []


def test_whose_entry_it_is_must_be_plain():
    """Up to 4.2 the entry names no store: with two that have none, or two topics, nothing is said."""
    assert emptied(stores={"s": KEY_VALUE, "u": UNLOGGED}).findings(ID) == []
    run, app = wiped()
    app.puts("0_0", 300)
    app.flushes("0_0")
    app.write_checkpoint("0_0", {(TOPIC, 0): HELD + 299, ("in-other", 0): 20})
    app.closes("0_0")
    run.wait(2)
    assert run.findings(ID) == []


def test_windowed_store_beside_it():
    """A windowed store is never backed by a source topic, so it does not stand in the way."""
    assert emptied(stores={"s": KEY_VALUE, "w": WINDOWED}).only(ID).store == "s"


def test_repartition_topics_are_no_changelogs():
    """Kafka Streams purges them."""
    run, app = filled(topic="app-x-repartition")
    app.wipes("0_0")
    run.wait(1)
    app.puts("0_0", 300)
    ends_clean(run, app, HELD + 299, topic="app-x-repartition")
    assert run.findings(ID) == []
