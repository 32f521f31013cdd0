"""Recorded runs of a minute, told as if they had lasted days: shifted piece by piece, with ordinary life in between.

Every piece of a recording becomes the evening of a day of its own. Between two pieces the agents beat and
sum their tasks up every half hour, so nobody is silent; sequences are counted again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

S = 1_000_000
DAY_US = 86_400 * S
BEAT_US, SUMMARY_US = 150 * S, 1800 * S

FIRST_US = 20_776 * DAY_US + 79_200 * S
"""22:00 of the first day."""

TIMES = ("observed_at_us", "occurred_at_us", "opened_at_us", "resolved_at_us", "checkpoint_written_at_us")

Event = dict[str, Any]


def events_below(folder: Path) -> list[Event]:
    """Read the events of all segments below a directory."""
    return [
        json.loads(line)["data"]
        for path in sorted(folder.rglob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    ]


def stretched(events: Iterable[Event], cuts: Sequence[float], *, beats: bool = True) -> list[Event]:
    """Stretch one recording.

    Args:
        events: All events of all its pods.
        cuts: Where its pieces end, as shares of its time; each next piece is a day later.
        beats: Whether the agents live on in between; else they are silent.
    """
    told = list(events)
    begin = min(event["observed_at_us"] for event in told)
    span = max(event["observed_at_us"] for event in told) - begin
    ends = [begin + round(span * share) for share in cuts]

    def moved(at_us: int) -> int:
        return at_us - begin + FIRST_US + DAY_US * sum(at_us >= end for end in ends)

    boots: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    for event in told:
        boots[event["pod"], event["pod_uid"], event["boot_id"]].append(shifted(event, moved))
    if not beats:
        return [event for boot in boots.values() for event in boot]
    return [event for boot in boots.values() for event in _numbered(_filled(boot))]


def shifted(event: Event, moved: Callable[[int], int]) -> Event:
    """Move all times of an event."""
    new = event | {name: moved(event[name]) for name in TIMES if event.get(name) is not None}
    if event.get("blind"):
        new["blind"] = [
            row | {name: moved(row[name]) for name in ("from_us", "to_us") if row.get(name) is not None}
            for row in event["blind"]
        ]
    return new


def _filled(boot: Sequence[Event]) -> Iterator[Event]:
    """Let the agent go on beating where its next event is later than that."""
    summaries: dict[tuple[str, str], Event] = {}
    before: Event | None = None
    ordered = sorted(boot, key=lambda event: (event["observed_at_us"], event["sequence"]))
    first = ordered[0]
    for event in ordered:
        if before:
            at_us = before["observed_at_us"] + BEAT_US
            while at_us < event["observed_at_us"]:
                yield _beat(first, at_us)
                if at_us // SUMMARY_US != (at_us - BEAT_US) // SUMMARY_US:
                    yield from (row | {"observed_at_us": at_us + 1} for row in summaries.values())
                at_us += BEAT_US
        if event["kind"] == "summary":
            summaries[event["application_id"], event["task_id"]] = event
        if event.get("change") == "task-deleted":
            summaries.pop((event["application_id"], event["task_id"]), None)
        before = event
        yield event


def _beat(like: Mapping[str, Any], at_us: int) -> Event:
    envelope = ("schema_version", "agent_version", "pod_uid", "boot_id", "namespace", "pod", "node")
    return {
        **{name: like[name] for name in envelope},
        "kind": "heartbeat",
        "observed_at_us": at_us,
        "blind": [],
        "applications": [],
        "tasks": 1,
    }


def _numbered(events: Iterable[Event]) -> Iterator[Event]:
    ordered = sorted(events, key=lambda event: event["observed_at_us"])
    for number, event in enumerate(ordered, 1):
        yield event | {"sequence": number}


def write(events: Iterable[Event], target: Path) -> Path:
    """Write events as one segment; returns its directory."""
    target.mkdir(parents=True, exist_ok=True)
    lines = []
    for event in events:
        key = f"{event['pod_uid']}/{event['boot_id']}/{event['sequence']}"
        lines.append(json.dumps({"id": hashlib.sha256(key.encode()).hexdigest()[:32], "data": event}))
    name = hashlib.sha256("".join(lines).encode()).hexdigest()[:8]
    (target / f"{name}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode(), 1, mtime=0))
    return target
