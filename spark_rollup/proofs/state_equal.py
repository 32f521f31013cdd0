"""A store holds what its changelog says, and its agent suspected otherwise: a refutation, resolved at once.

It names no incident and has neither alert nor runbook: there is nothing to be done.
"""

from __future__ import annotations

from agent.contract.events import Level, Severity
from agent.contract.mechanisms import Mechanism
from spark_rollup.fleet.meta import RuleMeta

META = RuleMeta(
    id="state-equal",
    title="A store holds what its changelog says: it is not what its agent suspects",
    level=Level.EVENT,
    severity=Severity.INFO,
    mechanism=Mechanism.UNEQUAL_COPIES,
)
