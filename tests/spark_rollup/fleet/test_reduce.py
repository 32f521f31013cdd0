"""In whatever order events come, the same is said of them; and no rule asks every task about every other one."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from spark_rollup.correlate import RULES
from spark_rollup.fleet.application import Application
from spark_rollup.fleet.judge import judge
from spark_rollup.fleet.questioned import is_crowded
from spark_rollup.fleet.rows import Hold, Life, Settings
from tests.spark_rollup.support.drawn import drawn
from tests.spark_rollup.support.fleet import HORIZON_S, MORE, at_us
from tests.spark_rollup.support.plain import events_of, tables, texts

MORE.append(drawn)


def test_the_order_of_events_says_nothing():
    """Files are read in any; the same segment may come twice."""
    lines = [line for fleet in drawn()[:40] for line in fleet.lines()]
    expected = tables(events_of(lines), at_us(HORIZON_S))
    mixed = tables(events_of(Random(7).sample([*lines, *lines], 2 * len(lines))), at_us(HORIZON_S))
    for name in expected:
        assert texts(expected[name]) == texts(mixed[name]), name


def test_more_than_are_promised_hold_a_task_through():
    """By one sort: as it is found pair by pair."""
    dice = Random(3)
    for _ in range(300):
        holds = []
        for _ in range(dice.randint(1, 7)):
            begin = dice.randint(0, 20)
            end = begin + dice.randint(0, 12)
            holds.append(Hold("0_0", f"pod-{dice.randint(0, 3)}", begin, end, lasting=False, cleaner=False))
        for promised, session in ((1, 3), (2, 0), (2, 4)):
            assert is_crowded(holds, promised, session) == _crowded(holds, promised, session)


def _crowded(holds: list[Hold], promised: int, session: int) -> bool:
    for one in holds:
        for other in holds:
            begin, end = max(one.from_us, other.from_us), min(one.to_us, other.to_us)
            through = {x.pod for x in holds if x.from_us <= begin and x.to_us >= end}
            if one.pod < other.pod and end - begin > session and len(through) > promised:
                return True
    return False


@pytest.mark.slow  # it takes ten seconds; a loop over all tasks for each task takes minutes
def test_twenty_thousand_tasks_are_short_at_once():
    """A rolling restart of a large application: no rule asks every task about every other one."""
    tasks, minute = 20_000, 60_000_000
    app = Application("shop", "orders", 60 * minute, 0, {})
    app.settings = Settings(1, "at_least_once", None, (2, 2, 1), (2, 2, 1), 10_000, 0)
    app.lives = [Life(f"pod-{number}", 0, 60 * minute) for number in range(200)]
    for number in range(tasks):
        task, pod = f"{number % 7}_{number // 7}", f"pod-{number % 200}"
        left = 5 * minute + number
        app.task(task).holds = [
            Hold(task, pod, number, 60 * minute, lasting=True, cleaner=False),
            Hold(task, f"pod-{(number + 1) % 200}", number, left, lasting=False, cleaner=False),
        ]
    found = Counter(row["detector"] for table, row in judge(app, RULES) if table == "findings")
    assert found["missing-standby"] == tasks
