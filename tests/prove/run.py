"""The long proofs, by hand: `make prove`. Runs every part and tells at the end which failed.

Parts: the evaluation with notifications followed late, without settings; the RocksDB reader against its oracles and
beside a busy writer; every parser fuzzed; the fleet audit killed at random, and on a standalone Spark cluster; alert
noise over a simulated fleet; the image in containers; the charts in a Kubernetes control plane; real releases of Kafka
Streams under live agents (`tests/live`); the agent killed 500 times under load for each sink, with an account of every
event (`tests/delivery/kills.py`); a backlog of 1 GiB; an hour of the mixed load (`tests/bench/soak.py`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PARTS: dict[str, tuple[str, ...]] = {
    "evaluation": ("tests/evaluate/run.py",),
    "evaluation, no settings": ("tests/evaluate/run.py", "--no-settings"),
    **{
        f"evaluation, up to {late} ms late": ("tests/evaluate/run.py", "--delay-ms", str(late))
        for late in (5, 20, 50, 100, 300)
    },
    "fleet audit: injected truth": ("tests/bench/recall.py",),
    "alert noise": ("tests/prove/alert_noise.py",),
    "boards against Grafana's types": (
        "-m",
        "pytest",
        "-q",
        "-m",
        "heavy",
        "tests/deploy/test_dashboards.py",
    ),
    "fleet audit: killed at random": ("tests/prove/killed_rollup.py",),
    "fleet audit: standalone cluster": ("tests/prove/cluster.py",),
    "RocksDB oracles, busy writer": ("tests/oracle/run.py",),
    "the image in containers": ("tests/containers/run.py",),
    "parsers, fuzzed": ("tests/fuzz/run.py", "--seconds", "30"),
    "live releases": ("tests/live/run.py",),
    "kill -9 of the agent, 500 times per sink": ("tests/delivery/kills.py", "--kills", "500"),
    "charts in a control plane": ("-m", "pytest", "-q", "-m", "cluster", "tests/cluster"),
    "backlog of 1 GiB": ("tests/bench/run.py", "spool", "--full", "--rounds", "1"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts, or those whose name contains a word."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    failed = []
    for name, command in PARTS.items():
        if words and not any(word in name for word in words):
            continue
        sys.stdout.write(f"== {name}\n")
        sys.stdout.flush()
        done = subprocess.run([sys.executable, *command], cwd=ROOT, check=False)
        if done.returncode:
            failed.append(name)
    sys.stdout.write(f"failed: {', '.join(failed) or 'nothing'}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
