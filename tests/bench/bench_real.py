"""What users pay: 100 tasks that do what tasks of a real application did; beside it the stress. In virtual time."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.bench.measure import run_child
from tests.bench.report import Measured, Options, compared
from tests.bench.versions import ROOT, Version

LOADS = {
    "realistic load": ("real", "100", "60"),
    "stress": ("stress", "1000", "10"),
    "stress with spool": ("stress", "1000", "10", "spool"),
}


def run(options: Options) -> list[Measured]:
    """Play each load to each version in turn."""
    told = {
        load: options.each(lambda version, words=words: drive(version, *words))  # type: ignore[misc]
        for load, words in LOADS.items()
    }
    calls = {
        version.name: [drive(version, *LOADS["realistic load"], "calls")["calls"]]
        for version in options.versions
    }
    lost = sum(x["last_offsets"] != x["written_offsets"] for one in told.values() for x in one["after"])
    real, *stress = told
    return [
        compared(f"{real}, % of a core", told[real], lambda x: x["share_percent"], "real"),
        *(
            compared(f"{load}, us per notification", told[load], lambda x: x["us_per_notification"])
            for load in stress
        ),
        compared(f"{real}, Python calls", calls, float, digits=0),
        Measured("lost in virtual time", [lost], goal="real-lost", digits=0),
    ]


def drive(version: Version, *arguments: str) -> dict[str, Any]:
    """Run this checkout's harness on a version of the agent."""
    before, os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", ""), str(version.root)
    try:
        done = run_child(version.python, str(ROOT / "tests" / "bench" / "virtual.py"), *arguments)
    finally:
        os.environ["PYTHONPATH"] = before
    told: dict[str, Any] = json.loads(done.output)
    return told
