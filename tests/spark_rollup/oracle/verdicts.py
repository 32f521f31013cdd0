"""The rules in plain Python, over `World`: slow, direct, and written without looking at joins."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.spark_rollup.oracle.facts import HEARD_AGAIN_S, Event, Look, S, World

Said = tuple[str, str | None, str | None, str, str, str, tuple[str, ...], tuple[str, ...]]
"""Rule, task, pod, severity, confidence, status, confirms, refutes."""


def said(
    rule: str, task: str | None, pod: str | None, severity: str, confidence: str, status: str = "open",
    confirms: list[str] | None = None, refutes: list[str] | None = None,
) -> Said:  # fmt: skip
    """Build a verdict."""
    return rule, task, pod, severity, confidence, status, tuple(confirms or ()), tuple(refutes or ())


def far_less(own: int | None, other: int | None) -> bool:
    """Tell whether a copy holds far less than another."""
    return own is not None and other is not None and other > own * 2 and other - own > 10


def _own(world: World, finding: Event) -> tuple[int, int] | None:
    """Furthest (offset, puts) of the finding's own incarnation on its pod."""
    seen = []
    for look in world.looks:
        if (
            (look.task, look.pod) != (finding["task_id"], finding["pod"])
            or look.offset is None
            or look.puts is None
        ):
            continue
        if finding.get("store") and look.store != finding["store"]:
            continue
        same = (
            look.identity == finding["identity"]
            if look.identity is not None and finding.get("identity") is not None
            else look.at >= finding["opened_at_us"]
        )
        if same:
            seen.append((look.offset, look.puts))
    return max(seen, default=None)


def _replica_far_more(world: World, finding: Event, own: tuple[int, int] | None) -> bool:
    if own is None:
        return False
    offset, puts = own
    others = [
        look for look in world.looks
        if look.task == finding["task_id"] and look.pod != finding["pod"]
        and look.offset is not None and look.puts is not None and look.offset <= offset * 1.05 + 10
        and (not finding.get("store") or look.store == finding["store"])
    ]  # fmt: skip
    if not others:
        return False
    nearest = min(others, key=lambda x: (abs(x.offset - offset), -(x.puts or 0), x.at, x.pod))  # type: ignore[operator]
    return far_less(puts, nearest.puts) and nearest.low is not None and nearest.low > 2 * puts


def resurrected(world: World) -> Iterator[Said]:
    """Agents' findings, confirmed by a fuller replica at about the offset."""
    for finding in world.local:
        if finding["detector"] == "resurrected-checkpoint":
            proved = finding["confidence"] == "confirmed" or _replica_far_more(
                world, finding, _own(world, finding)
            )
            twins = sorted(
                other["finding_id"] for other in world.local
                if other["detector"] == "unrestored-store" and finding.get("identity") is not None
                and [other.get(k) for k in ("task_id", "pod", "identity")]
                == [finding.get(k) for k in ("task_id", "pod", "identity")]
            )  # fmt: skip
            yield said(
                "resurrected-checkpoint", finding["task_id"], finding["pod"],
                "critical" if proved else finding["severity"], "confirmed" if proved else finding["confidence"],
                finding["status"], [finding["finding_id"], *twins],
            )  # fmt: skip


