"""The rollup killed at random points: `ingest`, `compact` and `audit` with kill -9, then repeated.

    python tests/prove/killed_rollup.py [KILLS]     default 60

A calm run takes everything in at once. The other one gets the same segments in three deliveries and is killed at random
changes of its directories, and a random moment after them, again and again. Whatever was cut off, every table must have
the same rows as the calm one. A run that ends before it is killed does not count, and what it did is undone.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.spark_rollup.support.fleet import Fleet  # noqa: E402 - path first
from tests.support.recorded_fleet import differing, replayed  # noqa: E402

SCENARIOS = ("kafka-8187-stage2-2.0.1", "torn-clean-3.9.2", "kafka-9891-2.5.0")
DELIVERIES = 3
LATER_S = 10 * 86_400
RUNS_PER_KILL = 4
"""A command that mostly ends before it can be killed is given up."""
MAX_S = 600
"""A run that takes longer than this (seconds) is a failure."""


def command(*words: str) -> list[str]:
    """Build a command line of the rollup."""
    return [sys.executable, "-m", "spark_rollup", *words]


def run(words: Sequence[str], folder: Path, kill_at: int | None = None, later_s: float = 0.0) -> int | None:
    """Run a command; kill it and all that it started, some seconds after so many changes below a folder.

    Returns how many changes were seen before the command ended by itself; None if it was killed.
    """
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    before, changes = _look(folder), 0
    ends_s = time.monotonic() + MAX_S
    while process.poll() is None:
        assert time.monotonic() < ends_s, f"{words} takes longer than {MAX_S} s"
        now = _look(folder)
        changes += len(now ^ before)
        before = now
        if kill_at is not None and changes >= kill_at:
            time.sleep(later_s)
            os.killpg(process.pid, signal.SIGKILL)
            return changes if process.wait() >= 0 else None
        time.sleep(0.01)
    assert process.returncode in (0, 1), f"{words} ended with code {process.returncode}"
    return changes


def _look(folder: Path) -> set[tuple[str, int]]:
    found = set()
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            try:
                found.add((path, os.stat(path).st_size))
            except OSError:  # gone in between
                continue
    return found


def steps(base: Path, name: str) -> dict[str, list[str]]:
    """Command lines on one bronze directory."""
    bronze = base / name / "bronze"
    return {
        "ingest": command("ingest", "--input", str(base / name / "in"), "--bronze", str(bronze)),
        "compact": command("compact", "--bronze", str(bronze)),
        "audit": command("audit", "--input", str(bronze), "--output", str(base / name / "out")),
    }


def deliver(base: Path, events: Sequence[Path], name: str, part: int | None = None) -> None:
    """Copy segments to the input of one of the two; all of them, or every n-th."""
    for number, path in enumerate(events):
        if part in (None, number % DELIVERIES):
            target = base / name / "in" / path.relative_to(base / "events")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def plan(kills: int) -> Iterator[tuple[str, int]]:
    """Say what is killed how often, in order: each delivery, the compaction, the audit."""
    each = kills // (DELIVERIES + 2)
    for part in range(DELIVERIES):
        yield f"delivery {part}", each
    yield "compact", each
    yield "audit", kills - each * (DELIVERIES + 1)


def kill_often(words: Sequence[str], folder: Path, times: int, changes: int, dice: random.Random) -> int:
    """Run a command until it was killed so often; each run finds what the one before it left behind.

    `changes`: how many a calm run makes; corrected by each run that ends by itself. Returns the kills, fewer than
    wanted only if `RUNS_PER_KILL` did not suffice.
    """
    before = folder.with_name("before")
    shutil.rmtree(before, ignore_errors=True)
    shutil.copytree(folder, before)
    killed = runs = 0
    while killed < times and runs < times * RUNS_PER_KILL:
        runs += 1
        at, later_s = dice.randint(1, max(1, changes)), dice.choice((0.0, dice.uniform(0, 0.5)))
        made = run(words, folder, at, later_s)
        if made is None:
            killed += 1
            continue
        changes = made or changes
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
    return killed


def main() -> int:
    """Kill, repeat, compare."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    dice = random.Random(1)
    killed = 0
    with tempfile.TemporaryDirectory(prefix="statewarden-killed-") as work:
        base = Path(work)
        replayed([ROOT / "tests" / "data" / "traces" / name for name in SCENARIOS], base / "events")
        later = Fleet("later")  # the newest day is never compacted
        later.pod("pod-z", begins_s=LATER_S, ends_s=LATER_S + 60)
        later.write(base / "events")
        events = sorted((base / "events").rglob("*.jsonl.gz"))
        deliver(base, events, "calm")
        seen = {name: run(words, base / "calm") for name, words in steps(base, "calm").items()}
        sys.stdout.write(f"changes in a calm run: {seen}\n")
        for what, times in plan(kills):
            name = what.split()[0] if what in ("compact", "audit") else "ingest"
            if name == "ingest":
                deliver(base, events, "killed", int(what.split()[1]))
            words = steps(base, "killed")[name]
            killed += kill_often(words, base / "killed", times, seen[name] or 1, dice)
            run(words, base / "killed")
            sys.stdout.write(f"{what}: {killed} kills so far\n")
            sys.stdout.flush()
        different = differing(base / "calm" / "out", base / "killed" / "out")
        lines = [(base / name / "out" / "findings.jsonl").read_bytes() for name in ("calm", "killed")]
    same = not different and lines[0] == lines[1] and bool(lines[0])
    verdict = f"tables that differ: {', '.join(different) or 'none'}"
    sys.stdout.write(f"{killed} of {kills} kills; {len(lines[0].splitlines())} findings; {verdict}\n")
    return int(not same or killed < kills)


if __name__ == "__main__":
    sys.exit(main())
