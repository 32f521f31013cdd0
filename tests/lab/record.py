"""Record real lives of Kafka Streams as traces and scenarios, in the format of `tests/data/traces`.

    make record SEED=4.3.1-alos-17                              a drawn run, by its name or its result's file
    python tests/lab/record.py --lives kafka-20685-standby --releases 4.1.2 3.9.2 --target tests/data/traces

Needs what `run.py` needs, and strace. A recording is kept only if its replay in memory is the same as the real
directory at the end of every process. No agent watches, and what changes a volume by hand cannot be recorded: a trace
has what the application did. Of a result's file, what it was judged by becomes what the scenario expects.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lab import acts_disk
from tests.lab.brokers import Brokers, broker_release
from tests.lab.catalogue import named_run
from tests.lab.design import Run
from tests.lab.ground import Ground
from tests.lab.judge import Truth
from tests.lab.plan import Plan
from tests.lab.play import end, perform
from tests.lab.processes import Broker, LiveError
from tests.lab.recorded import LIVES
from tests.lab.recorded import Truth as Verdict
from tests.lab.recording import Recording
from tests.lab.toolbox import BROKER_RELEASE

SETTINGS = ("processing.guarantee", "state.cleanup.delay.ms", "num.standby.replicas", "commit.interval.ms")
PROPERTIES = (*SETTINGS, "num.stream.threads", "session.timeout.ms")
BROKEN = "broke off:"
MOST_TRIES = 3


class RecordedGround(Ground, Recording):
    """A ground without agents whose instances run under strace."""

    def watch(self, pod: str, release: str | None = None) -> None:
        """Nobody watches."""

    def set_clock(self, pod: str, by_s: int) -> None:
        """There are no agents."""


def recordable(run: Run) -> Run:
    """Give the run without what nobody can record."""
    settings = {key: value for key, value in run.settings.items() if key != "hunt.volume.mib"}
    steps = [step for step in run.steps if step.action not in acts_disk.ACTIONS]
    return Run(
        run.seed,
        run.release,
        run.guarantee,
        run.stores,
        run.partitions,
        run.pods,
        settings,
        tuple(steps),
    )


def expectations(result: Mapping[str, Any], wrong: Sequence[Truth]) -> list[dict[str, str]]:
    """Give what a scenario must find: critical words of the told agents about tasks that are wrong."""
    tasks = {truth.task for truth in wrong}
    return [
        {
            "detector": one["detector"],
            "task_id": one["task"],
            "pod": named(one["who"].removesuffix("-told")),
            "severity": one["severity"],
        }
        for one in result.get("judgements", ())
        if one["kind"] == "excused" and one["severity"] == "critical" and one["task"] in tasks
        if one["who"].endswith("-told") and not one["who"].startswith("rollup")
    ]


def record_run(broker: Broker, base: Path, run: Run, result: Mapping[str, Any], target: Path) -> str:
    """Record a drawn run; tells what came of it."""
    ground = RecordedGround(broker, base / "run", run)
    truths: list[Truth] = []
    told = "; ".join(step.words() for step in run.steps)

    def lived() -> Verdict:
        perform(ground, run, truths)
        end(ground)
        ground.proof += [said for _, said in ground.marks if said.startswith("truth: ")]
        wrong = [truth for truth in truths if not truth.is_allowed]
        what = "; ".join(sorted({f"{truth.task} {truth.what}" for truth in wrong})) or "nothing is wrong"
        pod, task = sorted(ground.runs)[0], wrong[0].task if wrong else "0_0"
        find = expectations(result, wrong)
        allow = sorted({wish["detector"] for wish in find})
        return Verdict("bug" if wrong else "benign", what, pod, task, ("start", "", 1), find, allow)

    return _record(ground, base / f"hunt-{run.name}", target, lived, told, broker=broker_release(run))


def record_life(broker: Broker, base: Path, name: str, release: str, target: Path) -> str:
    """Record a written life; tells what came of it."""
    life = LIVES[name]
    plan = Plan(release, life.guarantee, life.stores, life.partitions, life.settings)
    stage = Recording(broker, base / "run", name, plan)
    told = " ".join((life.play.__doc__ or "").split())
    return _record(stage, base / f"{name}-{release}", target, lambda: life.play(stage), told, life.jira)


def _record(
    stage: Recording,
    folder: Path,
    target: Path,
    lived: Callable[[], Verdict],
    told: str,
    jira: str | None = None,
    broker: str = BROKER_RELEASE,
) -> str:
    """Let it live, write its traces and its scenario, and keep them if they are right.

    Raises:
        LiveError: it broke off, or its replay is not the real directory.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        truth = lived()
        checks = {
            pod: stage.write(pod, folder / f"trace-{named(pod)}.jsonl.gz") for pod in sorted(stage.runs)
        }
        scenario = describe(stage, folder.name, jira, told, truth, checks, broker)
        (folder / "scenario.json").write_text(json.dumps(scenario, indent=1) + "\n")
        if differ := [path for check in checks.values() for path in check["differ"]]:
            raise LiveError(f"the replay differs from the real directory: {differ[:5]}")
    finally:
        stage.close()
    shutil.rmtree(target / folder.name, ignore_errors=True)
    shutil.move(folder, target / folder.name)
    size = sum(check["bytes_gz"] for check in checks.values())
    return (
        f"{target / folder.name}: {truth.verdict}, {truth.what}, {size // 1024} KiB: {'; '.join(stage.proof)}"
    )


