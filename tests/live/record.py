"""Record real lives of Kafka Streams as traces for `make evaluate`.

    python tests/live/record.py --releases 4.1.2 3.9.2 --lives kafka-20685-standby --target tests/data/traces

Needs what `run.py` needs, and strace. A recording is kept only if its replay in memory is the same as the real
directory at the end of every process.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.live.plan import Plan
from tests.live.processes import Broker, LiveError
from tests.live.recorded import LIVES, Truth
from tests.live.recording import Recording
from tests.live.toolbox import BROKER_RELEASE

PROPERTIES = (
    "commit.interval.ms",
    "state.cleanup.delay.ms",
    "num.standby.replicas",
    "num.stream.threads",
    "session.timeout.ms",
    "processing.guarantee",
)
BROKEN = "broke off:"
MOST_TRIES = 3
SETTINGS = ("processing.guarantee", "state.cleanup.delay.ms", "num.standby.replicas", "commit.interval.ms")


def record(broker: Broker, base: Path, name: str, release: str, target: Path) -> str:
    """Record one life; tells what came of it."""
    life = LIVES[name]
    plan = Plan(release, life.guarantee, life.stores, life.partitions, life.settings)
    stage = Recording(broker, base / "run", name, plan)
    folder = base / f"{name}-{release}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        truth = life.play(stage)
        checks = {
            pod: stage.write(pod, folder / f"trace-{named(pod)}.jsonl.gz") for pod in sorted(stage.runs)
        }
        told = " ".join((life.play.__doc__ or "").split())
        scenario = describe(stage, f"{name}-{release}", life.jira, told, truth, checks)
        (folder / "scenario.json").write_text(json.dumps(scenario, indent=1) + "\n")
        differ = [path for check in checks.values() for path in check["differ"]]
        if differ:
            raise LiveError(f"the replay differs from the real directory: {differ[:5]}")
    finally:
        stage.close()
    shutil.rmtree(target / folder.name, ignore_errors=True)
    shutil.move(folder, target / folder.name)
    size = sum(check["bytes_gz"] for check in checks.values())
    return f"{truth.verdict}, {size // 1024} KiB: {'; '.join(stage.proof)}"


def tries(broker: Broker, base: Path, name: str, release: str, target: Path) -> Iterator[str]:
    """Record until it is right: a kill in the middle of a write is cut off in the text, and found by the replay."""
    for _ in range(MOST_TRIES):
        try:
            said = record(broker, base, name, release, target)
        except LiveError as error:
            said = f"{BROKEN} {error}"
        yield said
        if not said.startswith(BROKEN):
            return


def describe(
    stage: Recording,
    identity: str,
    jira: str | None,
    description: str,
    truth: Truth,
    checks: dict[str, dict[str, Any]],
    broker: str = BROKER_RELEASE,
) -> dict[str, Any]:
    """Give the content of `scenario.json`."""
    told = stage.settings(truth.pod, stage.plan.release)
    at, decisive = _decisive(stage, truth)
    return {
        "id": identity,
        "jira": jira if truth.verdict != "benign" else None,
        "kafka_streams_version": stage.plan.release,
        "broker_version": broker,
        "guarantee": told["processing.guarantee"],
        "application_id": stage.id,
        "properties": {key: told[key] for key in PROPERTIES if key in told},
        "pods": [
            {
                "name": named(pod),
                "trace": f"trace-{named(pod)}.jsonl.gz",
                "versions": [release for release, _ in runs],
            }
            for pod, runs in sorted(stage.runs.items())
        ],
        "description": description,
        "expected": {
            "verdict": truth.verdict,
            "what": truth.what,
            "task": truth.task,
            "pod": named(truth.pod),
            "at": at,
            "evidence": "; ".join(stage.proof),
            "tasks": [truth.task] if truth.verdict != "benign" else [],
            "also_present": {},
            "at_op": decisive,
        },
        "timeline": [[at_us / 1e6, what] for at_us, what in stage.marks],
        "snapshots": [],
        "settings": {
            **{key.replace(".", "_"): told[key] for key in SETTINGS},
            "kafka_streams_version": stage.plan.release,
        },
        "replay_check": {named(pod): check for pod, check in checks.items()},
        "expect": {
            "find": [{**wish, "pod": named(wish["pod"])} for wish in truth.find],
            "allow": truth.allow,
        },
    }


def named(pod: str) -> str:
    """Give a pod's name in a recording; scenarios of `run.py` call theirs by a letter."""
    return pod if pod.startswith("pod-") else f"pod-{pod}"


def _decisive(stage: Recording, truth: Truth) -> tuple[float, dict[str, str]]:
    """Find the first operation of that kind in the run that decides."""
    op, ending, run = truth.decisive
    rows = stage.operations[truth.pod]
    begun = [number for number, row in enumerate(rows) if row["op"] == "start"][run - 1]
    row = next(x for x in rows[begun:] if x["op"] == op and x.get("to", x.get("path", "")).endswith(ending))
    return row["t"], {key: row[key] for key in ("op", "path", "to") if key in row}


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, print; 1 if a life broke off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", nargs="+", required=True)
    parser.add_argument("--lives", nargs="+", choices=list(LIVES), default=list(LIVES))
    parser.add_argument("--target", type=Path, required=True)
    options = parser.parse_args(arguments)
    broken = 0
    with tempfile.TemporaryDirectory(prefix="statewarden-record-") as scratch:
        broker = Broker(Path(scratch) / "broker")
        try:
            for name in options.lives:
                for release in options.releases:
                    for said in tries(broker, Path(scratch), name, release, options.target):
                        sys.stdout.write(f"{name} {release}: {said}\n")
                        sys.stdout.flush()
                    broken += said.startswith(BROKEN)
        finally:
            broker.stop()
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
