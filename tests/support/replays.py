"""Recordings replayed once per state of the agent: what each gives is kept below build/replays."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from agent.contract.events import Record
from agent.contract.finding import Finding
from agent.detectors import DETECTORS
from agent.engine.pipeline import Pipeline
from agent.inventory.settings import Setting, SettingsBook
from agent.judging.base import Detector
from agent.publish.rows import task_rows
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "replays"
QUIET_US = 20 * 60 * 1_000_000
"""How long the clock runs on after the last operation."""
STATES_KEPT = 3
"""States of the agent whose replays are kept, the newest: so many branches may take turns in a checkout."""


@dataclass(frozen=True, slots=True)
class Replay:
    findings: tuple[Finding, ...]  # all findings of the ledger at the end
    records: tuple[Record, ...]  # all that the agent reported
    faults: tuple[tuple[str, str], ...]  # (detector, error) of each detector that raised
    # (detector, severity) of every row that `statewarden_task_findings` had at any time
    shown: frozenset[tuple[str, str]]


def replayed(
    trace: Path,
    settings: Mapping[str, object],
    *,
    delay_ms: int = 0,
    detectors: tuple[Detector, ...] = DETECTORS,
) -> Replay:
    """Replay one pod with the settings that an operator would give, or take what an earlier replay gave.

    Only for the agent as it is in its files: what a test patches is not part of the key. `delay_ms`: longest time
    (seeded, random) until a notification is followed: a busy or throttled agent.
    """
    told = {key: str(value) for key, value in settings.items()}
    key = json.dumps([told, delay_ms, [x.meta.id for x in detectors]])
    name = hashlib.sha256(trace.read_bytes() + key.encode()).hexdigest()
    path = KEPT / _state() / f"{name}.pickle"
    if path.is_file():
        found = pickle.loads(path.read_bytes())
        assert isinstance(found, Replay)
        return found
    made = _replay(trace, told, delay_ms, detectors)
    _keep(made, path)
    return made


def _replay(trace: Path, told: Mapping[str, str], delay_ms: int, detectors: tuple[Detector, ...]) -> Replay:
    records: list[Record] = []
    faults: list[tuple[str, str]] = []
    shown: set[tuple[str, str]] = set()

    def emit(record: Record) -> None:
        records.append(record)
        rows, _ = task_rows(pipeline.ledger, record.observed_at_us)
        shown.update((detector, severity) for _, _, detector, severity in rows)

    disk = MemoryDisk()
    pipeline = Pipeline(
        disk,
        SettingsBook({key: Setting(value, "flag") for key, value in told.items()}),
        first_time_us(trace),
        emit,
        on_fault=lambda detector, error: faults.append((detector, repr(error))),
        detectors=detectors,
    )
    replay(trace, pipeline, disk, QUIET_US, delays=_delays(delay_ms))
    return Replay(tuple(pipeline.ledger.findings()), tuple(records), tuple(faults), frozenset(shown))


def _delays(delay_ms: int) -> Iterator[int] | None:
    if delay_ms == 0:
        return None
    dice = random.Random(delay_ms)
    return iter(lambda: dice.randint(1, delay_ms * 1_000), None)


@cache
def _state() -> str:
    """Name the state of the agent: its files, this one and the interpreter."""
    digest = hashlib.sha256(sys.version.encode())
    for path in [Path(__file__), *sorted((ROOT / "agent").rglob("*"))]:
        if path.is_file() and path.suffix != ".pyc":
            digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def _keep(made: Replay, path: Path) -> None:
    """Write beside and rename: other processes may look for the same."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        states = sorted(KEPT.iterdir(), key=lambda x: x.stat().st_mtime, reverse=True)
        for old in states[STATES_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
    os.replace(file.name, path)
