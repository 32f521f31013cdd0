"""What the rules look at, in plain Python from decoded events: written from the rules' pages, not their code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

S = 1_000_000
HEARD_AGAIN_S, SUMMARIES_S = 90, 61

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Hold:
    """One interval in which a pod held a task; `lasting`: to the last thing that was heard of the pod."""

    task: str
    pod: str
    start: int
    end: int
    lasting: bool
    cleaner: bool


@dataclass(frozen=True)
class Look:
    """How far a copy was at one time."""

    task: str
    store: str
    pod: str
    at: int
    identity: str | None
    offset: int | None
    puts: int | None
    bytes: int | None
    low: int | None
    high: int | None
    checkpoint: bool
    anchor: bool = False
    comparable: bool = False
    limit: int | None = None


@dataclass(frozen=True)
class Gap:
    """A time in which a pod was not watched; up to `until` the picture may be wrong."""

    pod: str
    start: int
    end: int
    until: int
    cause: str


@dataclass
class World:
    """All facts of one small fleet (one namespace, one application)."""

    events: list[Event]
    as_of: int
    holds: list[Hold] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    lives: list[tuple[str, int, int]] = field(default_factory=list)
    local: list[Event] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    members: dict[str, bool] = field(default_factory=dict)

    @property
    def marks(self) -> list[Event]:
        """Transitions of tasks, in time order."""
        return [e for e in self.events if e["kind"] == "transition" and e.get("task_id")]

    @property
    def owners(self) -> list[Hold]:
        """Holds that are not a cleaner's."""
        return [hold for hold in self.holds if not hold.cleaner]

    def number(self, key: str) -> int | None:
        """Read a whole number from the settings."""
        value = self.settings.get(key)
        return int(value) if value is not None else None

    @property
    def release(self) -> tuple[int, ...] | None:
        """The configured release."""
        text = self.settings.get("kafka_streams_version")
        return tuple(map(int, text.split("."))) if text else None

    @property
    def session(self) -> int:
        """Session timeout in microseconds."""
        default = 10_000 if self.release and self.release < (3, 0) else 45_000
        return (self.number("session_timeout_ms") or default) * 1000

    @property
    def patience(self) -> int:
        """Session timeout plus probing interval in microseconds."""
        probing = self.number("probing_rebalance_interval_ms")
        if self.release and self.release < (2, 6):
            return self.session
        return self.session + (600_000 if probing is None else probing) * 1000

    def unwatched(self, pod: str, start: int, end: int) -> bool:
        """Tell whether a pod was unwatched at any time of a closed interval."""
        return any(gap.pod == pod and gap.start <= end and gap.until >= start for gap in self.gaps)

    def last_words(self) -> list[Event]:
        """Give the last event of each pod."""
        return list({event["pod"]: event for event in self.events}.values())

    def unwatched_members(self, start: int, end: int) -> list[str]:
        """List pods that may be the application's and were unwatched meanwhile."""
        pods = {gap.pod for gap in self.gaps if gap.start <= end and gap.until >= start}
        return sorted(pods)


def world_of(events: Iterable[Event], as_of: int) -> World:
    """Compute everything."""
    ordered = sorted(events, key=lambda e: (e["observed_at_us"], e["boot_id"], e["sequence"]))
    world = World(ordered, as_of)
    heard: dict[str, int] = {}
    for event in ordered:
        heard[event["pod"]] = max(heard.get(event["pod"], 0), event["observed_at_us"])
    _add_holds(world, heard)
    _add_looks(world)
    _add_gaps(world)
    _add_lives(world)
    last: dict[tuple[str, str], Event] = {}
    for event in ordered:
        if event["kind"] == "finding":
            said_us = event.get("said_us") or event["observed_at_us"]
            heard = {"observed_at_us": said_us, "heard_us": event["observed_at_us"]}
            last[event["pod"], event["finding_id"]] = {**event, **heard}
        if event["kind"] == "configuration":
            world.settings.update({row["key"]: row["value"] for row in event["settings"]})
    world.local = list(last.values())
    return world