def unrestored(world: World) -> Iterator[Said]:
    """Agents' findings, confirmed by the previous owner's size."""
    told = {
        (f["task_id"], f["pod"], f["identity"])
        for f in world.local
        if f["detector"] == "resurrected-checkpoint" and f.get("identity")
    }
    for finding in world.local:
        place = (finding.get("task_id"), finding["pod"], finding.get("identity"))
        if finding["detector"] != "unrestored-store" or place in told:
            continue
        own, opened = _own(world, finding), finding["opened_at_us"]
        earlier = [
            h for h in world.owners
            if h.task == finding["task_id"] and h.pod != finding["pod"] and h.start < opened
        ]  # fmt: skip
        proved = False
        if earlier and own:
            owner = max(earlier, key=lambda h: (h.end, h.start, h.pod))
            held = [
                (x.low, x.at, x.offset) for x in world.looks
                if (x.task, x.pod) == (owner.task, owner.pod) and x.puts is not None and x.low is not None
                and owner.start <= x.at <= opened and (not finding.get("store") or x.store == finding["store"])
            ]  # fmt: skip
            if held:
                low, _, offset = max(held, key=lambda row: (row[0], row[1]))
                proved = far_less(own[1], low) and offset is not None and own[0] * 1.05 >= offset
        proved = proved and not world.unwatched(
            finding["pod"], opened, min(finding["observed_at_us"], opened + 3_600_000_000)
        )
        yield said(
            "unrestored-task", finding["task_id"], finding["pod"], "critical" if proved else finding["severity"],
            "confirmed" if proved else finding["confidence"], finding["status"], [finding["finding_id"]],
        )  # fmt: skip


def stale_eos(world: World) -> Iterator[Said]:
    """Agents' findings about wipes, lowered where nobody watched, refuted where another pod was the active."""
    for finding in world.local:
        if (
            finding["detector"] not in ("skipped-eos-wipe", "interrupted-wipe")
            or finding["severity"] == "info"
        ):
            continue
        task, pod, confidence = finding["task_id"], finding["pod"], finding["confidence"]
        if confidence == "suspected" and _was_standby(world, finding):
            yield said(
                "stale-eos-state", task, pod, "info", "confirmed", "resolved", refutes=[finding["finding_id"]]
            )
            continue
        if confidence == "confirmed" and world.unwatched(
            pod, finding["opened_at_us"], finding["observed_at_us"]
        ):
            confidence = "suspected"
        yield said(
            "stale-eos-state",
            task,
            pod,
            finding["severity"],
            confidence,
            finding["status"],
            [finding["finding_id"]],
        )


def _was_standby(world: World, finding: Event) -> bool:
    if (
        world.number("num_standby_replicas") == 0
        or not world.release
        or not (2, 5, 0) < world.release < (4, 3)
    ):
        return False
    mine = [
        h for h in world.owners
        if (h.task, h.pod) == (finding["task_id"], finding["pod"]) and h.end <= finding["opened_at_us"]
    ]  # fmt: skip
    if not mine:
        return False
    tenure = max(mine, key=lambda h: (h.end, h.start))
    for pod in {event["pod"] for event in world.events} - {finding["pod"]}:
        wrote = any(
            e["change"] == "checkpoint-written" and (e["task_id"], e["pod"]) == (finding["task_id"], pod)
            and tenure.start <= e["observed_at_us"] <= tenure.end for e in world.marks
        )  # fmt: skip
        if wrote or world.unwatched(pod, tenure.start, tenure.end):
            continue
        looks = [
            x for x in world.looks
            if (x.task, x.pod) == (finding["task_id"], pod) and not x.anchor and x.puts is not None
            and tenure.start + 10 * S <= x.at <= tenure.end - 10 * S
        ]  # fmt: skip
        for store in {x.store for x in looks}:
            if _went_on_unsaved([x for x in looks if x.store == store]):
                return True
    return False


def _went_on_unsaved(looks: list[Look]) -> bool:
    """Tell whether more than 10,000 records were put in, and more when two commits of 100 ms had passed since."""
    looks = sorted(looks, key=lambda x: (x.at, x.puts or 0))
    if any(x.limit is None for x in looks):
        return False
    most = max(x.limit or 0 for x in looks)
    due = next((x for x in looks if (x.puts or 0) - (looks[0].puts or 0) > most), None)
    return due is not None and any(
        x.at >= due.at + 10 * S + 200_000 and (x.puts or 0) > (due.puts or 0) for x in looks
    )


