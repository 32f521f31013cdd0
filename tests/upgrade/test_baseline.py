"""The baseline of an older release is used: all that it knew is known, and its findings have their incidents."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent.config import load_config
from agent.contract.events import Kind, Record, Severity
from agent.engine.pipeline import Pipeline
from agent.findings.finding import Finding
from agent.home.baseline import BaselineKeeper, Remembered, resume, understand
from agent.home.baseline_file import NAME, BaselineFile
from agent.inventory.model import Application, Task
from agent.inventory.portable import from_plain, to_plain
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from tests.upgrade.inside import FACTS, REMEMBERED

RENAMED = {"begun_us": "started_us"}
GONE = frozenset({"wiped_us", "ever_filled"})
"""Of `wipe-storm` alone, which is gone."""
KINDS = {"task": Task, "application": Application, "finding": Finding}
QUIET_US = 1_200_000_000
AWAY_US = 60_000_000


def all_baselines(unpacked: Callable[[str], Path]) -> list[Path]:
    """List the folders with a baseline: after recordings, and of the agent that left the spool."""
    return [*sorted(unpacked("baselines").iterdir()), unpacked("spool") / "home"]


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Read a baseline's lines as they are."""
    return [json.loads(line) for line in gzip.decompress((folder / NAME).read_bytes()).splitlines()]


def lost(before: object, after: object, path: str = "") -> Iterator[str]:
    """List what is not there, or not the same."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            name_now = RENAMED.get(name, name)
            if name in GONE:
                continue
            if name_now not in after:
                yield f"{path}.{name}"
            else:
                yield from lost(value, after[name_now], f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from lost(one, other, f"{path}[]")
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"


def test_it_is_accepted_and_nothing_of_it_is_lost(unpacked: Callable[[str], Path]) -> None:
    """What was written is written again, renamed or not."""
    for folder in all_baselines(unpacked):
        lines = lines_of(folder)
        state_dir = lines[0]["state_dir"]
        found = BaselineKeeper(BaselineFile(folder), pipeline(MemoryDisk(), 0), state_dir).load()
        assert isinstance(found, Remembered), found
        assert (folder / NAME).exists()
        assert found.findings
        for line in lines:
            for key in KINDS.keys() & line.keys():
                again = json.loads(json.dumps(to_plain(from_plain(KINDS[key], line[key]))))
                assert list(lost(line[key], again)) == []


def pipeline(disk: MemoryDisk, at_us: int, records: list[Record] | None = None) -> Pipeline:
    """Make a pipeline with the settings that the older one had."""
    config = load_config(sets=[f"{key}={value}" for key, value in FACTS.items()])
    return Pipeline(disk, config.applications, at_us, (records if records is not None else []).append)


def test_a_restart_into_this_release_raises_nothing_and_loses_nothing(
    unpacked: Callable[[str], Path], repository: Path
) -> None:
    """Same disk, older memory: no finding of damage that watching without a break does not have, and none forgotten."""
    for name in ("deleted", "wiped"):
        trace = repository / "tests" / "data" / "traces" / REMEMBERED[name]
        disk, folder = MemoryDisk(), unpacked("baselines") / name
        watching = pipeline(disk, first_time_us(trace))
        replay(trace, watching, disk, QUIET_US)
        (until_us,) = {line["at_us"] for line in lines_of(folder) if "at_us" in line}
        records: list[Record] = []
        after = pipeline(disk, until_us + AWAY_US, records)
        resume(BaselineKeeper(BaselineFile(folder), after, "/state"), after, until_us + AWAY_US)
        after.scan(until_us + AWAY_US)
        while after.next_us() < until_us + QUIET_US:
            after.tick(after.next_us())
        assert loud(after) <= loud(watching) | of_then(folder)
        assert {key for key in of_then(folder) if key[1] == "critical"} <= loud(after)
        findings = [record.body for record in records if record.kind is Kind.FINDING]
        assert all(row["incident_id"] and row["mechanism"] for row in findings)
        assert all(finding.incident_id and finding.mechanism for finding in after.ledger.findings())


def loud(run: Pipeline) -> set[tuple[str, str, str | None]]:
    """Name what is warned of."""
    return {
        (x.detector, x.severity.value, x.task_id)
        for x in run.ledger.open_findings()
        if x.severity is not Severity.INFO
    }


def of_then(folder: Path) -> set[tuple[str, str, str | None]]:
    """Name what was open when the older agent ended."""
    found = understand(iter(lines_of(folder)), "/state", 0).findings
    return {(x.detector, x.severity.value, x.task_id) for _, _, x in found if x.resolved_at_us is None}
