"""Pipeline values -> the immutable snapshot that a scrape reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
from agent.publish.kubernetes import KubernetesEvents
from agent.publish.rows import TaskTable, counts, exposures, incident_rows, shown_findings, task_rows
from agent.publish.snapshot import DigestMetrics, MetricsSnapshot, WatchMetrics
from agent.ship.shipper import Shipper, ShipStats
from agent.ship.spool import Spool
from agent.ship.values import SpoolStats

EVERY_S = 1.0
"""Nobody scrapes more often."""
FULL_SHARE = 20
"""After a change a snapshot may take one part in so many of the time: big directories get fewer."""
IDLE_SHARE, IDLE_REST_S = 1000, 5.0
"""The same while nothing changes, and the least distance: then only times and counts of what ran move on."""

_WAITS = waits({id_: x.meta for id_, x in BY_ID.items()})


class Snapshots:
    """The latest snapshot; rows of tasks are recreated when something changed, the agent's own numbers always."""

    def __init__(self, lookout: WatchLoop, clock: Clock, *, with_stores: bool = False) -> None:
        """Report on `lookout`; for `with_stores` see `TaskTable`."""
        self._table = TaskTable(with_stores=with_stores)
        self._lookout, self._clock = lookout, clock
        self._snapshot = MetricsSnapshot(agent_version=__version__)
        self._revision = (-1, -1)
        self._made_s = self._refreshed_s = self._cost_s = 0.0
        self.is_settled = False
        """Nothing has changed since the last snapshot: the next one may wait for a whole turn."""

    def latest(self) -> MetricsSnapshot:
        """Give the latest snapshot; may be called by any thread."""
        return self._snapshot

    def refresh(
        self,
        spool: Spool | None,
        shipper: Shipper | None,
        baseline: BaselineKeeper | None,
        events: KubernetesEvents | None = None,
        preflight: Callable[[], Mapping[str, int]] = dict,
        refused: Mapping[str, int] | None = None,
        digests: Callable[[], DigestMetrics | None] = lambda: None,
    ) -> None:
        """Bring the snapshot up to date, within its share of the time.

        `spool`: None = there is none. `shipper`: None = there is no sink. `baseline`: None = there is no home.
        `events`: None = Kubernetes Events are off. `preflight` gives check -> 0 ok, 1 warning, 2 failed. `refused`:
        record kind -> records that had no spool to go to, although one was asked for. `digests` gives None where they
        are switched off.
        """
        began_s = self._clock.monotonic_s()
        pipeline, now_us = self._lookout.pipeline, self._clock.now_us()
        revision = (pipeline.revision, pipeline.looker.outcomes.total())
        is_idle = revision == self._revision and self._lookout.is_ready == self._snapshot.ready
        self.is_settled = is_idle
        if began_s < self._refreshed_s + EVERY_S:
            return
        self._refreshed_s = began_s
        rest_s = max(self._cost_s * IDLE_SHARE, IDLE_REST_S) if is_idle else self._cost_s * FULL_SHARE
        rows = self._snapshot
        if began_s - self._made_s >= rest_s:
            rows = take_snapshot(pipeline, now_us, self._table)
            self._made_s, self._revision = began_s, revision
            self._cost_s = self._clock.monotonic_s() - began_s
        self._snapshot = replace(
            rows, up=True, ready=self._lookout.is_ready, watch=_watch_row(self._lookout, baseline, now_us),
            last_delay_s=self._lookout.delay_s,
            spool=spool.stats() if spool else SpoolStats(dropped=dict(refused or {})),
            ship=shipper.stats() if shipper else ShipStats(), heartbeat_at_us=now_us,
            resident_memory_bytes=resident_bytes(),
            kubernetes_events=dict(events.outcomes) if events is not None else {}, preflight=preflight(),
            digests=digests(),
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