def diverged(world: World) -> Iterator[Said]:
    """Copies at one offset whose bounds of live entries exclude each other."""
    own = [x for x in world.looks if x.task != "global"]
    copies: dict[tuple[object, ...], list[Look]] = defaultdict(list)
    for x in own:
        if x.checkpoint or not x.offset or x.offset < 0 or x.low is None or x.high is None:
            continue
        if _anchors(own, x):
            copies[x.task, x.store, x.offset, x.pod, x.identity, x.low, x.high].append(x)
    stood = [_stood(own, looks) for looks in copies.values()]
    pairs: dict[tuple[str, ...], list[tuple[tuple[Any, ...], _Stood, _Stood]]] = defaultdict(list)
    for less in stood:
        for more in stood:
            a, b = less.of, more.of
            is_pair = (a.task, a.store, a.offset) == (b.task, b.store, b.offset) and a.pod != b.pod
            if is_pair and a.high is not None and b.low is not None and a.high < b.low:
                # several may stand at the furthest offset: the rule takes the highest in its columns' order
                rank: tuple[Any, ...] = (less.comparable and more.comparable, a.offset)
                for one in (less, more):
                    rank += (one.of.identity or "", one.of.low, one.of.high, one.first, one.last)
                pairs[a.task, a.store, a.pod, b.pod].append((rank, less, more))
    names = {
        "resurrected-checkpoint", "carried-checkpoint", "skipped-eos-wipe", "interrupted-wipe", "unrestored-store",
        "false-clean-store", "overlaid-store", "skipped-record", "zombie-state",
    }  # fmt: skip
    for (task, store, less_pod, more_pod), rows in pairs.items():
        rank, less, more = max(rows, key=lambda row: row[0])
        identities = {less_pod: less.of.identity, more_pod: more.of.identity}
        about = [
            f for f in world.local
            if f["detector"] in names and f["severity"] != "info" and f["status"] == "open"
            and f.get("task_id") == task and f.get("store") in (None, store) and f["pod"] in identities
            and (f.get("identity") or identities[f["pod"]]) in (identities[f["pod"]] or f.get("identity"), None)
        ]  # fmt: skip
        borne = sorted(f["finding_id"] for f in about)
        is_sure = any(f["confidence"] == "confirmed" for f in about)
        if not rank[0] and not is_sure:
            continue
        from_us, to_us = sorted((less.first, more.first))
        unsure = any(world.unwatched(pod, from_us, to_us) for pod in (less_pod, more_pod))
        together = (
            less.there
            and more.there
            and max(less.there[0], more.there[0]) <= min(less.there[1], more.there[1])
        )
        unsure = unsure or not together or not is_sure
        yield said(
            "diverged-replica", task, less_pod, "warning" if unsure else "critical",
            "suspected" if unsure else "confirmed", confirms=borne,
        )  # fmt: skip


@dataclass(frozen=True)
class _Stood:
    """A copy at one offset: a reading of it, since and until when it stood there, and when it was there at all."""

    of: Look
    first: int
    last: int
    comparable: bool
    there: tuple[int, int] | None


def _anchors(looks: list[Look], x: Look) -> list[Look]:
    place = (x.task, x.store, x.pod, x.offset, x.puts)
    return [
        a for a in looks
        if a.anchor and x.puts is not None and (a.task, a.store, a.pod, a.offset, a.puts) == place
        and (a.identity is None or x.identity is None or a.identity == x.identity)
    ]  # fmt: skip


def _stood(looks: list[Look], copy: list[Look]) -> _Stood:
    of, times = copy[0], [x.at for x in copy]
    mine = (of.task, of.store, of.pod, of.identity)
    there = [x.at for x in looks if of.identity is not None and (x.task, x.store, x.pod, x.identity) == mine]
    comparable = any(a.comparable for x in copy for a in _anchors(looks, x))
    return _Stood(of, min(times), max(times), comparable, (min(there), max(there)) if there else None)


