"""Record a run of the hunt as a trace and a scenario, in the format of `tests/data/traces`.

    make record SEED=4.3.1-alos-17
    python tests/hunt/record.py build/hunt/4.3.1-alos-17.json --target tests/data/traces

Of a result's file, what it was judged by becomes what the scenario expects. No agent watches a recording, and actions
that change a volume by hand cannot be recorded: a trace has what the application did.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.hunt import acts_disk
from tests.hunt.brokers import Brokers, broker_release
from tests.hunt.design import Run
from tests.hunt.draw import draw_named
from tests.hunt.ground import Ground
from tests.hunt.judge import Truth
from tests.hunt.play import end, perform
from tests.live.processes import Broker, LiveError
from tests.live.record import describe, named
from tests.live.recorded import Truth as Verdict
from tests.live.recording import Recording


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


def record(broker: Broker, base: Path, run: Run, result: Mapping[str, Any], target: Path) -> str:
    """Record one run; tells what came of it.

    Raises:
        LiveError: the run broke off, or its replay is not the real directory.
    """
    ground = RecordedGround(broker, base / "run", run)
    truths: list[Truth] = []
    try:
        perform(ground, run, truths)
        end(ground)
        folder = base / f"hunt-{run.name}"
        folder.mkdir()
        checks = {
            pod: ground.write(pod, folder / f"trace-{named(pod)}.jsonl.gz") for pod in sorted(ground.runs)
        }
        wrong = [truth for truth in truths if not truth.is_allowed]
        what = "; ".join(sorted({f"{truth.task} {truth.what}" for truth in wrong})) or "nothing is wrong"
        pod, task = sorted(ground.runs)[0], wrong[0].task if wrong else "0_0"
        find = expectations(result, wrong)
        allow = sorted({wish["detector"] for wish in find})
        verdict = Verdict("bug" if wrong else "benign", what, pod, task, ("start", "", 1), find, allow)
        told = "; ".join(step.words() for step in run.steps)
        ground.proof += [said for _, said in ground.marks if said.startswith("truth: ")]
        scenario = describe(ground, folder.name, None, told, verdict, checks, broker_release(run))
        (folder / "scenario.json").write_text(json.dumps(scenario, indent=1) + "\n")
        if differ := [path for check in checks.values() for path in check["differ"]]:
            raise LiveError(f"the replay differs from the real directory: {differ[:5]}")
    finally:
        ground.close()
    shutil.rmtree(target / folder.name, ignore_errors=True)
    shutil.move(folder, target / folder.name)
    return f"{target / folder.name}: {verdict.verdict}, {what}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, print; 1 if it broke off."""
    parser = argparse.ArgumentParser(prog="record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", metavar="NAME|FILE", help="a run's name, or its result's file")
    parser.add_argument("--target", type=Path, default=Path("build/hunt/traces"))
    options = parser.parse_args(arguments)
    path = Path(options.run)
    result: Mapping[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    run = recordable(Run.from_json(result["run"]) if result else draw_named(options.run))
    options.target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="statewarden-record-") as scratch:
        brokers = Brokers(Path(scratch))
        try:
            said = record(brokers.for_run(run), Path(scratch), run, result, options.target)
        except LiveError as error:
            sys.stdout.write(f"broke off: {error}\n")
            return 1
        finally:
            brokers.stop()
    sys.stdout.write(said + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