def tries(record: Callable[[], str]) -> Iterator[str]:
    """Record until it is right: a kill in the middle of a write is cut off in the text, and found by the replay."""
    for _ in range(MOST_TRIES):
        try:
            said = record()
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
    truth: Verdict,
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


def _decisive(stage: Recording, truth: Verdict) -> tuple[float, dict[str, str]]:
    """Find the first operation of that kind in the run that decides."""
    op, ending, run = truth.decisive
    rows = stage.operations[truth.pod]
    begun = [number for number, row in enumerate(rows) if row["op"] == "start"][run - 1]
    row = next(x for x in rows[begun:] if x["op"] == op and x.get("to", x.get("path", "")).endswith(ending))
    return row["t"], {key: row[key] for key in ("op", "path", "to") if key in row}


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, print; 1 if something broke off."""
    parser = argparse.ArgumentParser(prog="record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", nargs="?", metavar="NAME|FILE", help="a run's name, or its result's file")
    parser.add_argument("--lives", nargs="+", choices=list(LIVES), default=(), help="written lives")
    parser.add_argument("--releases", nargs="+", default=(), help="on which lives are played")
    parser.add_argument("--target", type=Path, default=Path("build/hunt/traces"))
    options = parser.parse_args(arguments)
    if bool(options.run) == bool(options.lives) or bool(options.lives) != bool(options.releases):
        parser.error("either a run, or --lives with --releases")
    options.target.mkdir(parents=True, exist_ok=True)
    broken = 0
    with tempfile.TemporaryDirectory(prefix="statewarden-record-") as scratch:
        brokers = Brokers(Path(scratch))
        try:
            for record in _chosen(options, brokers, Path(scratch)):
                for said in tries(record):
                    sys.stdout.write(f"{said}\n")
                    sys.stdout.flush()
                broken += said.startswith(BROKEN)
        finally:
            brokers.stop()
    return int(broken > 0)


def _chosen(options: argparse.Namespace, brokers: Brokers, base: Path) -> Iterator[Callable[[], str]]:
    """Give what is to be recorded."""
    if options.run:
        path = Path(options.run)
        result: Mapping[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
        run = recordable(Run.from_json(result["run"]) if result else named_run(options.run))
        if run.label:
            raise SystemExit(f"{run.label} is written: of those, --lives are recorded")
        yield lambda: record_run(brokers.for_run(run), base, run, result, options.target)
    for name in options.lives:
        for release in options.releases:
            broker = brokers.of(BROKER_RELEASE)
            yield lambda name=name, release=release, broker=broker: record_life(  # type: ignore[misc]
                broker, base, name, release, options.target
            )


if __name__ == "__main__":
    sys.exit(main())
