"""What users pay: 100 tasks that do what tasks of a real application did, in virtual time."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.bench.measure import run_child
from tests.bench.report import Measured, Options, compared
from tests.bench.versions import ROOT, Version

LOAD = ("100", "60")
"""Tasks, seconds."""


def run(options: Options) -> list[Measured]:
    """Play the load to each version in turn."""
    told = options.each(lambda version: drive(version, *LOAD))
    calls = {version.name: [drive(version, *LOAD, "calls")["calls"]] for version in options.versions}
    lost = sum(x["last_offsets"] != x["written_offsets"] for x in told["after"])
    return [
        compared("realistic load, % of a core", told, lambda x: x["share_percent"], "real"),
        compared("realistic load, Python calls", calls, float, digits=0),
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
