"""What the rollup says of what a run's agents shipped.

By the twins of its rules in plain Python, a second, not a minute; and by its audit, in one Spark session for all runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from spark_rollup.judging.incidents import FleetIncident
from tests.lab.said import Said
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


def audited(home: Path) -> Sequence[FleetIncident]:
    """Audit a stage's agents that were told as an operator would: two agents on one volume are no fleet.

    Args:
        home: The stage's directory; `told` and `audit` are made in it.
    """
    from spark_rollup.audit import run
    from spark_rollup.config import AuditOptions
    from spark_rollup.spark.session import build_session

    for pod in sorted((home / "shipped").glob("*-told")):
        shutil.copytree(pod, home / "told" / pod.name)
    options = AuditOptions(home / "told", home / "audit")
    return run(build_session(master="local[1]", partitions=1), options).data.incidents
