"""No rule is quadratic: twice as much takes about twice as many steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of, tables
from tests.support.steps import steps_of


def handed_over(count: int) -> Fleet:
    """So many tasks change hands, each with a finding."""
    fleet = Fleet("tasks")
    pods = [fleet.pod(f"pod-{x}") for x in range(4)]
    for number in range(count):
        task, before, after = f"0_{number}", pods[number % 4], pods[(number + 1) % 4]
        before.holds(task, 5).measures(task, 70, puts=2000, identity=f"i{number}").releases(task, 100)
        before.finds("stale-eos-checkpoint", task, 120, store="s", identity=f"i{number}")
        after.holds(task, 130).writes_checkpoint(task, 300, offset=2500, puts=1500)
    return fleet


def short_of_copies(count: int) -> Fleet:
    """So many tasks lack the standby that was promised."""
    fleet = Fleet("short")
    pods = [fleet.pod(f"pod-{x}").configures(1, "3.9.1", num_standby_replicas=1) for x in range(3)]
    for number in range(count):
        task = f"0_{number}"
        pods[number % 3].holds(task, 5).measures(task, 60, puts=10, identity=f"i{number}").measures(task, 800)
    return fleet


def of_one_task(count: int) -> Fleet:
    """One task is read so often, and moves from pod to pod."""
    fleet = Fleet("task")
    pods = [fleet.pod(f"pod-{x}") for x in range(3)]
    for number in range(count):
        at, pod = 2 + number * 800 / count, pods[number % 3]
        pod.holds("0_0", at).writes_checkpoint("0_0", at + 0.1, offset=1000 + number, puts=1000 + number)
        pod.measures("0_0", at + 0.2, puts=1000 + number, identity="i").releases("0_0", at + 0.3)
    return fleet


def of_pods(count: int) -> Fleet:
    """So many pods hold a task each."""
    fleet = Fleet("pods")
    for number in range(count):
        pod, task = fleet.pod(f"pod-{number}"), f"0_{number}"
        pod.holds(task, 5 + number / 10).measures(task, 60, puts=10, identity=f"i{number}").releases(
            task, 400
        )
    return fleet


@pytest.mark.parametrize("fleet", [handed_over, short_of_copies, of_one_task, of_pods])
def test_twice_as_much(fleet: Callable[[int], Fleet]) -> None:
    """A loop over all in a loop over all would take four times as much."""
    once, twice = (_steps(fleet(count)) for count in (120, 240))
    assert twice <= 2.05 * once


def _steps(fleet: Fleet) -> int:
    events = events_of(fleet.lines())
    return steps_of(lambda: tables(events, at_us(HORIZON_S)))
