"""What is kept of days that are over says what all of their events say."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from unittest.mock import patch

import pytest

from agent.contract.events import Severity
from spark_rollup.correlate import RULES
from spark_rollup.fleet import keep, sizes
from spark_rollup.fleet.beats import beats, torn
from spark_rollup.fleet.gaps import gaps_of
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import TIMELINES
from tests.spark_rollup.support import over_days
from tests.spark_rollup.support.fleet import Fleet, at_us
from tests.spark_rollup.support.plain import events_of, events_of_data, tables, texts
from tests.spark_rollup.support.stretched import DAY_US
from tests.support.recorded_fleet import EXPECTED

FLEETS = int(os.environ.get("STATEWARDEN_CARRY_FLEETS", "100"))

QUICK = ("kafka-8187-stage1-2.2.1", "kafka-20685-4.1.2", "benign-move-3.9.2", over_days.RETURN)
"""Stretched over four days in every run; the others only by `make prove`."""

SUSPECTED = {"kafka-20685-4.1.2": "suspected"}
"""Recordings that end before the agent can be sure: too little was flushed after the restart."""


def audited(told: over_days.Told) -> Mapping[str, list[Row]]:
    """Audit events as they are, and with what is kept of each number of days; every table must be the same.

    But for the timelines of tasks in question, of which less is known: what is left of them must be
    true, which is what some reading says (equal ones are folded: which of them are left depends on what is kept).
    """
    events = events_of_data(told)
    as_of_us = max(x.observed_at_us for x in events)
    whole = tables(events, as_of_us, RULES)
    for day in sorted({x.observed_at_us // DAY_US for x in events})[1:]:
        kept, heard = over_days.kept_of(events, day * DAY_US)
        read = [x for x in events if x.observed_at_us >= day * DAY_US]
        spared = tables(read, as_of_us, RULES, kept, heard)
        assert whole.keys() == spared.keys()
        for name in (x for x in whole if whole[x] != spared[x]):
            more, less = texts(whole[name]), texts(spared[name])
            assert name == TIMELINES or more == less, (name, day)
            if less - more:
                with patch.object(sizes, "folded", lambda readings, _: list(readings)):
                    assert less <= texts(tables(events, as_of_us, RULES)[TIMELINES]), (name, day)
    return whole


@pytest.mark.slow
def test_stories_of_all_rules():
    """With the midnight anywhere in them; nothing is missing and nothing is made up."""
    found = {row["detector"] for _, told in over_days.stories() for row in audited(told)["findings"]}
    assert found >= {rule.meta.id for rule in RULES}


def test_random_fleets():
    """Whatever happens before or after midnight, on one day or on three."""
    found = {row["detector"] for _, told in over_days.fleets(FLEETS) for row in audited(told)["findings"]}
    assert {"resurrected-checkpoint", "unrestored-task", "stale-eos-state", "missing-standby"} <= found


@pytest.mark.parametrize("name", QUICK)
def test_a_recording_over_four_days(repository, tmp_path, name):
    """Bugs that began three days before are found with the same id and confidence."""
    rows = audited(over_days.recording(repository / "tests" / "data" / "traces" / name, tmp_path))["findings"]
    found = {
        (row["detector"], row["task_id"], row["confidence"]) for row in rows if row["severity"] == "critical"
    }
    if name == over_days.RETURN:
        assert {("resurrected-checkpoint", f"0_{number}", "confirmed") for number in range(4)} <= found
        return
    assert {one for one in found if one[0] in {rule.meta.id for rule in RULES}} == {
        (rule, task, SUSPECTED.get(name, "confirmed"))
        for rule, task, _, loud in EXPECTED.get(name, ())
        if loud == Severity.CRITICAL.value
    }


@pytest.mark.slow
@pytest.mark.heavy
def test_every_recording(repository, tmp_path):
    """All recordings with more than one pod."""
    for path in sorted((repository / "tests" / "data" / "traces").glob("*/scenario.json")):
        name = path.parent.name
        if name not in QUICK and (len(json.loads(path.read_text())["pods"]) > 1 or name in EXPECTED):
            audited(over_days.recording(path.parent, tmp_path / name))


def test_what_comes_again_is_kept_once_in_a_slot():
    """Of a day without a change little more than a tenth; what is kept is of every slot."""
    fleet = Fleet("shop")
    pod = fleet.pod("pod-a").holds("0_0", 5)
    for minute in range(1, 1300):
        pod.measures("0_0", 60 * minute, puts=100 * minute, offset=90 * minute, entries_low=80 * minute)
    events = events_of(fleet.lines())
    own = [x for x in events if x.task_id is not None]
    ids = keep.of_task(own)
    chosen = [x for x in own if x.id in ids]
    slots = {x.at_us // sizes.SLOT_US for x in own}
    assert {x.at_us // sizes.SLOT_US for x in chosen} == slots
    assert len(chosen) <= len(slots) + 4


def test_a_hole_a_pause_and_an_end_part_runs():
    """As they part slots: what is lost, when nothing was said, and what the agent announced is not joined."""
    fleet = Fleet("shop")
    fleet.pod("pod-a", ends_s=300).loses(4, 5)
    fleet.pod("pod-a", begins_s=500, boot="boot-2")
    events = [x for x in events_of(fleet.lines()) if not at_us(600) < x.observed_at_us < at_us(800)]
    counted = beats(events)
    found = keep.runs(counted, torn(events, counted))
    assert all(x.is_whole for x in found)
    assert sum(x.events for x in found) == len(events)
    assert [(x.boot_id, x.first, x.last) for x in found] == [
        ("boot-1", 1, 3), ("boot-1", 6, 11), ("boot-2", 1, 4), ("boot-2", 11, 15),
    ]  # fmt: skip
    for as_of_us in (at_us(900), at_us(2000)):
        gaps = [gaps_of(known, stretches, events, as_of_us, None) for known, stretches in (
            (counted, list(torn(events, counted))), (found, []),
        )]  # fmt: skip
        assert gaps[0] == gaps[1]
