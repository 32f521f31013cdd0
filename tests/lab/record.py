"""Record real lives of Kafka Streams as traces and scenarios, in the format of `tests/data/traces`.

    make record SEED=4.3.1-alos-17                        a drawn run, by its name or its result's file
    make record SEED=build/lab/4.2.1-eos-k20685.json      a written one

Needs what `run.py` needs, and strace. A recording is kept only if its replay in memory is the same as the real
directory at the end of every process. No agent watches, and what changes a volume by hand cannot be recorded: a trace
has what the application did. Of a result's file, what it was judged by becomes what the scenario expects; the upstream
issue and the decisive operation are written into the scenario by hand.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lab import acts_disk
from tests.lab.catalogue import named_run, plan_of
from tests.lab.design import Run
from tests.lab.ground import Ground
from tests.lab.judge import Truth
from tests.lab.play import end, perform
from tests.lab.processes import Broker, Brokers, LiveError, broker_release
from tests.lab.recording import Recording
from tests.lab.scenarios import SCENARIOS
from tests.lab.toolbox import BROKER_RELEASE
from tests.lab.written import perform as play_written

SETTINGS = ("processing.guarantee", "state.cleanup.delay.ms", "num.standby.replicas", "commit.interval.ms")
PROPERTIES = (*SETTINGS, "num.stream.threads", "session.timeout.ms")
BROKEN = "broke off:"
MOST_TRIES = 3
Row = Mapping[str, Any]
"""As `Result.as_json` gives it."""


class RecordedGround(Ground, Recording):
    """A ground without agents whose instances run under strace."""

    def set_clock(self, pod: str, by_s: int) -> None:
        """There are no agents."""


def recordable(run: Run) -> Run:
    """Give the run without what nobody can record."""
    if run.label:
        return run
    settings = {key: value for key, value in run.settings.items() if key != "hunt.volume.mib"}
    steps = [step for step in run.steps if step.action not in acts_disk.ACTIONS]
    return replace(run, settings=settings, steps=tuple(steps))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a recorded life was."""

    verdict: str  # `bug` or `benign`
    what: str  # in a sentence
    pod: str  # of which the scenario tells
    task: str  # of it
    find: Sequence[Mapping[str, str]] = ()  # expectations
    allow: Sequence[str] = ()  # detectors that may speak beside them


def expectations(result: Row, is_due: Callable[[Row], bool]) -> list[dict[str, str]]:
    """Give what a scenario must find: true words of the told agents that are due."""
    return [
        {
            "detector": one["detector"],
            "task_id": one["task"],
            "pod": named(one["who"].removesuffix("-told")),
            "severity": one["severity"],
        }
        for one in result.get("judgements", ())
        if one["kind"] == "excused" and one["who"].endswith("-told") and not one["who"].startswith("rollup")
        if is_due(one)
    ]


def drawn(broker: Broker, base: Path, run: Run, result: Row) -> tuple[Recording, Callable[[], Verdict]]:
    """Give the stage of a drawn run, and what lives it and tells what was true."""
    ground = RecordedGround(broker, base / "run", run)

    def lived() -> Verdict:
        truths: list[Truth] = []
        perform(ground, run, truths)
        end(ground)
        ground.proof += [said for _, said in ground.marks if said.startswith("truth: ")]
        wrong = [truth for truth in truths if not truth.is_allowed]
        tasks = {truth.task for truth in wrong}
        what = "; ".join(sorted({f"{truth.task} {truth.what}" for truth in wrong})) or "nothing is wrong"
        pod, task = sorted(ground.runs)[0], wrong[0].task if wrong else "0_0"
        find = expectations(result, lambda one: one["severity"] == "critical" and one["task"] in tasks)
        allow = sorted({wish["detector"] for wish in find})
        return Verdict("bug" if wrong else "benign", what, pod, task, find, allow)

    return ground, lived


