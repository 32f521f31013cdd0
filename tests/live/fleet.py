"""The rollup's audit over what the told agents of a run shipped: the real one, in one Spark session for all runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from spark_rollup.audit import run
from spark_rollup.config import AuditOptions
from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.spark.session import build_session


def audited(home: Path) -> Sequence[FleetIncident]:
    """Audit a stage's agents that were told as an operator would: two agents on one volume are no fleet.

    Args:
        home: The stage's directory; `told` and `audit` are made in it.
    """
    for pod in sorted((home / "shipped").glob("*-told")):
        shutil.copytree(pod, home / "told" / pod.name)
    options = AuditOptions(home / "told", home / "audit")
    return run(build_session(master="local[1]", partitions=1), options).incidents
