"""Digests at the close of stores: begins a process for each, one at a time, and ships what it says. Never waits."""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import agent
from agent.clock import Clock
from agent.config import Config
from agent.contract.buckets import StoreState
from agent.contract.events import Kind, Record
from agent.errors import ConfigError
from agent.inventory.model import Inventory
from agent.publish.snapshot import DigestMetrics
from agent.ship.home import nameless_file
from agent.verify.closes import Close, Closes, Outcome
from agent.verify.stores import INSTALL
from agent.verify.view import remove_leftovers
from agent.verify.worker import Asked, command

LOG = logging.getLogger("agent.digest")

LIBRARIES = ("rocksdict", "xxhash")
PATIENCE_S = 5.0  # how long a process that has to end may take: it removes its private directory

_PACKAGES = Path(agent.__file__).parents[1]
_COMPLAINT_CHARS = 500


@dataclass(slots=True)
class _Making:
    """A process that makes a digest."""

    close: Close | None  # of which store; None = of none any more: it is to end
    process: subprocess.Popen[bytes]
    output: IO[bytes]  # nameless file that it writes to: a pipe would have to be emptied while it runs
    until_s: float = 0.0  # when it is ended by force, if it has to end


class DigestMaker:
    """Everything in it is used by the worker's thread only."""

    def __init__(
        self,
        config: Config,
        work: Path | None,
        inventory: Inventory,
        emit: Callable[[Record], None],
        clock: Clock,
    ) -> None:
        """Prepare; nothing is started before the first turn.

        `work`: the agent's own directory, for views of stores; None = where temporary files go. `emit`: takes the
        event of each digest. Raises `ConfigError`: a library is not installed, or there is no spool that would take
        digests.
        """
        missing = [name for name in LIBRARIES if find_spec(name) is None]
        if missing:
            raise ConfigError(f"digest.at = close needs {' and '.join(missing)}: {INSTALL}")
        if not config.agent.spool:
            raise ConfigError(
                "digest.at = close needs a spool, nothing else takes digests: set spool in [agent]"
            )
        self._config, self._work, self._inventory = config, work, inventory
        self._emit, self._clock = emit, clock
        self._closes = Closes()
        self._touched: dict[tuple[str, str], None] = {}
        self._making: _Making | None = None
        self._left_out = 0
        if work is not None:
            remove_leftovers(work)

    @property
    def is_busy(self) -> bool:
        """Whether digests are to be made."""
        return bool(self._closes) or bool(self._touched)

    def resume(self) -> None:
        """Read everything that an earlier run left in the inventory."""
        self._touched |= {(application, ""): None for application in self._inventory.applications}

    def hear(self, record: Record) -> None:
        """Remember whom a transition is about: only they are read in the next turn."""
        if record.kind is Kind.TRANSITION:
            body = record.body
            self._touched[str(body["application_id"]), str(body.get("task_id") or "")] = None

    def turn(self) -> None:
        """Do what can be done at once: read, end, take, begin."""
        touched, self._touched = self._touched, {}
        for application, task in touched:
            self._closes.see(self._inventory, application, task)
        self._report_left_out()
        if self._making is not None:
            self._attend(self._making)
        if self._making is None and (close := self._closes.next(self._clock.now_us())) is not None:
            self._begin(close)

    def stop(self) -> None:
        """Make no more; what was to be made is counted and logged."""
        number = self._closes.leave_out()
        if number:
            LOG.warning("digests skipped: the agent is stopping", extra={"stores": number})
        making, self._making = self._making, None
        if making is not None:
            making.process.terminate()
            try:
                making.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                making.process.kill()
                making.process.wait()
            making.output.close()

    def metrics(self) -> DigestMetrics:
        """Return what was made, and what it cost."""
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)  # the agent has no other children
        outcomes = {outcome.value: self._closes.outcomes[outcome] for outcome in Outcome}
        return DigestMetrics(outcomes, spent.ru_utime + spent.ru_stime)

    def _begin(self, close: Close) -> None:
        application, task, store = close.key
        settings = self._config.digest
        asked = Asked(
            state_dir=str(Path(self._config.agent.state_dir).absolute()), application=application, task=task,
            store=store, buckets=settings.buckets, cpu_share=settings.cpu_share,
            work=str(self._work.absolute()) if self._work is not None else None, parent=os.getpid(),
        )  # fmt: skip
        with ExitStack() as opened:
            try:
                output = opened.enter_context(nameless_file(self._work))
                process = subprocess.Popen(  # noqa: S603 - this interpreter and a module of ours
                    command(asked), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=_PACKAGES
                )
            except OSError as error:
                self._fail(close, f"can't start a process: {error.strerror}")
                return
            opened.pop_all()
        self._making = _Making(close, process, output)

    def _attend(self, making: _Making) -> None:
        """Take what a process has made, or end it if that is of no use any more."""
        code = making.process.poll()
        if code is not None:
            self._making = None
            if making.close is not None and making.close is self._closes.current:
                self._take(making.close, code, _content(making.output))
            making.output.close()
            return
        now_s = self._clock.monotonic_s()
        if making.until_s:
            if now_s >= making.until_s:
                making.process.kill()
        elif making.close is not self._closes.current:
            making.process.terminate()
            making.close, making.until_s = None, now_s + PATIENCE_S

    def _take(self, close: Close, code: int, said: bytes) -> None:
        if code:
            self._fail(close, said.decode("utf-8", "replace")[-_COMPLAINT_CHARS:] or f"exit code {code}")
            return
        try:
            body = json.loads(said[said.rfind(b"\n") + 1 :])  # a library may have warned before
        except ValueError:
            self._fail(close, f"not understood: {said[-_COMPLAINT_CHARS:]!r}")
            return
        (digest,) = body["digests"]
        if digest["state"] != StoreState.CLOSED:
            self._fail(close, "its files do not show that they hold exactly what its offset says")
            return
        self._closes.end(Outcome.MADE)
        self._emit(Record(Kind.DIGEST, self._clock.now_us(), body))
        entries = sum(one["entries"] for one in digest["databases"])
        LOG.info("digest made", extra=_place(close) | {"entries": entries, "packed_bytes": len(said)})

    def _fail(self, close: Close, why: str) -> None:
        self._closes.end(Outcome.FAILED)
        LOG.warning("no digest of a closed store: %s", why, extra=_place(close))

    def _report_left_out(self) -> None:
        left_out = self._closes.outcomes[Outcome.LEFT_OUT]
        if left_out > self._left_out:
            LOG.warning(
                "digests skipped: too many stores are waiting", extra={"stores": left_out - self._left_out}
            )
            self._left_out = left_out


def _content(output: IO[bytes]) -> bytes:
    output.seek(0)
    return output.read()


def _place(close: Close) -> dict[str, object]:
    application, task, store = close.key
    return {"application_id": application, "task_id": task, "store": store}
