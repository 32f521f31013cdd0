"""Times that were not watched: the newest are kept apart, and what is older becomes one."""

from __future__ import annotations

from spark_rollup.fleet.rows import Unwatched
from spark_rollup.fleet.thin import of_pods
from spark_rollup.history import carry
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of


def test_old_times_become_one_from_first_to_last():
    """Rather doubt than error; what another application was blind for stays apart, and what lasts is left out."""
    fleet = Fleet("shop")
    pod = fleet.pod("pod-a").is_blind(700, None)
    for number in range(carry.ISLANDS + 5):
        pod.is_blind(10 * number, 10 * number + 1)
    pod.is_blind(5, 6, application_id="orders", task_id="0_0")
    ((where, given),) = of_pods(events_of(fleet.lines())).items()
    given.unwatched.append(Unwatched("pod-a", None, None, at_us(-100), at_us(-90)))
    rows = list(carry._islands(at_us(HORIZON_S), where, given))
    whole = sorted(
        (row["from_us"], row["until_us"])
        for row in rows
        if row["namespace"] == "shop" and row["task_id"] is None
    )
    assert len(whole) == carry.ISLANDS
    assert whole[0] == (at_us(-100), at_us(10 * 5 + 1))
    assert whole[1:] == [(at_us(10 * n), at_us(10 * n + 1)) for n in range(6, carry.ISLANDS + 5)]
    (one,) = [row for row in rows if row["task_id"] == "0_0"]
    assert (one["application_id"], one["from_us"]) == ("orders", at_us(5))
