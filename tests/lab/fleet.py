"""What the rollup says of what a run's agents shipped.

By its rules without Spark, a second, not a minute; and by its audit, in one Spark session for all runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.contract.audited import FLEET, FleetIncident
from spark_rollup.correlate import RULES, missing_standby, unprotected_task
from tests.lab.said import Said
from tests.spark_rollup.support.plain import events_of_data, tables
from tests.support.shipped import Data


def audit(records: Sequence[Data], standbys: bool) -> list[Said]:
    """Ask every rule, once about what the told agents shipped and once about what the untold ones did.

    `standbys`: whether tasks are to have a copy.
    """
    return [said for kind in ("told", "untold") for said in _audit(records, kind, standbys)]


def _audit(records: Iterable[Data], kind: str, standbys: bool) -> Iterable[Said]:
    events = [data for data in records if data["pod"].endswith(f"-{kind}")]
    if not events:
        return
    as_of = max(data["observed_at_us"] for data in events)
    without = () if standbys else (missing_standby.RULE, unprotected_task.RULE)
    rules = [rule for rule in RULES if rule not in without]
    for row in tables(events_of_data(events), as_of, rules)["findings"]:
        if row["reported_by"] == FLEET:
            name, where = row["detector"], row["task_id"] or "-"
            words = (row["severity"], row["confidence"])
            yield Said(f"rollup-{kind}", name, where, "-", *words, "-", f"{name} of {row['pod']}", "", as_of)


def audited(home: Path) -> Sequence[FleetIncident]:
    """Audit a stage's agents that were told as an operator would: two agents on one volume are no fleet.

    In the stage's directory `told` and `audit` are made.
    """
    from spark_rollup.audit import run
    from spark_rollup.config import AuditOptions
    from spark_rollup.spark.session import build_session

    for pod in sorted((home / "shipped").glob("*-told")):
        shutil.copytree(pod, home / "told" / pod.name)
    options = AuditOptions(home / "told", home / "audit")
    return run(build_session(master="local[1]", partitions=1), options).incidents
