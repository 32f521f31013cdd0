"""What a scenario is: a life, on which plans it does damage, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.lab.plan import ALOS, EOS, TRANSACTIONAL, TRANSACTIONAL_SINCE, Plan, is_exposed, numbers
from tests.lab.written import Play

MANY = "kv,plain,memory,window,session,table,global,repartition"
ODD = "kv,unlogged,join"
BOTH = (ALOS, EOS)
Affected = Callable[[Plan], bool]


def releases(*ranges: tuple[str, str]) -> Affected:
    """From a release to the one with the fix, which is not affected; none named: every later one has it, too."""

    def affected(plan: Plan) -> bool:
        runs = numbers(plan.release)
        return any(numbers(first) <= runs and (not fix or runs < numbers(fix)) for first, fix in ranges)

    return affected


def but_transactional(*ranges: tuple[str, str]) -> Affected:
    """The same without transactional stores: nothing uncommitted comes into them."""
    return lambda plan: releases(*ranges)(plan) and not plan.is_transactional


def or_transactional(*ranges: tuple[str, str]) -> Affected:
    """The same, and every release with transactional stores: what lost its offset is not wiped."""
    return lambda plan: releases(*ranges)(plan) or plan.is_transactional


def exposed(plan: Plan) -> bool:
    return is_exposed(plan.release) or (plan.before != "" and is_exposed(plan.before))


def never(_plan: Plan) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Scenario:
    """One entry of the catalogue."""

    play: Play  # what happens
    guarantees: tuple[str, ...] = BOTH  # with which it is run
    plan: Mapping[str, Any] = field(default_factory=dict)  # fields of `Plan` beside release and guarantee
    # Tells whether a plan's release must be found out with its settings; of others the same life is quiet
    affected: Affected = never
    # Detectors of which the told agent must say one at warning or above on an affected release
    find: tuple[str, ...] = ()
    severity: str = ""  # at which it must, if not any of those will do
    allow: tuple[str, ...] = ()  # detectors that may say so beside them, on an affected release
    always: tuple[str, ...] = ()  # detectors that may say so on every release: the hazard is there
    since: str = "2.0.0"  # oldest release it can be played on
    broker_since: str = "3.9.1"  # oldest release of the broker that it needs
    fault: str = ""  # planted into Kafka Streams, see `planted.py`; it is played on a ground

    def must(self, plan: Plan) -> tuple[str, ...]:
        """Give the detectors of which one must say it; none: nothing is to be found with this plan."""
        return self.find if self.affected(plan) else ()

    def planned(self, release: str, guarantee: str, twist: Mapping[str, str] | None = None) -> Plan:
        """Give the plan of one run.

        `twist`: settings instead of the scenario's, empty: without; `stores` are added to its own.
        """
        fields = dict(self.plan)
        settings: dict[str, str | None] = {key: value or None for key, value in (twist or {}).items()}
        stores = str(fields.get("stores", "kv"))
        stores = STORES_OF[stores](release) if stores in STORES_OF else stores
        more = settings.pop("stores", "")
        fields["stores"] = f"{stores},{more}" if more else stores
        fields["settings"] = {**fields.get("settings", {}), **settings}
        return Plan(release, guarantee, **fields)


def transactional(scenario: Scenario, since: str = TRANSACTIONAL_SINCE) -> Scenario:
    """Give the same with transactional stores; what an older release leaves, or upgrades begin with, is without."""
    name = "later" if "before" in scenario.plan else "settings"
    settings = {**scenario.plan.get(name, {}), TRANSACTIONAL: "true"}
    return replace(scenario, plan={**scenario.plan, name: settings}, since=since)


def stores_for(release: str) -> str:
    """Every usual kind of store that a release has."""
    return MANY + (",versioned" if numbers(release) >= (3, 5) else "")


def odd_stores_for(release: str) -> str:
    """Stores with a life of their own: without a changelog, of joins, held back in memory."""
    return ODD + (",foreign,suppress" if numbers(release) >= (2, 5) else "")


STORES_OF: dict[str, Callable[[str], str]] = {"all": stores_for, "odd": odd_stores_for}
"""Sets of stores that depend on the release, by the name that a plan gives them."""
