"""Start agents late, and restart them, at drawn moments of benign recordings. `make prove ARGS=restarted`.

Exit code 1: one of them says something critical. `python tests/evaluate/late.py SEED MOMENTS` draws others.
"""

from __future__ import annotations

import json
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.agent.engine.playing import Run, operations_of, sets_of  # noqa: E402 - path first
from tests.agent.home.test_restart_anywhere import restarted_run  # noqa: E402

TRACES = ROOT / "tests" / "data" / "traces"
AWAY = (0, 3, 10, 30, 100, 300)
"""How many operations an agent that is restarted misses."""


def started_late(scenario: str, pod: str, index: int) -> Run:
    """Play a recording to an agent that starts before one of its operations."""
    operations = operations_of(scenario, pod)
    run = Run(operations[index - 1].at_us, sets_of(scenario), before=operations[:index])
    for operation in operations[index:]:
        run.play(operation)
    run.rest()
    return run


def criticals(job: tuple[str, str, int, int | None]) -> set[str]:
    """List what was critical at any time; away: operations that are missed, None = the agent starts late."""
    scenario, pod, index, away = job
    if away is None:
        run = started_late(scenario, pod, index)
    else:
        run = restarted_run(scenario, pod, at=(index + 0.5) / len(operations_of(scenario, pod)), away=away)
    words = [x.body for x in run.records if x.body.get("severity") == "critical"]
    return {f"{scenario}, {pod}, {index}, away {away}: {x['detector']} {x.get('task_id')}" for x in words}


def main(seed: str = "1", moments: str = "12") -> int:
    """Draw moments of every pod of every benign recording."""
    dice, jobs = random.Random(seed), []
    for path in sorted(TRACES.glob("*/scenario.json")):
        told = json.loads(path.read_text("utf-8"))
        for pod in told["pods"] if told["expected"]["verdict"] == "benign" else ():
            last = len(operations_of(path.parent.name, pod["name"])) - 1
            for away in (None, *AWAY):
                count = int(moments) if away is None else -(-int(moments) // len(AWAY))
                drawn = (dice.randint(1, last) for _ in range(count))
                jobs += [(path.parent.name, pod["name"], index, away) for index in drawn]
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        found = sorted({x for each in pool.map(criticals, jobs, chunksize=4) for x in each})
    sys.stdout.writelines(f"{x}\n" for x in found)
    starts = sum(away is None for *_, away in jobs)
    sys.stdout.write(f"{starts} late starts, {len(jobs) - starts} restarts: {len(found)} critical\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
