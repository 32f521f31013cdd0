"""All that is said of one application: findings, and what tables say of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spark_rollup.fleet.alone import alone, refutations, settled, with_local_incidents
from spark_rollup.fleet.application import Application, Rule
from spark_rollup.fleet.churn import per_hour
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.restarts import restarts
from spark_rollup.fleet.rows import Entry

FINDINGS, RESTARTS, CHURN = "findings", "restarts", "churn"


def judge(app: Application, rules: Sequence[Rule]) -> Iterator[tuple[str, Row]]:
    """Judge an application: (table, row)."""
    app = replace(app, refuted=refutations(app.proofs or ()))
    found = [row for rule in rules for row in rule.find(app)]
    if app.proofs is not None:
        found = [*settled(app, found), *app.proofs]
    found += list(alone(app, found))
    for row in with_local_incidents(app, found):
        row["evidence"] = [x._asdict() if isinstance(x, Entry) else x for x in row["evidence"] or ()]
        yield FINDINGS, row
    if app.name is not None:
        known = replace(app, refuted=refutations(found))
        yield from ((RESTARTS, row) for row in restarts(known, found))
        yield from ((CHURN, row) for row in per_hour(app))
