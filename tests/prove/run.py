"""The long proofs, by hand: `make prove`. Runs every part of `PARTS` and tells at the end which failed."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PARTS: dict[str, tuple[str, ...]] = {
    "evaluation": ("tests/evaluate/run.py",),
    **{
        f"evaluation, up to {late} ms late": ("tests/evaluate/run.py", "--delay-ms", str(late))
        for late in (5, 20, 50, 100, 300)
    },
    "evaluation, polled": ("tests/evaluate/polled.py",),
    "evaluation, started late and restarted": ("tests/evaluate/late.py",),
    "short lives": ("tests/proof/page.py",),
    "short lives: planted conditions": ("tests/proof/planted.py",),
    "less known": ("tests/prove/less_known.py",),
    "fleet audit: injected truth": ("tests/bench/recall.py",),
    "fleet audit: disturbed recordings": ("tests/prove/disturbed.py",),
    "alert noise": ("tests/prove/alert_noise.py",),
    "heavy tests": ("-m", "pytest", "-q", "-m", "heavy"),
    "search for examples": ("-m", "pytest", "-q", "-m", "hypothesis", "--hypothesis-profile=search", "tests"),
    "fleet audit: killed at random": ("tests/prove/killed_rollup.py",),
    "fleet audit: standalone cluster": ("tests/prove/cluster.py",),
    "fleet audit: Kubernetes": ("tests/prove/spark_on_kubernetes.py",),
    "every Python, every Spark": ("tests/prove/matrix.py",),
    "the image in containers": ("tests/containers/run.py",),
    "parsers, fuzzed": ("tests/fuzz/run.py", "--seconds", "30"),
    "stores against RocksDB": ("tests/fuzz/against_rocksdb.py", "--mutations", "2000"),
    "lifelike stories": ("tests/lifelike/run.py", "--jobs", "4"),
    "live releases": ("tests/lab/run.py",),
    "hunt": ("tests/lab/run.py", "hunt", "--minutes", "10", "--seed", "2", "--results", "build/hunt-prove"),
    "found in Kafka Streams": ("tests/lab/repro/run.py",),
    "kill -9 of the agent, 500 times per sink": ("tests/delivery/kills.py", "--kills", "500"),
    "charts in a control plane": ("-m", "pytest", "-q", "-m", "cluster", "tests/cluster"),
    "soak": ("tests/bench/soak.py",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts, or those whose name contains a word."""
    parser = argparse.ArgumentParser(prog="prove", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("words", nargs="*", metavar="WORD", help="run parts whose name contains one of these")
    chosen = parser.parse_args(arguments)
    failed = []
    for name, command in PARTS.items():
        if chosen.words and not any(word in name for word in chosen.words):
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