def unaudited(world: World) -> Iterator[Said]:
    """One finding per pod and cause of not being watched."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for gap in world.gaps:
        groups[gap.pod, gap.cause].append(max(gap.end - gap.start, 0))
    for (pod, cause), spans in groups.items():
        harmless = cause in ("earlier-events-not-in-input", "agent-not-running")
        loud = not harmless and (sum(spans) > 60 * S or cause in ("lost-events", "silent-agent"))
        yield said("unaudited", None, pod, "warning" if loud else "info", "confirmed")
    for pod in sorted({event["pod"] for event in world.events}):
        if _is_missed(world, pod):
            last = max((e for e in world.events if e["pod"] == pod), key=lambda e: e["sequence"])
            over = (
                last.get("phase") == "stopping" and last["observed_at_us"] < world.as_of - HEARD_AGAIN_S * S
            )
            yield said("unaudited", None, pod, "info" if over else "warning", "confirmed")


def _is_missed(world: World, pod: str) -> bool:
    """Tell whether an agent's newest heartbeat counts an open finding that is not known."""
    beats = [e for e in world.events if e["pod"] == pod and e.get("open_criticals") is not None]
    if not beats:
        return False
    level = max(beats, key=lambda e: e["sequence"])
    known = [
        f for f in world.local
        if f["pod"] == pod and f["severity"] != "info"
        and (f["status"] == "open" or f["heard_us"] >= level["observed_at_us"])
    ]  # fmt: skip
    criticals = level["open_ids"][: level["open_criticals"]]
    loud = {f["finding_id"] for f in known if f["severity"] == "critical"}
    return bool(set(criticals) - loud or set(level["open_ids"]) - {f["finding_id"] for f in known})


def churn(world: World) -> Iterator[Said]:
    """Moves, wipes and restores in a task's busiest hour."""
    for task in {h.task for h in world.holds} | {e["task_id"] for e in world.marks}:
        steps: list[tuple[int, str]] = []
        starts = sorted((h for h in world.owners if h.task == task), key=lambda h: (h.start, h.pod))
        left: dict[str, int] = {}
        for nth, hold in enumerate(starts):
            since = left.get(hold.pod)
            others = [h for h in starts if h.pod != hold.pod and h.start <= hold.start + 10 * S]
            lost = since is None or (
                hold.start - since > 10 * S and any(h.end >= since - 10 * S for h in others)
            )
            if nth and lost:
                steps.append((hold.start, "move"))
            left[hold.pod] = hold.end
        mine = [e for e in world.marks if e["task_id"] == task]
        wiped = [e for e in mine if e["change"] == "store-deleted" and e.get("shape") == "owner-walk"]
        steps += [(at, "wipe") for at in _bursts(wiped)]
        steps += [(at, "restore") for at in _bursts([e for e in mine if e["change"] == "store-created"])[1:]]
        hours: list[tuple[float, int, int]] = []
        for at, _ in steps:
            inside = [(when, kind) for when, kind in steps if at - 3600 * S <= when <= at]
            number = Counter(kind for _, kind in inside)
            worst = max(number["move"] / 6, number["wipe"] / 3, number["restore"] / 6)
            hours.append((worst, at, min(when for when, _ in inside)))
        worst, at, start = max(hours, default=(0.0, 0, 0))
        if worst >= 1:
            confidence = "suspected" if world.unwatched_members(start, at) else "confirmed"
            yield said("task-churn", task, None, "warning" if worst >= 2 else "info", confidence)


def _bursts(events: list[Event]) -> list[int]:
    found: list[int] = []
    last: dict[str, int] = {}
    for event in sorted(events, key=lambda e: e["observed_at_us"]):
        pod, at = event["pod"], event["observed_at_us"]
        if pod not in last or at - last[pod] > 10 * S:
            found.append(at)
        last[pod] = at
    return found


ORACLES: dict[str, Callable[[World], Iterator[Said]]] = {
    "resurrected-checkpoint": resurrected,
    "unrestored-task": unrestored,
    "stale-eos-state": stale_eos,
    "diverged-replica": diverged,
    "task-churn": churn,
    "unaudited": unaudited,
}
