"""Replay recordings as on a polled volume: no notification, and a look every few seconds. `make prove ARGS=polled`.

Exit code 1: an agent that saw less is surer. Nothing may be `critical, confirmed` that is not with notifications.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from agent.contract.events import Confidence, Severity  # noqa: E402 - the repository goes on the path first
from agent.contract.finding import Finding  # noqa: E402
from agent.engine.pipeline import Pipeline  # noqa: E402
from agent.inventory.settings import Setting, SettingsBook  # noqa: E402
from agent.lookout.walk import Pace, Reconciler  # noqa: E402
from agent.replay.memory_disk import MemoryDisk  # noqa: E402
from agent.replay.run import first_time_us  # noqa: E402
from agent.replay.trace import read_trace  # noqa: E402
from tests.support.replays import QUIET_US, replayed  # noqa: E402

TRACES = ROOT / "tests" / "data" / "traces"
UNBOUNDED = Pace(5.0, 1.0, float("inf"))
"""The distance between two rounds of `agent.lookout.walk.POLLING`; a round takes no time."""
PHASES_US = (300_000, 1_900_000, 3_600_000)
"""When the first look is: the recordings are on no agent's clock."""


def polled(trace: Path, settings: dict[str, object], first_us: int) -> list[Finding]:
    """Replay one pod without notifications; `first_us`: when the first round begins after the start."""
    disk = MemoryDisk()
    book = SettingsBook({key: Setting(str(value), "flag") for key, value in settings.items()})
    now_us = first_time_us(trace)
    pipeline = Pipeline(disk, book, now_us, lambda record: None)
    walk = Reconciler(pipeline, disk, UNBOUNDED, lambda: now_us / 1e6)
    look_us = now_us + first_us
    pipeline.scan(now_us)

    def run_until(until_us: int) -> None:
        nonlocal now_us, look_us
        while look_us < until_us:
            pipeline.run_until(look_us)
            now_us = look_us
            walk.step(now_us)
            look_us = max(now_us + 1, round(walk.next_s(now_us / 1e6) * 1e6))
        pipeline.run_until(until_us)

    ended_us = now_us
    for operation in read_trace(trace):
        run_until(operation.at_us)
        ended_us = max(ended_us, operation.at_us)
        disk.apply(operation, show_process=False)
    run_until(ended_us + QUIET_US)
    return pipeline.ledger.findings()


def surer(folder: Path) -> list[str]:
    """List what is confirmed without notifications, and not with them."""
    scenario = json.loads((folder / "scenario.json").read_text("utf-8"))
    found = []
    for pod in scenario["pods"]:
        trace, settings = folder / pod["trace"], scenario["settings"]
        known = {_key(x) for x in replayed(trace, settings).findings if _is_sure(x)}
        for first_us in PHASES_US:
            sure = [x for x in polled(trace, settings, first_us) if _is_sure(x) and _key(x) not in known]
            found += [
                f"{folder.name}, {pod['name']}, {first_us / 1e6} s: {x.detector}: {x.summary}" for x in sure
            ]
    return found


def _key(finding: Finding) -> tuple[str, str | None, str | None]:
    return finding.detector, finding.task_id, finding.store


def _is_sure(finding: Finding) -> bool:
    return (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)


def main() -> int:
    """Replay all recordings."""
    folders = sorted(x.parent for x in TRACES.glob("*/scenario.json"))
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        found = [row for rows in pool.map(surer, folders) for row in rows]
    sys.stdout.writelines(f"{row}\n" for row in found)
    sys.stdout.write(f"{len(folders)} recordings, {len(PHASES_US)} phases each: {len(found)} surer\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
