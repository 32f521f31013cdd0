"""One process id or one store IDENTITY before the eyes of two pods at once: a cloned or shared volume.

Signal: process ids and store identities that agents see, per boot of each agent.
Fires when: the same process id, or the same store's IDENTITY, is seen on two pods of one application and namespace at
    times that overlap by more than clocks can differ.
Clears when: one of the two no longer shows it.
Stays quiet when: a volume moves (the agent that had it before is gone by then), a copy is in another namespace, or
    processes with one id live on both (`cloned-process` reports that).
Source: KAFKA-6647 and the process file `kafka-streams-process-metadata` (2.6.2, 2.7.1, 2.8 and later).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.fleet.application import Application, Rule
from spark_rollup.fleet.clones import (
    PROCESS,
    STORE,
    Pair,
    Shared,
    alive_together,
    holders,
    is_over,
    reported,
    shared,
)
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.words import chain, entry, finding, place

META = RuleMeta(
    id="cloned-volume",
    title="Two pods have the same volume, or copies of it, at once",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.SHARED_STATE,
    joined_by=(("application_id", "pods"),),
    upstream=("KAFKA-6647",),
    twin=Twin("N7, a task moved, its identities did not", "benign-move-3.9.2"),
)

MAX_THINGS = 10
"""How many process ids and stores the evidence names; the summary counts them all."""


def find(app: Application) -> Iterator[Row]:
    """Pair pods that show the same thing at once."""
    found: dict[Pair, list[Shared]] = defaultdict(list)
    for x in shared(app):
        found[x.pair].append(x)
    # by `cloned-process`, and once is enough
    lasting = {x.pair for x in alive_together(app) if not is_over(app, x.pair, x.to_us)} if found else set()
    for pair, things in found.items():
        if pair not in lasting and max(x.to_us for x in things) >= app.since_us:
            yield _finding(app, pair, things)


def _finding(app: Application, pair: Pair, things: list[Shared]) -> Row:
    pod, other = pair
    from_us, to_us = min(x.from_us for x in things), max(x.to_us for x in things)
    both = holders(app, pair, from_us, to_us) == 2
    times = f"{pod} and {other} show it from {moment(from_us)} to {moment(to_us)}"
    shown = sorted(
        entry(
            x.from_us, f"{_noun(x)} {x.of.key} is on {pod} and on {other} at once",
            place(app.name, x.of.task_id, x.of.store),
        )
        for x in things
    )  # fmt: skip
    return finding(
        META, app.where, from_us, pod=pod, identity=other,
        severity=(Severity.CRITICAL if both else Severity.WARNING).value,
        confidence=Confidence.CONFIRMED.value,
        status=(Status.RESOLVED if is_over(app, pair, to_us) else Status.OPEN).value,
        ended_us=to_us,
        affected=Affected.YES.value,
        summary=f"{pod} and {other} have {_what(things)} at once; {'both' if both else 'not both'} work on it",
        evidence=chain(entry(from_us, times, app.name), then=shown[:MAX_THINGS]),
        next_action=f"Stop the instance on {other} cleanly and give it its own empty volume; check whether the claim is"
        f" shared (ReadWriteMany) or was cloned. Keep the volume of {pod} as it is until then.",
        pods=[pod, other],
        confirms=reported(app, pair),
    )  # fmt: skip


def _noun(x: Shared) -> str:
    return "process id" if x.of.what == PROCESS else "store identity"


def _what(things: list[Shared]) -> str:
    stores = len({x.of.key for x in things if x.of.what == STORE})
    words = ["the same process id"] if any(x.of.what == PROCESS for x in things) else []
    if stores:
        words.append(
            "the same identity of a store" if stores == 1 else f"the same identity of {stores} stores"
        )
    return " and ".join(words)


RULE = Rule(META, find)
