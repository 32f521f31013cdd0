"""The live agent: wires the edges to the pipeline, turns its loop, stops in order."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from agent import __version__
from agent.clock import Clock, SystemClock, current_boot
from agent.config import AgentSettings, Config
from agent.contract.events import Change, Kind, Origin, Record
from agent.engine.one_reading import strangers
from agent.engine.pipeline import Pipeline
from agent.errors import ConfigError, SpoolError, SpoolFullError, SpoolInUseError
from agent.home.baseline import BaselineKeeper, resume
from agent.home.canary import make_canary
from agent.home.proofs import report
from agent.inventory.disk import LockState
from agent.lookout.self_limits import Ceilings, SelfLimits
from agent.lookout.walk import WATCHING
from agent.lookout.watch_keeper import WatchKeeper, inotify_maker
from agent.lookout.watch_loop import Mode, WatchLoop
from agent.observe.kernel_disk import KernelDisk
from agent.observe.process import ProcessView
from agent.preflight.facts import Facts, survey
from agent.process.preflight_thread import PreflightThread
from agent.process.snapshots import Snapshots
from agent.publish.exposition import Exposition
from agent.publish.http import Answers, HttpServer
from agent.publish.kubernetes import KubernetesEvents
from agent.publish.page_data import PageCache, PageData, make_page
from agent.publish.snapshot import MetricsSnapshot
from agent.publish.text import FindingLog
from agent.ship.shipper import Shipper, ShipperThread
from agent.ship.sinks.base import make_sink
from agent.ship.spool import Spool
from agent.ship.values import Limits
from agent.watch.mailbox import Mailbox

if TYPE_CHECKING:
    from agent.process.digest_maker import DigestMaker

LOG = logging.getLogger(__name__)

HEARTBEAT_LIMIT_S = 60.0
"""A worker that did not complete a turn for this long counts as dead; its loop turns every few seconds."""
COMPLAIN_EVERY_S = 60.0
PROOFS_EVERY_S = 1.0
"""To list a directory in every turn costs more than all else that a turn does by itself."""
STOP_EVENTS_S = 2.0
STOP_SUMMARIES_S = 3.0
"""Enough for the last summaries of some thousand tasks. The others keep the previous one; all changes were reported."""
YOUNG_OBJECTS = 50_000
"""Made between two searches for cycles. The inventory has none, and Python's 700 cost a tenth of the first walk."""


