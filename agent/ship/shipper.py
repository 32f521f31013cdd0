"""The shipper: sealed segments to the sink, in order; one is let go only after the acknowledgement.

`Shipper` has no thread and does not sleep, `ShipperThread` turns it.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agent.clock import Clock
from agent.errors import PermanentShipError, RetryableShipError, SpoolError
from agent.ship.sinks.base import Sink, object_name
from agent.ship.spool import Spool
from agent.ship.values import Parcel

_LOG = logging.getLogger(__name__)
BASE_DELAY_S = 1.0
MAX_DELAY_S = 300.0
POLL_S = 1.0


class Outcome(StrEnum):
    """What one turn of the shipper did."""

    IDLE = "idle"  # nothing waits
    WAITING = "waiting"  # the last attempt failed and it is too early for the next
    SHIPPED = "shipped"
    RETRYABLE = "retryable"
    PERMANENT = "permanent"
    UNEXPECTED = "unexpected"


@dataclass(frozen=True, slots=True)
class ShipStats:
    """Work of the shipper since the agent started; `failures`: failed outcome -> attempts."""

    shipped_segments: int = 0
    shipped_records: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)


class Shipper:
    """Moves segments from one spool to one sink; used by one thread at a time."""

    def __init__(
        self,
        spool: Spool,
        sink: Sink,
        *,
        jitter: random.Random | None = None,
        base_delay_s: float = BASE_DELAY_S,
    ) -> None:
        """Connect spool and sink.

        `jitter`: spreads the retries of many agents; seeded in tests. `base_delay_s`: wait after the first failure
        in a row; doubles with each further one, up to `MAX_DELAY_S` unless the sink asks for more.
        """
        self._spool, self._sink = spool, sink
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads load, guards nothing
        self._base_delay_s = base_delay_s
        self._failures_in_a_row = 0
        self.not_before_s = float("-inf")  # monotonic time before which nothing is attempted
        self._shipped_segments = self._shipped_records = 0
        self._failures: dict[str, int] = {}

    def stats(self) -> ShipStats:
        """Count what was done."""
        return ShipStats(self._shipped_segments, self._shipped_records, dict(self._failures))

    def ship_once(self, now_s: float) -> Outcome:
        """Try to ship the oldest sealed segment.

        Gives what happened; a failed segment is the next one again, unless the failure is permanent.
        """
        if now_s < self.not_before_s:
            return Outcome.WAITING
        try:
            parcel = self._spool.next_parcel()
        except SpoolError as error:
            return self._failed(Outcome.RETRYABLE, "", error, now_s, self._base_delay_s)
        if parcel is None:
            return Outcome.IDLE
        name = object_name(parcel.segment.pod_uid, parcel.segment.name)
        try:
            self._sink.put(name, parcel.payload)
            self._spool.acknowledge(parcel)
        except PermanentShipError as error:
            return self._refused(parcel, name, error, now_s)
        except RetryableShipError as error:
            return self._failed(Outcome.RETRYABLE, name, error, now_s, error.delay_s)
        except SpoolError as error:
            return self._failed(Outcome.RETRYABLE, name, error, now_s, self._base_delay_s)
        except Exception as error:  # noqa: BLE001 - a fence: a defect in a sink must not end the shipping
            _LOG.exception("ship: the sink raised an unexpected error", extra={"segment": name})
            return self._failed(Outcome.UNEXPECTED, name, error, now_s, self._base_delay_s)
        self._failures_in_a_row = 0
        self._shipped_segments += 1
        self._shipped_records += parcel.segment.records
        return Outcome.SHIPPED

    def flush(self, deadline_s: float, clock: Clock, wait: Callable[[float], object]) -> int:
        """Seal and ship everything that is left, as far as a deadline allows.

        `deadline_s`: how long it may take, in seconds; a call of the sink that hangs is not cut short. `wait`:
        waits so many seconds between attempts, or less. Gives number of segments that are left; they stay in the
        spool for the next start.
        """
        end_s = clock.monotonic_s() + deadline_s
        self.not_before_s = float("-inf")  # the end is near: the next attempt is worth more than patience
        try:
            self._spool.seal()
        except SpoolError as error:
            _LOG.error("ship: cannot seal before the end", extra={"reason": str(error)})
        while (now_s := clock.monotonic_s()) < end_s:
            outcome = self.ship_once(now_s)
            if outcome is Outcome.IDLE:
                break
            pause_s = self.not_before_s - now_s
            if pause_s > 0:
                wait(min(pause_s, self._base_delay_s, end_s - now_s))
                self.not_before_s = float("-inf")
        return self._spool.stats().segments

    def _refused(self, parcel: Parcel, name: str, error: PermanentShipError, now_s: float) -> Outcome:
        try:
            self._spool.reject(parcel)
        except SpoolError as again:
            return self._failed(Outcome.RETRYABLE, name, again, now_s, self._base_delay_s)
        self._count(Outcome.PERMANENT)
        _LOG.error(
            "ship: the sink rejected a segment for good", extra={"segment": name, "reason": str(error)}
        )
        return Outcome.PERMANENT

    def _failed(self, outcome: Outcome, name: str, error: Exception, now_s: float, delay_s: float) -> Outcome:
        self._spool.release()
        self._count(outcome)
        backoff_s = min(MAX_DELAY_S, self._base_delay_s * 2.0 ** min(self._failures_in_a_row, 30))
        self._failures_in_a_row += 1
        wait_s = max(delay_s, backoff_s * self._jitter.uniform(0.5, 1.0))
        self.not_before_s = now_s + wait_s
        extra = {"segment": name, "reason": str(error), "retry_in_s": round(wait_s, 1)}
        _LOG.warning("ship: a segment was not delivered", extra=extra)
        return outcome

    def _count(self, outcome: Outcome) -> None:
        self._failures[outcome.value] = self._failures.get(outcome.value, 0) + 1


class ShipperThread:
    """Turns a shipper, and the spool's clockwork, on a separate thread."""

    def __init__(self, spool: Spool, shipper: Shipper, clock: Clock, poll_s: float = POLL_S) -> None:
        """Prepare; nothing runs before `start`.

        `poll_s`: pause between two readings of the spool.
        """
        self._spool, self._shipper, self._clock, self._poll_s = spool, shipper, clock, poll_s
        self._stopping = threading.Event()
        self._flush_s = 0.0
        self._thread = threading.Thread(target=self._run, name="shipper", daemon=True)

    def start(self) -> None:
        """Begin to ship."""
        self._thread.start()

    def stop(self, flush_s: float) -> bool:
        """Flush what is left and end the thread.

        `flush_s`: how long the last flush may take, in seconds. Gives whether the thread has ended; False = the
        sink hangs. What is left stays in the spool.
        """
        self._flush_s = flush_s
        self._stopping.set()
        self._thread.join(flush_s + self._poll_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._turn()
            self._stopping.wait(self._poll_s)
        pause = threading.Event()
        left = self._shipper.flush(self._flush_s, self._clock, pause.wait)
        if left:
            _LOG.warning("ship: segments are left for the next start", extra={"segments": left})

    def _turn(self) -> None:
        try:
            self._spool.maintain()
        except SpoolError as error:
            _LOG.error("ship: the spool's volume refuses", extra={"reason": str(error)})
        try:
            while not self._stopping.is_set():
                if self._shipper.ship_once(self._clock.monotonic_s()) not in (
                    Outcome.SHIPPED,
                    Outcome.PERMANENT,
                ):
                    break
        except Exception:  # noqa: BLE001 - the fence of this thread
            _LOG.exception("ship: a turn failed")
