"""Break the code on purpose; a test must notice: `make mutate`.

Exit code 0 when the score reaches 85 % and a broken condition was noticed in every deciding function of every
detector; 1 otherwise; 2 when tests fail on the code as it is.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutate import plan  # noqa: E402 - the repository goes on the path first
from tests.mutate.crew import Crew, Trial, crew  # noqa: E402
from tests.mutate.judged import is_void, read_judgements  # noqa: E402
from tests.mutate.memory import Memory  # noqa: E402
from tests.mutate.mutants import Mutant, mutants  # noqa: E402
from tests.mutate.page import GOAL_PERCENT, render_page  # noqa: E402
from tests.mutate.score import (  # noqa: E402
    Decision,
    ModuleScore,
    decide,
    functions_that_decide,
    overall,
    untried_conditions,
)

PAGE = ROOT / "contributing" / "mutation.md"


class Check:
    """One run of the check on a fixed copy of the tree."""

    def __init__(self, root: Path, workers: Crew, memory: Memory, until: str) -> None:
        """Take what the run needs.

        Args:
            root: The copy that modules are read from; never broken itself.
            workers: Who tries mutants.
            memory: Outcomes of earlier runs.
            until: Last stage to go through.
        """
        self._root, self._workers, self._memory, self._until = root, workers, memory, until

    def sample(
        self, paths: Sequence[str], size: int, seed: int
    ) -> dict[str, tuple[list[Mutant], list[Mutant]]]:
        """Make all mutants of each module and choose at most `size` (0: all) of them."""
        chosen = {}
        for path in paths:
            found = list(mutants(path, (self._root / path).read_text("utf-8")))
            dice = random.Random(f"{seed} {path}")
            picked = found if size == 0 or len(found) <= size else dice.sample(found, size)
            chosen[path] = (found, picked)
        return chosen

    def try_all(self, wanted: Sequence[Mutant], total: int = 0) -> list[Trial]:
        """Try mutants, or recall what came of them."""
        tests = {x: self._tests(x) for x in {m.path for m in wanted}}
        depth = plan.DEPTHS.index(self._until)
        recalled = [(m, self._memory.recall(m, tests[m.path], depth)) for m in wanted]
        trials = [x for _, x in recalled if x is not None]
        left = [m for m, x in recalled if x is None]
        for number, trial in enumerate(self._workers.try_all(left, self.stages), start=1):
            self._memory.note(trial, tests[trial.mutant.path], depth)
            trials.append(trial)
            if not trial.killed or (total and number % 50 == 0):
                _say(f"{number}/{len(left)} {_line(trial)}")
        return trials

    def prove(self, score: ModuleScore, found: Sequence[Mutant]) -> list[Decision]:
        """Find for every deciding function of a detector one broken condition that a test notices."""
        decisions = []
        for function in functions_that_decide(found):
            for mutant in untried_conditions(function, found, [*score.trials, *score.extra]):
                trial = self.try_all([mutant])[0]
                score.extra.append(trial)
                if trial.killed:
                    break
            decisions.append(decide(score.path, function, [*score.trials, *score.extra]))
        return decisions

    def stages(self, path: str) -> list[list[str]]:
        """Give the tests that a module's mutants meet."""
        return plan.stages(self._root, path, self._until)

    def _tests(self, path: str) -> str:
        return plan.fingerprint(self._root, plan.own_tests(self._root, path))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check and say what came of it."""
    options = _read_options(arguments)
    paths = plan.modules(ROOT, options.module)
    if not paths:
        sys.stderr.write("mutate: no module matches\n")
        return 2
    with (
        tempfile.TemporaryDirectory(prefix="statewarden-mutate-") as work,
        crew(ROOT, Path(work), options.processes) as (copy, workers),
    ):
        check = Check(copy, workers, Memory(options.memory), options.until)
        red = workers.check(stage for path in paths for stage in check.stages(path))
        if red:
            sys.stderr.write("mutate: these fail on the code as it is:\n  " + "\n  ".join(red) + "\n")
            return 2
        chosen = check.sample(paths, options.sample, options.seed)
        trials = check.try_all([x for _, picked in chosen.values() for x in picked], total=1)
        judgements = read_judgements()
        scores = [
            ModuleScore(path, len(found), [x for x in trials if x.mutant.path == path], judgements)
            for path, (found, _) in chosen.items()
        ]
        decisions = [
            x
            for score in scores
            if plan.is_detector(score.path)
            for x in check.prove(score, chosen[score.path][0])
        ]
    return _conclude(scores, decisions, options)


def _conclude(scores: list[ModuleScore], decisions: list[Decision], options: argparse.Namespace) -> int:
    unproved = [f"{x.path}: {x.function}" for x in decisions if x.proof is None]
    for score in scores:
        _say(
            f"{score.path:<48}{score.killed:>5} of {score.counted:>4} ({score.all} in all) {score.percent:>6.1f} %"
        )
        for trial in sorted(score.survivors, key=lambda x: x.mutant.line):
            _say(f"    {_line(trial)}")
    for judgement in read_judgements():
        if is_void(judgement, ROOT):
            _say(f"void, strike it from equivalent.toml: {judgement.file}: {judgement.was}")
    for name in unproved:
        _say(f"no broken condition was noticed in {name}")
    score_percent = overall(scores)
    _say(
        f"\nscore {score_percent:.1f} % (goal {GOAL_PERCENT:.0f} %), {len(unproved)} of {len(decisions)} unproved"
    )
    page = options.page or (None if options.module else PAGE)
    if page is not None:
        page.write_text(render_page(scores, decisions, _how(options)), "utf-8")
    return int(score_percent < GOAL_PERCENT or bool(unproved))


def _how(options: argparse.Namespace) -> str:
    short = options.until != plan.DEPTHS[-1]
    own = (
        f" Survivors met only the stages up to `{options.until}`: the score is a lower bound."
        if short
        else ""
    )
    if options.sample == 0:
        return f"Every mutant was tried.{own}"
    return (
        f"Of each module at most {options.sample} mutants were tried, drawn at random (seed {options.seed}); in totals"
        f" a module weighs as much as it has mutants.{own}"
    )


def _line(trial: Trial) -> str:
    x = trial.mutant
    return f"{'' if trial.killed else 'SURVIVED '}{x.path}:{x.line} {x.function}: {x.was}  ->  {x.becomes}  {trial.by}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--module", action="append", default=[], metavar="GLOB",
                        help="only these modules, such as agent/detectors/torn_*.py; may be repeated")  # fmt: skip
    parser.add_argument(
        "--sample", type=int, default=15, help="mutants per module; 0 tries all (default: 15)"
    )
    parser.add_argument("--until", choices=plan.DEPTHS, default=plan.DEPTHS[-1],
                        help="last stage for survivors; a score without the later ones is a lower bound")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--processes", type=int, default=2, help="side by side (default: 2)")
    parser.add_argument("--memory", type=Path, help="file of earlier outcomes, read and added to")
    parser.add_argument(
        "--page", type=Path, help="write the result here (default: contributing/mutation.md, unless --module)"
    )
    chosen = parser.parse_args(arguments)
    if chosen.sample < 0 or chosen.processes < 1:
        parser.error("--sample must not be negative, --processes at least 1")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