class Supervisor:
    """One run of the agent on one state directory."""

    def __init__(
        self,
        config: Config,
        clock: Clock | None = None,
        runbook: Callable[[str, bool], str | None] = lambda *_: None,
    ) -> None:
        """Wire everything; nothing runs before `run`.

        Spool, own directory or sink that cannot be used are reported, and the agent runs without them: a sidecar
        that does not start keeps the application from starting. Raises `ConfigError`: the address of /metrics
        cannot be used, or digests are asked for and cannot be made. Raises `SpoolInUseError`: another agent uses
        the spool: one of the two is a mistake. `runbook`: id, whether as HTML -> its text; None = there is none.
        """
        settings = config.agent
        self._config, self._settings, self._clock = config, settings, clock or SystemClock()
        self._desk, self._runbook = PageCache(self._unhealthy), runbook
        self._root = Path(settings.state_dir)
        self._stop = threading.Event()
        self._reason = "stopped"
        self._findings = FindingLog()
        self._heartbeat_s: float | None = None
        self._names_checked = False
        self._complain_s = self._proofs_s = 0.0
        self._linger_until_s: float | None = None
        self._sink_refusal = self._spool_refusal = ""
        self._origin = origin = settings.origin(os.urandom(6).hex())  # fresh with every start
        self._unspooled: Counter[str] = Counter()
        self._spool = self._make_spool(config, origin)
        self._shipper = self._make_shipper(config)
        self._thread = (
            ShipperThread(self._spool, self._shipper, self._clock) if self._spool and self._shipper else None
        )
        disk = KernelDisk(self._root, ProcessView(self._root, self._clock).visible)
        self._pipeline = Pipeline(
            disk, config.applications, self._clock.now_us(), self._emit, disabled=config.disabled,
            on_fault=_log_fault, stopwatch=time.perf_counter, rescan_us=0,
            # nothing else takes them; those that a spool should have taken are counted
            wants_summaries=bool(settings.spool),
            wants_transitions=bool(settings.spool) or config.digest.at != "off",
        )  # fmt: skip
        self._events = self._make_events(config, origin)
        self._own = self._make_own(settings, origin)
        self._baseline = (
            BaselineKeeper(self._own.baseline, self._pipeline, str(self._root.absolute()), current_boot)
            if self._own
            else None
        )
        self._digests = self._make_digests(config)
        self._lookout = self._make_lookout(settings, disk)
        self._snapshots = Snapshots(
            self._lookout, self._clock, with_stores=settings.metrics_detail == "store"
        )
        self._preflight = PreflightThread(self._gather_facts, self._clock)
        self._http = self._make_http(settings)

    def run(self) -> int:
        """Watch until SIGTERM or SIGINT.

        Gives exit code: 0 after an orderly stop.
        """
        gc.set_threshold(YOUNG_OBJECTS)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._emit(Record(Kind.LIFECYCLE, self._clock.now_us(), {"phase": "started", "reason": "start"}))
        if self._thread is not None:
            self._thread.start()
        if self._events is not None:
            self._events.start()
        if self._http is not None:
            self._http.start()
            LOG.info("serving metrics", extra={"port": self._http.port})
        LOG.info("watching", extra={"state_dir": str(self._root), "agent_version": __version__})
        for id_, why in self._config.disabled.items():
            LOG.warning("detector disabled", extra={"detector": id_, "reason": why.value})
        for note in self._config.notes:
            LOG.warning("%s", note)
        try:
            if self._baseline is not None:
                resume(self._baseline, self._pipeline, self._clock.now_us())
                if self._digests is not None:
                    self._digests.resume()
            self._lookout.start()
            while not self._stop.is_set() or self._lingers():
                self._turn()
        finally:
            self._end()
        return 0

    # -- the loop ---------------------------------------------------------------------------------------

    def _lingers(self) -> bool:
        """Return whether to watch on after a signal: an application that closes now says most in its last seconds."""
        now_s = self._clock.monotonic_s()
        if self._linger_until_s is None:
            self._linger_until_s = now_s + self._settings.linger_seconds
        if now_s >= self._linger_until_s:
            return False
        return (self._digests is not None and self._digests.is_busy) or any(
            application.lock is LockState.HELD or any(task.held for task in application.tasks.values())
            for application in self._pipeline.inventory.applications.values()
        )

    def _may_rest(self) -> bool:
        """Return whether nothing here waits for the end of a turn."""
        is_writing = self._baseline is not None and self._baseline.is_writing
        is_asked = self._desk.is_asked or self._snapshots.is_asked
        return not (is_writing or is_asked or self._digests is not None or self._stop.is_set())

    def _turn(self) -> None:
        was_ready = self._lookout.is_ready
        self._lookout.turn(self._may_rest)
        if self._lookout.is_ready and not was_ready:
            gc.freeze()  # the inventory stays: no search for cycles need walk through it
            self._preflight.start()  # not before: the first reading is what the start waits for
        now_us, now_s = self._clock.now_us(), self._clock.monotonic_s()
        if self._lookout.is_ready and not self._names_checked:
            self._check_names()
        if self._own and self._baseline and self._lookout.is_ready:
            if now_s >= self._proofs_s:
                self._proofs_s = now_s + PROOFS_EVERY_S
                report(self._own.directory, self._pipeline, now_us)
            self._baseline.save_if_due(now_us, now_s, self._clock.monotonic_s)
        if self._digests is not None and self._lookout.is_ready:
            self._digests.turn()
        self._heartbeat_s = now_s
        self._desk.serve(self._page_data)
        self._snapshots.serve(self._make_snapshot)

    def _make_snapshot(self) -> MetricsSnapshot:
        return self._snapshots.make(
            self._spool, self._shipper, self._baseline, self._events, self._preflight.levels(), self._unspooled,
            self._digests.metrics() if self._digests is not None else None,
        )  # fmt: skip

    def _check_names(self) -> None:
        """Log once, when the first application is there, if a flag names one that is not."""
        inventory = self._pipeline.inventory
        self._names_checked = any(x.exists for x in inventory.applications.values())
        unknown = strangers(self._config.applications, inventory)
        if unknown is not None:
            LOG.warning("%s", unknown)

    # -- edges ------------------------------------------------------------------------------------------

    def _emit(self, record: Record) -> None:
        if self._digests is not None:
            self._digests.hear(record)
        self._findings.write(record)
        if self._events is not None:
            self._events.offer(record)
        if self._spool is None:
            if self._settings.spool:  # asked for, and refused: what is not shipped is counted as given up
                self._unspooled[record.kind.value] += 1
            return
        try:
            self._spool.append(record)
            if record.body.get("change") in _LAST_WORDS:
                self._spool.seal()  # the pod may be about to go: what waits is shipped now
        except SpoolFullError:
            pass  # counted, announced, and logged by the spool
        except SpoolError as error:
            now_s = self._clock.monotonic_s()
            if now_s >= self._complain_s:
                self._complain_s = now_s + COMPLAIN_EVERY_S
                LOG.error("spool refuses records: %s", error)

    def _end(self) -> None:
        now_us = self._clock.now_us()
        self._preflight.stop()
        self._lookout.stop()
        if self._digests is not None:
            self._digests.stop()
        until_s = self._clock.monotonic_s() + STOP_SUMMARIES_S
        self._pipeline.summarise(now_us, has_time=lambda: self._clock.monotonic_s() < until_s)
        self._pipeline.beat(now_us)
        if self._baseline is not None and self._lookout.is_ready:
            self._baseline.finish(now_us, self._reason)
        self._emit(Record(Kind.LIFECYCLE, now_us, {"phase": "stopping", "reason": self._reason}))
        if self._thread is not None:
            self._thread.stop(self._settings.grace_seconds)
        if self._events is not None:
            self._events.stop(STOP_EVENTS_S)
        if self._spool is not None:
            self._spool.close()
        if self._own is not None:
            self._own.close()
        if self._http is not None:
            self._http.stop()
        LOG.info("stopped", extra={"reason": self._reason})

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._reason = signal.Signals(number).name
        self._stop.set()

    def _make_events(self, config: Config, origin: Origin) -> KubernetesEvents | None:
        if config.kubernetes.events == "off":
            return None
        return KubernetesEvents(config.kubernetes, origin)

    def _make_spool(self, config: Config, origin: Origin) -> Spool | None:
        if not config.agent.spool:
            return None
        sizes = config.ship
        limits = Limits(
            seal_bytes=int(sizes.seal_kib * 1024),
            seal_age_s=sizes.seal_seconds,
            cap_bytes=int(sizes.cap_mib * 1024 * 1024),
        )
        try:
            return Spool(
                Path(config.agent.spool), origin, clock=self._clock, limits=limits, state_directory=self._root
            )
        except SpoolInUseError:
            raise
        except SpoolError as error:
            self._spool_refusal = str(error)
            LOG.error("no spool: events are only logged: %s", error)
            return None

    def _make_own(self, settings: AgentSettings, origin: Origin) -> Spool | None:
        """Give where baseline and canary are kept: in a spool's directory, or in one of their own without records."""
        if not settings.home or settings.home == settings.spool:
            if settings.spool and self._spool is None:
                LOG.error("no home: a restart will lose the baseline, which is kept in the spool")
            return self._spool
        try:
            return Spool(Path(settings.home), origin, clock=self._clock, state_directory=self._root)
        except SpoolError as error:
            LOG.error("no home: a restart will lose the baseline: %s", error)
            return None

    def _make_digests(self, config: Config) -> DigestMaker | None:
        if config.digest.at == "off":
            return None
        from agent.process.digest_maker import DigestMaker  # an agent without digests loads nothing of it

        work = self._own.directory if self._own else None
        return DigestMaker(config, work, self._pipeline.inventory, self._emit, self._clock)

    def _make_lookout(self, settings: AgentSettings, disk: KernelDisk) -> WatchLoop:
        mailbox = Mailbox()
        canary = make_canary(self._own.directory if self._own else None)
        make = inotify_maker(self._root, mailbox, self._clock, canary.directory if canary else None)
        polls = settings.watch_mode == "poll"
        ceilings = Ceilings(settings.cpu_share, int(settings.memory_mib * 1024 * 1024))
        rounds = replace(WATCHING, round_s=settings.rescan_seconds)
        return WatchLoop(
            root=self._root, pipeline=self._pipeline, disk=disk, mailbox=mailbox, clock=self._clock,
            keeper=WatchKeeper(None if polls else make, canary), limits=SelfLimits(ceilings),
            mode=Mode(polls, settings.watch_mode == "auto", rounds), pause=self._stop.wait,
        )  # fmt: skip

    def _make_shipper(self, config: Config) -> Shipper | None:
        if self._spool is None or not config.agent.ship_to:
            return None
        # one request may not outlast the last flush
        timeout_s = min(config.ship.timeout_seconds, max(1.0, config.agent.grace_seconds))
        ship = replace(config.ship, timeout_seconds=timeout_s)
        try:
            return Shipper(self._spool, make_sink(config.agent.ship_to, ship, self._root))
        except ConfigError as error:
            self._sink_refusal = str(error)
            LOG.error("no sink: events stay in the spool: %s", error)
            return None

    def _gather_facts(self, waited_s: float) -> Facts:
        now_us, refused = self._clock.now_us(), (self._sink_refusal, self._spool_refusal)
        return Facts(self._config, survey(self._root), now_us, waited_s, *refused)

    def _make_http(self, settings: AgentSettings) -> HttpServer | None:
        if not settings.listen:
            return None
        host, _, port = settings.listen.rpartition(":")
        exposition = Exposition(self._snapshots.latest, [x.meta for x in self._pipeline.detectors])
        return HttpServer(
            Answers(
                metrics=exposition.answer, unhealthy=self._unhealthy, unready=self._unready, page=self._page,
                findings=partial(self._desk.findings, self._origin), runbook=self._runbook,
            ),
            host, int(port),
        )  # fmt: skip

    def _page(self) -> str:
        from agent.publish.page import render  # 1 MiB, for those who open it

        return render(*self._desk.fetch())

    def _page_data(self) -> PageData:
        return make_page(
            self._pipeline,
            self._config,
            self._clock.now_us(),
            watches=self._lookout.keeper.counters().watches,
            ready=self._lookout.is_ready,
        )

    def _unhealthy(self) -> str | None:
        """Judge the worker by its own heartbeat, never by that of a thread that watches over it."""
        if self._heartbeat_s is None:
            return "the worker has not started"
        age_s = self._clock.monotonic_s() - self._heartbeat_s
        if age_s <= HEARTBEAT_LIMIT_S:
            return None
        return f"the worker's loop last completed a turn {age_s:.0f} s ago (limit {HEARTBEAT_LIMIT_S:.0f} s)"

    def _unready(self) -> str | None:
        return None if self._lookout.is_ready else "the watch is not armed"


_LAST_WORDS = frozenset({Change.PROCESS_ENDED.value, Change.APPLICATION_GONE.value})


def _log_fault(detector: str, error: Exception) -> None:
    LOG.error("detector failed", exc_info=error, extra={"detector": detector})
