"""The spool beside a model: whatever happens in whatever order, what was appended is delivered or announced."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent.contract.codec import decode
from agent.contract.events import Origin
from agent.errors import SpoolFullError
from agent.ship.values import MIN_CAP_BYTES
from tests.agent.ship.ship_support import (
    HandClock,
    finding,
    heartbeat,
    on_disk,
    open_spool,
    summary,
    transition,
)

KIB = 1024
Place = tuple[str, int]


class SpoolBesideModel(RuleBasedStateMachine):
    """Appends, ships, refuses, kills; at the end everything is shipped and accounted for."""

    def __init__(self) -> None:
        super().__init__()
        self.work = Path(tempfile.mkdtemp(prefix="spool-model-"))
        self.clock, self.boots, self.number = HandClock(), 0, 0
        self.kept: set[Place] = set()
        self.delivered: list[Place] = []
        self.sent: dict[str, bytes] = {}
        self.unacknowledged: set[Place] = set()
        self.announced: dict[str, set[int]] = {}

    @initialize()
    def begin(self) -> None:
        self.folder = self.work / "0"
        self.open()

    def open(self) -> None:
        """Start an agent of a new boot."""
        self.boots += 1
        origin = Origin(pod_uid="uid-1", boot_id=f"boot{self.boots}", pod="orders-0")
        self.spool = open_spool(self.folder, self.clock, origin, cap_bytes=MIN_CAP_BYTES)

    @rule(kind=st.sampled_from("ssttfh"), kib=st.integers(0, 30), times=st.integers(1, 30))
    def append(self, kind: str, kib: int, times: int) -> None:
        """Append some of a kind; the ledger has what the spool took."""
        for _ in range(times):
            self.number += 1
            record = {  # type: ignore[no-untyped-call]
                "s": lambda: summary(kib * KIB, self.number),
                "t": lambda: transition(kib * KIB, self.number),
                "f": finding,
                "h": lambda: heartbeat(self.number),
            }[kind]()
            try:
                self.kept.add((f"boot{self.boots}", self.spool.append(record)))
            except SpoolFullError:
                assert kind != "f"

    @rule(seconds=st.sampled_from([1, 20]))
    def pass_time(self, seconds: int) -> None:
        """Let the clockwork do what is due."""
        self.clock.at_s += seconds
        self.spool.maintain()

    @rule(fate=st.sampled_from(["acknowledged", "acknowledged", "lost answer", "refused", "rejected"]))
    def ship(self, fate: str) -> None:
        parcel = self.spool.next_parcel()
        if parcel is None:
            return
        if fate in ("acknowledged", "lost answer"):
            self.receive(parcel.segment.name, parcel.payload, is_final=fate == "acknowledged")
        if fate == "acknowledged":
            self.spool.acknowledge(parcel)
        elif fate == "rejected":
            self.spool.reject(parcel)
        else:
            self.spool.release()

    def receive(self, name: str, payload: bytes, *, is_final: bool) -> None:
        """Be a sink: one content per name; nothing twice but what was not acknowledged."""
        assert self.sent.setdefault(name, payload) == payload
        rows: list[dict[str, Any]] = [decode(line) for line in payload.splitlines()]
        places = [(row["boot_id"], row["sequence"]) for row in rows]
        assert places == sorted(places, key=lambda x: x[1])
        assert not set(places) & set(self.delivered) - self.unacknowledged
        self.unacknowledged -= set(places)
        if not is_final:
            self.unacknowledged |= set(places)
        self.delivered += places
        for row in rows:
            if row["kind"] == "drop":
                boot = row["reason"].partition("; boot ")[2]
                span = range(row["first_sequence"], row["last_sequence"] + 1)
                self.announced.setdefault(boot, set()).update(span)

    @rule(cleanly=st.booleans())
    def restart(self, cleanly: bool) -> None:
        """End the agent, in order or by a kill, and start the next one."""
        old = self.folder
        if not cleanly:
            self.folder = self.work / str(self.boots)
            shutil.copytree(old, self.folder)
        self.spool.close()
        if not cleanly:
            shutil.rmtree(old)
        self.open()

    @invariant()
    def the_cap_holds(self) -> None:
        """Log and free pages included."""
        if self.boots:
            assert on_disk(self.folder) <= MIN_CAP_BYTES

    def teardown(self) -> None:
        if not self.boots:
            return
        self.spool.maintain()
        self.spool.seal()
        while (parcel := self.spool.next_parcel()) is not None:
            self.receive(parcel.segment.name, parcel.payload, is_final=True)
            self.spool.acknowledge(parcel)
        delivered = set(self.delivered)
        missing = {x for x in self.kept - delivered if x[1] not in self.announced.get(x[0], ())}
        self.spool.close()
        shutil.rmtree(self.work)
        assert missing == set()


class TestSpoolBesideModel(SpoolBesideModel.TestCase):  # type: ignore[misc,valid-type]
    """The machine as a test."""

    settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
