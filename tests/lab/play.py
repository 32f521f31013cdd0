"""Play a run: processes, disk and network on one side, values for the judge on the other."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from deploy.demo.agents import AgentError
from tests.lab import written
from tests.lab.actions import ACTIONS
from tests.lab.catalogue import plan_of
from tests.lab.design import Run, Step
from tests.lab.draw import CHECK
from tests.lab.expected import judge_written, wrong_incidents
from tests.lab.fleet import audit, audited
from tests.lab.ground import CATCH_UP_S, Ground, Look
from tests.lab.judge import Health, Judgement, Truth, is_allowed, judge, verdict
from tests.lab.planted import OTHERS_DISABLED
from tests.lab.processes import Broker, LiveError
from tests.lab.said import Said, loudest
from tests.lab.scenarios import SCENARIOS
from tests.lab.stage import Stage
from tests.lab.timeline import Asked
from tests.support.shipped import shipped_records


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run."""

    run: Run
    seconds: float
    judgements: tuple[Judgement, ...] = ()
    truths: tuple[Truth, ...] = ()
    saids: tuple[Said, ...] = ()
    healths: tuple[Health, ...] = ()
    marks: tuple[tuple[int, str], ...] = ()
    failures: tuple[str, ...] = ()  # what ended by itself and was started again
    problem: str = ""  # why it broke off; such a run has no verdict and is not counted
    asked: tuple[Asked, ...] = ()
    proof: tuple[str, ...] = ()  # what the application itself held

    @property
    def is_judged(self) -> bool:
        """Whether something counts against us."""
        return any(one.is_wrong for one in self.judgements)

    def line(self) -> str:
        """One line for people."""
        counts = " ".join(f"{kind}={count}" for kind, count in sorted(verdict(self.judgements).items()))
        found = sorted({f"({one.detector})" for one in self.judgements if not one.is_wrong})
        wrong = sorted({x.difference.store for x in self.truths if not x.is_allowed})
        truth = f"WRONG {','.join(wrong)}" if wrong else "right"
        word = f"BROKE OFF {self.problem[:600]}" if self.problem else counts or "right"
        memory = max((health.peak_mib for health in self.healths), default=0.0)
        seen = f"truth {truth} {' '.join(found)} {memory:.0f} MiB" if self.healths else " ".join(found)
        return f"{self.run.name:22} {word}; {seen} {self.seconds:.0f} s"

    def as_json(self) -> dict[str, Any]:
        """For the file of a run."""
        return {"name": self.run.name, **asdict(self), "run": self.run.as_json()}


def play(
    broker: Broker, base: Path, run: Run, *, keep: bool = False, patience_s: float = CATCH_UP_S
) -> Result:
    """Play one run, written or drawn, below a directory, which is left if asked (`keep`), and judge it."""
    begun = time.monotonic()
    if run.label:
        return _play_written(broker, base, run, patience_s, keep=keep)
    ground = Ground(broker, base / run.name, run, patience_s)
    try:
        truths: list[Truth] = []
        problem = ""
        try:
            perform(ground, run, truths)
        except (LiveError, AgentError) as error:
            problem = str(error)
        end(ground)
        healths = tuple(ground.healths)
        records = shipped_records(ground.home / "shipped")
        standbys = int(str(run.settings.get("num.standby.replicas", 0))) > 0
        saids = [*loudest(records, ground.marks), *audit(records, standbys)]
        asked = tuple(ground.asked)
        return Result(
            run,
            time.monotonic() - begun,
            () if problem else judge(run, truths, saids, healths, ground.marks, asked),
            tuple(truths),
            tuple(saids),
            healths,
            tuple(ground.marks),
            tuple(ground.failures),
            problem,
            asked,
        )
    finally:
        ground.close(keep=keep)


def _play_written(broker: Broker, base: Path, run: Run, patience_s: float, *, keep: bool) -> Result:
    """Play a scenario of the catalogue; what is found of a bug must also be one incident."""
    scenario, plan = SCENARIOS[run.label.split()[0]], plan_of(run)
    begun, home, problem = time.monotonic(), base / run.name.replace(" ", "-"), ""
    stage = (
        Ground(broker, home, run, patience_s)
        if scenario.fault
        else Stage(broker, home, run.label.split()[0], plan)
    )
    try:
        try:
            with mock.patch.dict(os.environ, OTHERS_DISABLED if scenario.fault else {}):
                written.perform(stage, run.steps)
        except LiveError as error:
            problem = str(error)
        saids = tuple(loudest(stage.finish(), stage.marks))
        judgements = tuple(judge_written(scenario, plan, saids, stage.marks))
        if not problem and scenario.must(plan) and not scenario.fault:
            wrong = wrong_incidents(saids, audited(stage.home))
            judgements += tuple(Judgement("incidents", "told", "-", what) for what in wrong)
        return Result(
            run,
            time.monotonic() - begun,
            judgements,
            saids=saids,
            marks=tuple(stage.marks),
            problem=problem,
            proof=(*stage.proof, *(what for _, what in stage.marks if what.startswith("truth: "))),
        )
    finally:
        stage.close(keep=keep)


def perform(ground: Ground, run: Run, truths: list[Truth]) -> None:
    """Do the steps; adds every difference of every look."""
    for pod in run.pods:
        ground.join(pod)
    done: list[Step] = []
    for step in run.steps if run.steps[-1:] == (CHECK,) else (*run.steps, CHECK):
        ground.mark(f"step {step.words()}")
        if step.args.get("pod", "") in ("", *ground.pods):
            ACTIONS[step.action].play(ground, **step.args)
            done.append(step)
        if step.action == CHECK.action:
            truths += _truths(ground, run, done, ground.looks[-1])


def _truths(ground: Ground, run: Run, done: Sequence[Step], look: Look) -> list[Truth]:
    wrong = [("", one) for one in look.found.differences]
    wrong += [(copy.pod, copy.wrong) for copy in look.found.copies or () if copy.wrong]
    return [
        Truth(look.at_us, ground.task_of(one.store, one.partition), one, is_allowed(run, done, one), pod)
        for pod, one in wrong
    ]


def end(ground: Ground) -> None:
    """Close the application in order; its agents look on for a moment more."""
    for pod in list(ground.pods):
        if ground.pods[pod].is_alive:
            ground.stop(pod)
    ground.idle(2, "agents look on")
    for pod in list(ground.agents):
        ground.unwatch(pod)
