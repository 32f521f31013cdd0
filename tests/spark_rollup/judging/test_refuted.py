"""What `verify` refutes is no damage: not in the count of copies, nor for a restart, whichever way one asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_rollup import audit, gate
from spark_rollup.cli import main
from spark_rollup.correlate import cloned_process, unprotected_task
from spark_rollup.report.restart_answer import UNVERIFIED
from spark_rollup.schemas import FINDING
from spark_rollup.spark import outputs
from tests.spark_rollup.judging.test_incidents import row
from tests.spark_rollup.support.fleet import Fleet

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def table(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """A table `findings`, before anything is known of incidents."""
    plain = [tuple((each | {"local_incidents": None})[name] for name in FINDING.names) for each in rows]
    return spark.createDataFrame(plain, FINDING)


SUSPICION = "store-shrank-pod-b-0_0"


@pytest.fixture
def refuting(spark: SparkSession, tmp_path: Path) -> Path:
    """An output of `verify`: the copy that the agent suspects is equal to its changelog."""
    equal = row(
        "e", 9, detector="state-equal", severity="info", status="resolved", level="event", pod="pod-b",
        pods=["pod-b"], refutes=[SUSPICION],
    )  # fmt: skip
    out = tmp_path / "verified"
    outputs.begin(out, outputs.VERIFY)
    table(spark, equal).write.parquet(str(out / "findings"))
    (out / outputs.MARKER).touch()
    return out


@pytest.fixture
def proving(spark: SparkSession, tmp_path: Path) -> Path:
    """An output of `verify`: one copy differs from its changelog, and of two others it is not known which is wrong."""
    wrong = row(
        "e", 9, detector="state-differs", mechanism="unequal-copies", pod="pod-b", pods=["pod-b"], task_id="0_1",
    )  # fmt: skip
    either = {
        **wrong,
        "id": "f" * 32,
        "detector": "replicas-differ",
        "task_id": "0_2",
        "pods": ["pod-a", "pod-b"],
    }
    over = {**wrong, "id": "d" * 32, "status": "resolved", "task_id": "0_3"}
    out = tmp_path / "verified"
    outputs.begin(out, outputs.VERIFY)
    table(spark, wrong, either, over).write.parquet(str(out / "findings"))
    (out / outputs.MARKER).touch()
    return out


def test_a_copy_that_is_proved_wrong_is_no_second_one(proving, tmp_path, monkeypatch):
    """Whatever its agent saw of it; without `verify` all four tasks have two copies."""
    fleet = Fleet("shop")
    pods = [fleet.pod(name) for name in ("pod-a", "pod-b")]
    pods[0].configures(1, "3.9.2", num_standby_replicas=1, probing_rebalance_interval_ms=1000)
    for pod in pods:
        for number in range(4):
            pod.holds(f"0_{number}", 5).measures(f"0_{number}", 800, offset=100, puts=100)
    source = fleet.write(tmp_path / "in")
    monkeypatch.setattr(audit, "RULES", (unprotected_task.RULE,))
    for given, expected in (([], []), (["--verified", str(proving)], ["0_1"])):
        out = tmp_path / f"out-{len(given)}"
        main(["audit", "--input", str(source), "--output", str(out), *given])
        found = [json.loads(line) for line in (out / "findings.jsonl").read_text().splitlines()]
        unprotected = [one for one in found if one["detector"] == "unprotected-task"]
        assert [(one["task_id"], one["explains"]) for one in unprotected] == [(x, []) for x in expected]
        assert all("pod-b (damaged)" in one["evidence"][0]["what"] for one in unprotected)
        assert all(one["next_action"].startswith("Do not restart pod-a before") for one in unprotected)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two pods with one standby; the agent of one suspects its copy."""
    fleet = Fleet("shop")
    pods = [fleet.pod(name) for name in ("pod-a", "pod-b")]
    pods[0].configures(1, "3.9.2", num_standby_replicas=1, probing_rebalance_interval_ms=1000)
    for pod in pods:
        pod.holds("0_0", 5).measures("0_0", 800, offset=100, puts=100, identity="life-1")
    pods[1].finds("store-shrank", "0_0", 50, store="s", identity="life-1", confidence="suspected")
    return fleet.write(tmp_path / "in")


def test_a_refuted_suspicion_is_no_damage(refuting, source, tmp_path, monkeypatch, capsys):
    """Events and the last audit give the same answer from the same facts, and say where they leave `verify` out."""
    for place in (audit, gate):
        monkeypatch.setattr(place, "RULES", (unprotected_task.RULE, cloned_process.RULE))
    for given, safe in (([], False), (["--verified", str(refuting)], True)):
        out = tmp_path / f"out-{safe}"
        assert main(["audit", "--input", str(source), "--output", str(out), *given]) == (0 if safe else 1)
        found = [json.loads(line) for line in (out / "findings.jsonl").read_text().splitlines()]
        unprotected = [one for one in found if one["detector"] == "unprotected-task"]
        assert [one["explains"] for one in unprotected] == ([] if safe else [[SUSPICION]])
        capsys.readouterr()
        told = []
        for asked in (["--from", str(out)], ["--input", str(source), *given]):
            code = main(["safe-to-restart", *asked, "--pod", "pod-a", "--max-age", "any"])
            assert code == (0 if safe else 1)
            told.append(capsys.readouterr().out.splitlines()[1:])
        assert told[0] == told[1]
        assert (UNVERIFIED in told[0]) == (not safe)
        assert f"pod-a: {'safe' if safe else 'keep'}: " in "\n".join(told[0])