def _add_holds(world: World, heard: Mapping[str, int]) -> None:
    open_since: dict[tuple[str, str], int] = {}
    raw: list[tuple[str, str, int, int, bool]] = []
    for event in world.events:
        task, pod, at = event.get("task_id"), event["pod"], event["observed_at_us"]
        change = event.get("change")
        now = {"task-held": True, "task-released": False, "task-deleted": False}.get(str(change))
        if event["kind"] == "summary":
            now = event.get("held")
        if task is None or now is None:
            continue
        if now and (task, pod) not in open_since:
            open_since[task, pod] = at
        elif not now and (task, pod) in open_since:
            raw.append((task, pod, open_since.pop((task, pod)), at, False))
    raw += [(task, pod, since, heard[pod], True) for (task, pod), since in open_since.items()]
    cleaned = [
        (e["task_id"], e["pod"], e["observed_at_us"])
        for e in world.marks
        if e["change"] == "task-deleted" and e.get("shape") == "cleaner-walk"
    ]
    for task, pod, start, end, lasting in raw:
        cleaner = not lasting and any(
            (t, p) == (task, pod) and at >= start and end - 2 * S <= at <= end + 2 * S for t, p, at in cleaned
        )
        world.holds.append(Hold(task, pod, start, end, lasting, cleaner))


def _add_looks(world: World) -> None:
    for event in world.events:
        if event["kind"] == "summary":
            for row in event["stores"]:
                world.looks.append(
                    Look(
                        event["task_id"], row["store"], event["pod"], event["observed_at_us"], row.get("identity"),
                        row.get("offset"), row.get("puts"), row.get("bytes"), row.get("entries_low"),
                        row.get("entries_high"), checkpoint=False, limit=row.get("unsaved_puts"),
                    )
                )  # fmt: skip
    stores: dict[str, set[str]] = defaultdict(set)
    for event in world.marks:
        if event.get("store"):
            stores[event["task_id"]].add(event["store"])
        if event["change"] == "store-closed" and event.get("store"):
            world.looks.append(
                Look(
                    event["task_id"], event["store"], event["pod"], event["observed_at_us"], event.get("identity"),
                    event.get("offset_after"), event.get("puts"), event.get("bytes"), event.get("entries_low"),
                    event.get("entries_high"), checkpoint=False, anchor=True,
                    comparable=bool(event.get("comparable")),
                )
            )  # fmt: skip
    for look in world.looks:
        stores[look.task].add(look.store)
    for event in world.marks:
        known = stores[event["task_id"]]
        if event["change"] == "checkpoint-written" and event.get("puts") is not None and len(known) == 1:
            world.looks.append(
                Look(
                    event["task_id"], next(iter(known)), event["pod"], event["observed_at_us"],
                    event.get("identity"), event.get("offset_after"), event["puts"], event.get("bytes"), None, None,
                    checkpoint=True, anchor=True, comparable=bool(event.get("comparable")),
                )
            )  # fmt: skip


def _add_gaps(world: World) -> None:
    by_pod: dict[str, list[Event]] = defaultdict(list)
    for event in world.events:
        by_pod[event["pod"]].append(event)
    for pod, events in by_pod.items():
        before: Event | None = None
        for event in sorted(events, key=lambda e: e["sequence"]):
            expected = before["sequence"] + 1 if before else 1
            at = event["observed_at_us"]
            since = before["observed_at_us"] if before else at
            if event["sequence"] > expected:
                counts = any(e.get("open_criticals") is not None for e in events)
                cause = "earlier-events-not-in-input" if counts and not before else "lost-events"
                world.gaps.append(Gap(pod, since, at, at + SUMMARIES_S * S, cause))
            if before and before.get("phase") == "stopping":
                world.gaps.append(Gap(pod, since, at, at, "agent-not-running"))
            elif at - since > HEARD_AGAIN_S * S:
                world.gaps.append(Gap(pod, since, at, at, "silent-agent"))
            before = event
        assert before is not None
        last = before["observed_at_us"]
        if before.get("phase") != "stopping" and world.as_of - last > HEARD_AGAIN_S * S:
            world.gaps.append(Gap(pod, last, world.as_of, world.as_of, "silent-agent"))
        ends: dict[tuple[int, str], int | None] = {}
        for event in events:
            for row in event.get("blind") or ():
                key = (row["from_us"], row["cause"])
                told = [end for end in (ends.get(key), row.get("to_us")) if end is not None]
                ends[key] = max(told, default=None)
        for (start, cause), end in ends.items():
            until = world.as_of if end is None else end
            world.gaps.append(Gap(pod, start, until, until, cause))


def _add_lives(world: World) -> None:
    spans: dict[str, list[int]] = defaultdict(list)
    for hold in world.holds:
        spans[hold.pod] += [hold.start, hold.end]
    for event in world.marks:
        if event.get("shape") == "cleaner-walk":
            spans[event["pod"]].append(event["observed_at_us"])
    world.lives = [(pod, min(times), max(times)) for pod, times in spans.items()]