def written(broker: Broker, base: Path, run: Run, result: Row) -> tuple[Recording, Callable[[], Verdict]]:
    """Give the same of a written run; whether it does damage is what the catalogue says of its release."""
    name, plan = run.label.split()[0], plan_of(run)
    scenario, home = SCENARIOS[name], base / "run"
    stage = RecordedGround(broker, home, run) if scenario.fault else Recording(broker, home, name, plan)

    def lived() -> Verdict:
        play_written(stage, run.steps)
        for pod in [pod for pod, java in stage.pods.items() if java.is_alive]:
            stage.stop(pod)
        must = scenario.must(plan)
        find = expectations(result, lambda one: one["detector"] in must)
        task = find[0]["task_id"] if find else "0_0"
        allow = [*scenario.always, *must, *(scenario.allow if scenario.affected(plan) else ())]
        what = scenario.play.about
        return Verdict("bug" if must else "benign", what, sorted(stage.runs)[0], task, find, sorted({*allow}))

    return stage, lived


def record_run(broker: Broker, base: Path, run: Run, result: Row, target: Path) -> str:
    """Record a run, tell what came of it; `LiveError`: it broke off, or its replay is not the real directory."""
    folder = base / f"hunt-{run.name}".replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    stage, live = (written if run.label else drawn)(broker, base, run, result)
    told = "; ".join(step.words() for step in run.steps)
    try:
        truth = live()
        checks = {
            pod: stage.write(pod, folder / f"trace-{named(pod)}.jsonl.gz") for pod in sorted(stage.runs)
        }
        scenario = describe(
            stage, folder.name, told, truth, checks, BROKER_RELEASE if run.label else broker_release(run)
        )
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
    description: str,
    truth: Verdict,
    checks: dict[str, dict[str, Any]],
    broker: str,
) -> dict[str, Any]:
    """Give the content of `scenario.json`."""
    told = stage.settings(truth.pod, stage.plan.release)
    begun = next(row for row in stage.operations[truth.pod] if row["op"] == "start")
    return {
        "id": identity,
        "jira": None,
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
            "at": begun["t"],
            "evidence": "; ".join(stage.proof),
            "tasks": [truth.task] if truth.verdict != "benign" else [],
            "also_present": {},
            "at_op": {"op": "start"},
        },
        "timeline": [[at_us / 1e6, what] for at_us, what in stage.marks],
        "snapshots": [],
        "settings": {
            **{key.replace(".", "_"): told[key] for key in SETTINGS},
            "kafka_streams_version": stage.plan.release,
        },
        "replay_check": {named(pod): check for pod, check in checks.items()},
        "expect": {
            "find": list(truth.find),
            "allow": list(truth.allow),
        },
    }


def named(pod: str) -> str:
    """Give a pod's name in a recording; scenarios of `run.py` call theirs by a letter."""
    return pod if pod.startswith("pod-") else f"pod-{pod}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, print; 1 if it broke off."""
    parser = argparse.ArgumentParser(prog="record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", metavar="NAME|FILE", help="a run's name, or its result's file")
    parser.add_argument("--target", type=Path, default=Path("build/hunt/traces"))
    options = parser.parse_args(arguments)
    path = Path(options.run)
    result: Row = json.loads(path.read_text()) if path.is_file() else {}
    run = recordable(Run.from_json(result["run"]) if result else named_run(options.run))
    options.target.mkdir(parents=True, exist_ok=True)
    said = ""
    with tempfile.TemporaryDirectory(prefix="statewarden-record-") as scratch:
        brokers = Brokers(Path(scratch))
        try:
            broker = brokers.for_run(run)
            for said in tries(lambda: record_run(broker, Path(scratch), run, result, options.target)):
                sys.stdout.write(f"{said}\n")
                sys.stdout.flush()
        finally:
            brokers.stop()
    return int(said.startswith(BROKEN))


if __name__ == "__main__":
    sys.exit(main())
