"""All that can name an incident of the fleet: rules of the audit, and what `verify` proves.

Alerts, runbooks, metrics and the lists on pages are made of `NAMING`. `state-equal` is not in it: it refutes what an
agent suspects and is resolved at once, so it names no open incident and asks for nothing to
be done.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.contract.events import Severity
from spark_rollup.correlate import RULES
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.proofs import replicas_differ, state_differs, state_equal

PROOFS: tuple[RuleMeta, ...] = (state_differs.META, replicas_differ.META)
"""What `verify` finds against a copy."""

NAMING: tuple[RuleMeta, ...] = (*(rule.meta for rule in RULES), *PROOFS)

REFUTING: tuple[RuleMeta, ...] = (state_equal.META,)
"""What `verify` finds in favour of a copy."""


def module_of(meta: RuleMeta) -> str:
    """Return the module whose docstring says what it finds, when, and what not."""
    package = "correlate" if meta not in (*PROOFS, *REFUTING) else "proofs"
    return f"spark_rollup.{package}.{meta.id.replace('-', '_')}"


def severities(*, verified: bool) -> Mapping[str, Severity]:
    """Return what an audit can find, by id, with the highest severity of each.

    Without what `verify` found it has no right to say that nothing differs.
    """
    return {meta.id: meta.severity for meta in NAMING if verified or meta not in PROOFS}
