"""Pipeline values -> the immutable snapshot that a scrape reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from agent import __version__
from agent.clock import Clock
from agent.contract.incidents import gather
from agent.detectors import BY_ID
from agent.engine.pipeline import Pipeline
from agent.findings.alerts import waits
from agent.home.baseline import BaselineKeeper
from agent.inventory.blind_causes import Step
from agent.inventory.blindness import blind_seconds
from agent.inventory.model import Application
from agent.lookout.watch_loop import WatchLoop
from agent.observe.process import resident_bytes
from agent.publish.asked import Asked
from agent.publish.kubernetes import KubernetesEvents
from agent.publish.rows import TaskTable, counts, exposures, incident_rows, shown_findings, task_rows
from agent.publish.snapshot import DigestMetrics, MetricsSnapshot, WatchMetrics
from agent.ship.shipper import Shipper, ShipStats
from agent.ship.spool import Spool
from agent.ship.values import SpoolStats

WAIT_S = 1.0
"""How long a scrape waits for the worker: it turns four times a second at least, unless it is at something long."""
FULL_SHARE = 20
"""A snapshot may take one part in so many of the time: of big directories there are fewer, however many scrapes."""

_WAITS = waits({id_: x.meta for id_, x in BY_ID.items()})


class Snapshots(Asked[MetricsSnapshot]):
    """A snapshot for each scrape: the agent's own numbers anew, rows of tasks within their share of the time."""

    def __init__(self, lookout: WatchLoop, clock: Clock, *, with_stores: bool = False) -> None:
        """Report on `lookout`; for `with_stores` see `TaskTable`."""
        super().__init__(MetricsSnapshot(agent_version=__version__))
        self._table = TaskTable(with_stores=with_stores)
        self._lookout, self._clock = lookout, clock
        self._rows = MetricsSnapshot(agent_version=__version__)
        self._made_s = self._cost_s = 0.0

    def latest(self) -> MetricsSnapshot:
        """Ask the worker for a snapshot; if it does not answer, give the last one. Called by threads of the server."""
        return self.ask(WAIT_S)[0]

    def make(
        self,
        spool: Spool | None,
        shipper: Shipper | None,
        baseline: BaselineKeeper | None,
        events: KubernetesEvents | None = None,
        preflight: Mapping[str, int] | None = None,
        refused: Mapping[str, int] | None = None,
        digests: DigestMetrics | None = None,
    ) -> MetricsSnapshot:
        """Take a snapshot, with the rows of the last one where that was dear.

        `spool`: None = there is none. `shipper`: None = there is no sink. `baseline`: None = there is no home.
        `events`: None = Kubernetes Events are off. `preflight`: check -> 0 ok, 1 warning, 2 failed. `refused`:
        record kind -> records that had no spool to go to, although one was asked for. `digests`: None = they are
        switched off.
        """
        began_s, now_us = self._clock.monotonic_s(), self._clock.now_us()
        if began_s - self._made_s >= self._cost_s * FULL_SHARE:
            self._rows = take_snapshot(self._lookout.pipeline, now_us, self._table)
            self._made_s, self._cost_s = began_s, self._clock.monotonic_s() - began_s
        return replace(
            self._rows, up=True, ready=self._lookout.is_ready, watch=_watch_row(self._lookout, baseline, now_us),
            last_delay_s=self._lookout.delay_s,
            spool=spool.stats() if spool else SpoolStats(dropped=dict(refused or {})),
            ship=shipper.stats() if shipper else ShipStats(), heartbeat_at_us=now_us,
            resident_memory_bytes=resident_bytes(),
            kubernetes_events=dict(events.outcomes) if events is not None else {}, preflight=preflight or {},
            digests=digests,
        )  # fmt: skip


def take_snapshot(pipeline: Pipeline, now_us: int, table: TaskTable) -> MetricsSnapshot:
    """Build what the next scrapes report of applications, tasks, findings and detectors."""
    listed, unlisted = task_rows(pipeline.ledger, now_us)
    still_open = pipeline.ledger.open_findings()
    by_detector: Counter[tuple[str, ...]] = Counter(
        (x.application_id, x.detector, x.severity.value) for x in still_open
    )
    there = {a.id: a for a in pipeline.inventory.applications.values() if a.exists}
    settings = {name: pipeline.settings.of(name) for name in there}
    incidents = gather(shown_findings(pipeline.ledger, now_us), pipeline.settings.accepts)
    shown, incidents_left = incident_rows(incidents, pipeline.ledger.alert_names.of(incidents, _WAITS))
    tasks = table.update(pipeline, now_us)
    return MetricsSnapshot(
        agent_version=__version__, applications=with_tasks(there.values()), tasks=tasks, tasks_seen_at_us=now_us,
        findings=by_detector, reported={(*key,): x for key, x in pipeline.ledger.reported().items()},
        task_findings=listed, unlisted=unlisted, incidents=shown, incidents_unlisted=incidents_left,
        incident_counts=counts(incidents),
        exposures=exposures(
            still_open, {name: table.there.get(name, 0) for name in there}, pipeline.settings.accepts,
            lambda name: str(pipeline.profiles.of(there[name]).range) if name in there else "",
        ),
        exactly_once={name: given.exactly_once for name, given in settings.items()},
        detectors={id_: replace(x) for id_, x in pipeline.stats.items()},
        disabled={id_: why.value for id_, why in pipeline.disabled.items()},
        observations=dict(pipeline.looker.outcomes),
    )  # fmt: skip


def with_tasks(applications: Iterable[Application]) -> tuple[str, ...]:
    """Name the applications that have, or had, a task: those of most recent activity first."""
    found = [x for x in applications if x.tasks]
    return tuple(x.id for x in sorted(found, key=lambda x: (-x.last_activity_us, x.id)))


def _watch_row(lookout: WatchLoop, baseline: BaselineKeeper | None, now_us: int) -> WatchMetrics:
    inventory, keeper = lookout.pipeline.inventory, lookout.keeper
    watch, mail, walk = keeper.counters(), lookout.mailbox.counters(), lookout.reconciler.counters
    return WatchMetrics(
        watches=watch.watches, unwatched=watch.unwatched, events=watch.events, queue_overflows=watch.overflows,
        restarts=keeper.restarts, canary=keeper.has_canary, canaries_missed=keeper.canaries_missed,
        missed_changes=dict(lookout.missed_changes), rescans=dict(lookout.pipeline.rescans),
        blind_s=blind_seconds(inventory, now_us),
        blind_now=frozenset(x.cause for x in inventory.blind if x.ended_us is None),
        slowed_now=frozenset(inventory.slowed), limits=lookout.inotify_limits,
        waiting=mail.waiting + lookout.waiting, coalesced=mail.coalesced, dropped=mail.dropped,
        reconcile_entries=walk.entries, reconcile_round_s=walk.round_s, clock_steps=lookout.clocks.steps,
        self_limited=frozenset(x.slug for x in Step if Step.NONE < x <= lookout.limits.step),
        baselines_written=baseline.written if baseline else 0,
        baseline_failures=baseline.failures if baseline else 0,
    )  # fmt: skip
