"""Scores per module and in all, and the check on deciding conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.mutate.crew import Trial
from tests.mutate.judged import Judgement, judgement_on
from tests.mutate.mutants import Mutant


@dataclass(slots=True)
class ModuleScore:
    """What came of one module.

    Args of the dataclass:
        path: The module.
        all: Number of its mutants.
        trials: Those of the sample that were tried.
        judgements: All judgements.
        extra: Tried beyond the sample, only to see each condition broken; not part of the score.
    """

    path: str
    all: int
    trials: list[Trial]
    judgements: Sequence[Judgement]
    extra: list[Trial] = field(default_factory=list)

    @property
    def equivalent(self) -> list[tuple[Trial, Judgement]]:
        """Survivors that were judged equivalent."""
        pairs = ((x, judgement_on(x.mutant, self.judgements)) for x in self.trials if not x.killed)
        return [(trial, found) for trial, found in pairs if found is not None]

    @property
    def survivors(self) -> list[Trial]:
        """Survivors that nobody judged equivalent."""
        spared = {x.mutant.key for x, _ in self.equivalent}
        return [x for x in self.trials if not x.killed and x.mutant.key not in spared]

    @property
    def killed(self) -> int:
        """Number of mutants that something noticed."""
        return sum(x.killed for x in self.trials)

    @property
    def counted(self) -> int:
        """Number of mutants that the score is of."""
        return len(self.trials) - len(self.equivalent)

    @property
    def percent(self) -> float:
        """Share of the counted mutants that something noticed."""
        return 100.0 * self.killed / self.counted if self.counted else 100.0


def overall(scores: Sequence[ModuleScore]) -> float:
    """Estimate the score over all mutants: modules weigh as much as they have mutants, sampled or not."""
    weight = sum(x.all for x in scores)
    return sum(x.percent * x.all for x in scores) / weight if weight else 100.0


@dataclass(frozen=True, slots=True)
class Decision:
    """A function of a detector that decides something, and what became of breaking it."""

    path: str
    function: str
    proof: Trial | None


def functions_that_decide(mutants: Sequence[Mutant]) -> list[str]:
    """List functions in which a condition can be broken, in the order of the source."""
    return list(dict.fromkeys(x.function for x in mutants if x.condition and x.function))


def untried_conditions(function: str, mutants: Sequence[Mutant], trials: Sequence[Trial]) -> list[Mutant]:
    """List broken conditions of a function to try, until one is noticed; none if one was."""
    mine = [x for x in trials if x.mutant.function == function and x.mutant.condition]
    if any(x.killed for x in mine):
        return []
    tried = {x.mutant.key for x in mine}
    return [x for x in mutants if x.function == function and x.condition and x.key not in tried]


def decide(path: str, function: str, trials: Sequence[Trial]) -> Decision:
    """Pick the plainest proof that a function's conditions matter: its own tests before the others."""
    proofs = [x for x in trials if x.mutant.function == function and x.mutant.condition and x.killed]
    proofs.sort(key=lambda x: (x.stage, x.mutant.operator != "DropCondition", x.mutant.line))
    return Decision(path, function, proofs[0] if proofs else None)
