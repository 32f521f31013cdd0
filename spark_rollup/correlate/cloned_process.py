"""One process id alive on two pods at the same time: a volume that was cloned, or is shared.

Signal: the process id that agents read in `kafka-streams-process-metadata`, and when each pod's process lived.
Fires when: the same id is seen on two pods of one application and namespace while a process lives on each, for longer
    than clocks can differ; critical if both hold tasks meanwhile: only a process with stores on disk uses that id.
Clears when: one of the two processes ends, or shows another id.
Stays quiet when: a volume moves (the process that had it before is gone by then), or the copy is idle, of which
    `cloned-volume` reports it.
Source: StateDirectory.initializeProcessId; StreamsProducer at exactly_once_v2 makes its transactional.id of the process
    id, so two of them fence each other without end: every task is wiped every few seconds, and no work is done
    (seen live on 4.3.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.fleet.application import Application, Rule
from spark_rollup.fleet.clones import Pair, Shared, alive_together, holders, is_over, reported
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.words import chain, entry, finding

META = RuleMeta(
    id="cloned-process",
    title="One process id is alive on two pods",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.SHARED_STATE,
    joined_by=(("application_id", "pods"),),
    consequence=(
        "Under exactly_once_v2 both fence each other without end: every task is wiped again and "
        "again, and no work is done."
    ),
    twin=Twin("a task moved, each pod kept its process id", "benign-move-3.9.2"),
)


def find(app: Application) -> Iterator[Row]:
    """Pair pods whose processes live under one id at once."""
    together: dict[Pair, list[Shared]] = defaultdict(list)
    for x in alive_together(app):
        together[x.pair].append(x)
    for pair, times in together.items():
        if max(x.to_us for x in times) >= app.since_us:
            yield _finding(app, pair, times)


def _finding(app: Application, pair: Pair, times: list[Shared]) -> Row:
    pod, other = pair
    from_us, to_us = min(x.from_us for x in times), max(x.to_us for x in times)
    working = holders(app, pair, from_us, to_us) > 1
    return finding(
        META, app.where, from_us, pod=pod, identity=other,
        severity=(Severity.CRITICAL if working else Severity.WARNING).value,
        confidence=(Confidence.CONFIRMED if working else Confidence.SUSPECTED).value,
        status=(Status.RESOLVED if is_over(app, pair, to_us) else Status.OPEN).value,
        ended_us=to_us,
        affected=Affected.YES.value,
        summary=f"{pod} and {other} run {app.name} under one process id: a cloned or shared volume; under"
        " exactly_once_v2 they fence each other without end",
        evidence=chain(
            entry(to_us, f"both live from {moment(from_us)} to {moment(to_us)}", app.name),
            then=(
                entry(
                    x.from_us, f"process id {x.of.key} is alive on {pod} and on {other}",
                    f"{app.name}/kafka-streams-process-metadata",
                )
                for x in times
            ),
        ),
        next_action=f"Stop one of {pod} and {other}, if possible the one that got the copy, and check its volume claim."
        " If its volume is a copy, delete kafka-streams-process-metadata there, or the application's directory, before"
        " you start it again. If both use one claim, delete nothing, and give the stopped one its own volume.",
        pods=[pod, other],
        confirms=reported(app, pair),
    )  # fmt: skip


RULE = Rule(META, find)
