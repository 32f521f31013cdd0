"""The rollup killed at random points: `ingest`, `compact` and `audit` with kill -9, then repeated.

    python tests/prove/killed_rollup.py [KILLS]     default 50

Whatever was cut off, bronze must hold every event once, and the findings must be the same bytes as without any kill.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.support.recorded_fleet import replayed  # noqa: E402 - path first

SCENARIOS = ("kafka-8187-stage2-2.0.1", "torn-clean-3.9.2", "kafka-9891-2.5.0")


def command(*words: str) -> list[str]:
    """Build a command line of the rollup."""
    return [sys.executable, "-m", "spark_rollup", *words]


def run(words: list[str], kill_after_s: float | None = None) -> bool:
    """Run a command, or kill it and everything that it started; returns whether it ended by itself."""
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        process.wait(kill_after_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    assert process.returncode in (0, 1), f"{words} ended with code {process.returncode}"
    return True


def main() -> int:
    """Kill, repeat, compare."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    dice = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="statewarden-killed-") as work:
        base = Path(work)
        replayed([ROOT / "tests" / "data" / "traces" / name for name in SCENARIOS], base / "events")
        steps = {
            bronze: (
                command("ingest", "--input", str(base / "events"), "--bronze", str(base / bronze)),
                command("compact", "--bronze", str(base / bronze)),
                command("audit", "--input", str(base / bronze), "--output", str(base / f"{bronze}-out")),
            )
            for bronze in ("calm", "killed")
        }
        for words in steps["calm"]:
            run(words)
        done = 0
        for number in range(kills):
            words = (
                steps["killed"][number % 3]
                if (base / "killed" / "_bronze.json").exists()
                else steps["killed"][0]
            )
            done += not run(words, kill_after_s=dice.uniform(2, 25))
        for words in steps["killed"]:
            run(words)
        calm, killed = ((base / f"{name}-out" / "findings.jsonl").read_bytes() for name in ("calm", "killed"))
    same = calm == killed and bool(calm)
    sys.stdout.write(
        f"{done} of {kills} runs were killed; findings are {'the same' if same else 'DIFFERENT'}\n"
    )
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
