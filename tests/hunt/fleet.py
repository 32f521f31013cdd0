"""What the rollup's rules say of what the agents shipped, by their twins in plain Python: a second, not a minute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.live.judge import Said
from tests.spark_rollup.oracle.clones import cloned, cloned_processes
from tests.spark_rollup.oracle.facts import world_of
from tests.spark_rollup.oracle.standbys import missing, unprotected
from tests.spark_rollup.oracle.verdicts import ORACLES
from tests.support.shipped import Data


def audit(records: Sequence[Data], standbys: bool) -> list[Said]:
    """Ask every rule, once about what the told agents shipped and once about what the untold ones did.

    Args:
        records: Of all agents of a run.
        standbys: Whether tasks are to have a copy.
    """
    return [said for kind in ("told", "untold") for said in _audit(records, kind, standbys)]


def _audit(records: Iterable[Data], kind: str, standbys: bool) -> Iterable[Said]:
    events = [data for data in records if data["pod"].endswith(f"-{kind}")]
    if not events:
        return
    as_of = max(data["observed_at_us"] for data in events)
    world = world_of(events, as_of)
    rules = [*ORACLES.values(), cloned, cloned_processes, *((missing, unprotected) if standbys else ())]
    for rule in rules:
        for name, task, pod, severity, confidence, *_ in rule(world):
            where = task or "-"
            yield Said(
                f"rollup-{kind}", name, where, "-", severity, confidence, "-", f"{name} of {pod}", "", as_of
            )
