"""What the fleet must say about recorded scenarios: the one table that tests, proofs and the simulated fleet share."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path

from agent.cli import main as agent

Verdict = tuple[str, str, str | None, str]
"""Rule, task, pod (as the recording calls it), severity."""

SHORT = {"session_timeout_ms": 6000, "probing_rebalance_interval_ms": 1000}
"""The recordings last about a minute; their session timeout is 6 s."""

TABLES = ("findings", "timelines", "coverage", "pods", "churn", "restarts", "quarantine")
"""Of an audit, as far as they tell of the fleet."""

FOUR = tuple(f"0_{number}" for number in range(4))

EXPECTED: Mapping[str, set[Verdict]] = {
    "kafka-8187-stage1-2.2.1": {
        *(("missing-standby", task, "pod-a", "critical") for task in FOUR),
        *(("unprotected-task", task, None, "warning") for task in FOUR),
    },
    "kafka-8187-stage2-2.0.1": {
        (rule, task, "pod-a", "critical")
        for rule in ("resurrected-checkpoint", "diverged-replica", "missing-standby")
        for task in FOUR
    },
    "kafka-8187-stage2-eos-2.1.1": {
        (rule, "0_2", "pod-a", "critical") for rule in ("resurrected-checkpoint", "diverged-replica")
    },
    "torn-clean-2.3.1": {("resurrected-checkpoint", "0_1", "pod-a", "critical")},
    "torn-clean-3.9.2": {("resurrected-checkpoint", "0_0", "pod-a", "critical")},
    "torn-clean-half-2.4.1": {
        (rule, "1_2", "pod-a", "critical") for rule in ("resurrected-checkpoint", "diverged-replica")
    },
    "kafka-7672-eos": {("unrestored-task", "0_1", "pod-a", "critical")},
    "kafka-7672-gap": {("unrestored-task", "0_1", "pod-a", "critical")},
    "kafka-9891-2.5.0": {
        (rule, task, pod, "critical")
        for rule, pod in (("stale-eos-state", "pod-a"), ("diverged-replica", "pod-b"))
        for task in ("0_0", "0_1", "1_0")
    },
    "kafka-20685-4.1.2": {("stale-eos-state", "0_0", "pod-a", "critical")},
}
"""What the fleet must say at warning or above, all of it confirmed. Scenarios not listed: nothing."""

MORE: Mapping[str, set[Verdict]] = {
    **{
        f"kafka-20685-{what}": {("stale-eos-state", task, pod, "critical")}
        for task, pod, recordings in (
            ("0_0", "pod-b", ("promoted-3.8.1", "promoted-3.9.2")),
            ("0_0", "pod-a", ("promoted-4.1.2", "promoted-4.2.1", "standby-4.1.2", "standby-4.2.1")),
            ("0_1", "pod-a", ("standby-3.8.1", "standby-3.9.2")),
        )
        for what in recordings
    },
    "kafka-8187-stage1-mixed-2.1.1": {
        *(("missing-standby", task, "pod-a", "critical") for task in ("0_0", "0_1")),
        *(("unprotected-task", task, None, "warning") for task in ("0_0", "0_1")),
    },
    "kafka-7672-twin-2.1.0": {("unrestored-task", task, "pod-a", "critical") for task in ("0_1", "0_2")},
    "revived-table-4.2.2": {("unrestored-task", "1_0", "pod-a", "warning")},
    "revived-table-4.3.1": {("unrestored-task", "1_1", "pod-a", "warning")},
}
"""The same of recordings that only the test of all of them plays; some are as sure as the agent, not confirmed."""


def replayed(scenarios: Iterable[Path], events: Path) -> dict[str, str]:
    """Replay every pod of every scenario as an agent would have seen it; returns application -> scenario."""
    applications: dict[str, str] = {}
    for folder in scenarios:
        scenario = json.loads((folder / "scenario.json").read_text())
        applications[scenario["application_id"]] = folder.name
        settings = [f"{key}={value}" for key, value in {**scenario["settings"], **SHORT}.items()]
        words = [word for text in settings for word in ("--set", text)]
        for pod in scenario["pods"]:
            name = f"{folder.name}.{pod['name']}"
            arguments = ["replay", str(folder / pod["trace"]), "--pod", name, "--events", str(events), *words]
            with redirect_stdout(io.StringIO()):
                code = agent(arguments)
            assert code in (0, 1), f"replay of {name} ended with code {code}"
    return applications


def differing(left: Path, right: Path) -> list[str]:
    """Name the tables of two audits that are not the same, row by row."""
    return [table for table in TABLES if _rows(left / table) != _rows(right / table)]


def _rows(table: Path) -> list[str]:
    import duckdb  # only what `make setup-delivery` made has it

    return sorted(map(str, duckdb.sql(f"FROM read_parquet('{table}/**/*.parquet')").fetchall()))
