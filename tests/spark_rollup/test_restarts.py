"""May this pod be restarted: by task, and on the terminal."""

from __future__ import annotations

import pytest

from spark_rollup.answers import _all_pods, _one_pod
from tests.spark_rollup.conftest import Audited, Row
from tests.spark_rollup.support.fleet import Fleet, Pod, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def two_copies(fleet: Fleet, release: str = "3.9.2", **settings: object) -> tuple[Pod, Pod]:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, release, **({"num_standby_replicas": 1} | settings))
    for pod in (a, b):
        pod.holds("0_0", 5).measures("0_0", 800, offset=100, puts=100, bytes=5000)
    return a, b


@story
def a_standby_is_there(fleet: Fleet) -> None:
    two_copies(fleet, processing_guarantee="at_least_once")


@story
def exposed_to_20685(fleet: Fleet) -> None:
    a, _ = two_copies(fleet, "4.1.2", processing_guarantee="exactly_once_v2")
    a.finds("stale-eos-checkpoint", "0_0", 50, level="exposure", severity="warning")


@story
def one_copy(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").configures(1, "4.3.1", processing_guarantee="exactly_once_v2")
    a.holds("0_0", 5).measures("0_0", 800, offset=100, puts=100, bytes=5000)


@story
def the_other_copy_is_damaged(fleet: Fleet) -> None:
    two_copies(fleet)[1].finds("resurrected-checkpoint", "0_0", 100)


@story
def the_other_pod_is_silent(fleet: Fleet) -> None:
    two_copies(fleet)
    quiet = fleet.pods[1]
    quiet.ends_s, quiet.announces_end = 700, False
    quiet.records = [record for record in quiet.records if "stores" not in record.body]


def answer(audited: Audited, name: str, pod: str = "pod-a") -> Row:
    """Take the answer for the only task of a pod."""
    (row,) = [row for row in audited.rows("restarts", name) if row["pod"] == pod]
    return row


@pytest.mark.parametrize(
    ("name", "expected", "unclean"),
    [
        (a_standby_is_there, "safe", "records since the last checkpoint are replayed onto the store"),
        (exposed_to_20685, "clean-stop-only", "uncommitted records stay in the store"),
        (one_copy, "restore", "may be deleted before it comes back (KAFKA-20805)"),
        (the_other_copy_is_damaged, "keep", "not known"),
        (the_other_pod_is_silent, "unknown", "not known"),
    ],
)
def test_the_answer_says_who_else_has_the_task(audited, name, expected, unclean):
    """One answer per held copy, with what a kill would do to it."""
    row = answer(audited, name)
    assert row["answer"] == expected
    assert unclean in str(row["unclean_stop"])


def test_the_cost_is_that_of_the_copy(audited):
    """Without a copy elsewhere the bytes to restore are told."""
    assert answer(audited, one_copy)["restore_bytes"] == 5000
    assert answer(audited, a_standby_is_there)["restore_bytes"] is None


def test_the_terminal_names_the_worst_task_first():
    """A pod's answer is the worst of its tasks'; a pod without tasks is safe."""
    base = {"application_id": "orders", "ill_elsewhere": [], "unclean_stop": "wiped", "pod": "pod-a"}
    rows: list[Row] = [
        {**base, "task_id": "0_0", "answer": "safe", "healthy_elsewhere": ["pod-b"], "restore_bytes": None},
        {**base, "task_id": "0_1", "answer": "restore", "healthy_elsewhere": [], "restore_bytes": 3 << 20},
    ]
    assert _one_pod("pod-a", rows)[0].startswith("pod-a: restore: no copy elsewhere")
    assert any("restoring costs 3 MiB" in line for line in _one_pod("pod-a", rows))
    assert _one_pod("pod-z", []) == ["pod-z: safe: it holds no task"]
    assert [line.split()[:2] for line in _all_pods(rows, ["pod-a", "pod-b"])[1:]] == [
        ["pod-a", "restore"],
        ["pod-b", "safe"],
    ]
