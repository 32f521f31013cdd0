"""Two copies of a store at the same changelog offset cannot both be right: their numbers of live entries differ.

Signal: each copy's lower and upper bound of live entries at an offset at which it is known to be.
Fires when: two pods' copies at the same offset have bounds that do not overlap, and a critical finding of an agent
    about one of them bears it out: as sure as that is. Without one suspected, if both were let go in order ever since
    they were made.
Clears when: one of the two copies is recreated.
Stays quiet when: offset and files are not known to be of the same moment (a flush after the checkpoint, a store of 4.3
    or later that was not seen closing, a task of several stores that runs, up to 4.2), or the store follows
    something else than its own changelog (windowed, versioned, global, a table on its source topic).
Source: entries and deletions in the table properties of RocksDB's files; the offset from `.checkpoint` or, since 4.3
    (KIP-1035), from the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.fleet.application import Application, Rule, Task, same_store
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.rows import Copy, Entry, Said
from spark_rollup.fleet.words import chain, entry, finding, of_store, place

META = RuleMeta(
    id="diverged-replica",
    title="Two copies at the same offset have different contents",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.UNEQUAL_COPIES,
    twin=Twin("N20, a standby that is behind catches up", "benign-rolling-standby-3.9.2"),
)

_EXPLAINS = (
    "resurrected-checkpoint", "carried-checkpoint", "skipped-eos-wipe", "interrupted-wipe", "unrestored-store",
    "false-clean-store", "overlaid-store", "skipped-record", "zombie-state",
)  # fmt: skip
"""Agents' findings that such a difference bears out."""

_CLEAN = (
    "both stores were closed in order every time since they were made: the poorer copy missed records; or the changelog"
    " lost them, and only the fuller copy has them; or it was cut; or a store was closed while sends failed"
)
_OTHER = (
    "it is not known whether both stores were closed in order every time since they were made: one may hold what a"
    " killed process had flushed"
)
_APART = "the two copies were never seen at one time: after a reset of the application both may be right"


class _Pair(NamedTuple):
    """Two copies at one offset whose bounds exclude each other."""

    less: Copy
    more: Copy

    @property
    def comparable(self) -> bool:
        return self.less.comparable and self.more.comparable

    @property
    def from_us(self) -> int:
        return min(self.less.first_us, self.more.first_us)

    @property
    def to_us(self) -> int:
        return max(self.less.first_us, self.more.first_us)

    @property
    def coexist(self) -> bool:
        """Whether the two were there at one time; without, one may be of a changelog that is no more."""
        return _overlap(self.less, self.more) and _overlap(self.more, self.less)


def _overlap(one: Copy, other: Copy) -> bool:
    begin, end = one.seen_from_us, other.seen_to_us
    return begin is not None and end is not None and begin <= end


def find(app: Application) -> Iterator[Row]:
    """Compare copies that are at the same offset."""
    for task in app.tasks.values():
        for pair in _pairs(task.copies):
            borne = _borne_out(task, pair)
            if pair.comparable or any(map(_is_critical, borne)):
                yield _finding(app, task, pair, borne)


def _pairs(copies: list[Copy]) -> list[_Pair]:
    """Find copies whose bounds exclude each other; the furthest offset of each pair of pods counts.

    Where both copies of a pair are comparable at some offset, the furthest of these counts.
    """
    at: dict[tuple[str | None, int], list[Copy]] = defaultdict(list)
    for copy in copies:
        at[copy.store, copy.offset].append(copy)
    found: dict[tuple[str | None, str, str], _Pair] = {}
    for there in at.values():
        poorer = sorted(there, key=lambda x: x.entries_high)
        for more in there:
            for less in poorer:
                if less.entries_high >= more.entries_low:
                    break
                if less.pod != more.pod:
                    pair, key = _Pair(less, more), (more.store, less.pod, more.pod)
                    found[key] = max(found.get(key, pair), pair, key=_order)
    return list(found.values())


def _order(pair: _Pair) -> tuple[bool, int, list[tuple[bool, int | str | None]]]:
    """Order pairs of copies of the same two pods: at last by all that is known, so that it is the same in each run."""
    rest = [
        (value is not None, value)
        for copy in pair
        for name, value in zip(copy._fields, copy, strict=True)
        if name not in ("task_id", "store", "offset", "pod")
    ]
    return pair.comparable, pair.less.offset, rest


def _borne_out(task: Task, pair: _Pair) -> list[Said]:
    """List the agents' findings about either copy that the difference bears out."""
    copies = {copy.pod: copy for copy in pair}
    return [
        x for x in task.said
        if x.detector in _EXPLAINS and x.severity != Severity.INFO.value and x.status == Status.OPEN.value
        and x.pod in copies and same_store(pair.less.store, x.store)
        and (None in (x.identity, copies[x.pod].identity) or x.identity == copies[x.pod].identity)
    ]  # fmt: skip


def _is_critical(said: Said) -> bool:
    return said.severity == Severity.CRITICAL.value


def _finding(app: Application, task: Task, pair: _Pair, borne: list[Said]) -> Row:
    less, more = pair
    unwatched = any(app.was_unwatched(x.pod, task.id, pair.from_us, pair.to_us) for x in pair)
    # Alone it is a suspicion: a task whose sends failed may close as if in order, and a topic may be cut by time.
    bears = [x for x in borne if _is_critical(x) and not unwatched and pair.coexist]
    sure = any(x.confidence == Confidence.CONFIRMED.value for x in bears)
    return finding(
        META, app.where, pair.to_us, task_id=task.id, store=less.store, pod=less.pod,
        identity=place(less.identity, more.identity),
        severity=(Severity.CRITICAL if bears else Severity.WARNING).value,
        confidence=(Confidence.CONFIRMED if sure else Confidence.SUSPECTED).value,
        affected=Affected.POSSIBLY.value,
        summary=f"{task.id}{of_store(less.store)}: at offset {less.offset} {less.pod} holds at most {less.entries_high}"
        f" live entries, {more.pod} at least {more.entries_low}",
        evidence=chain(
            *(_entry(app, task, copy) for copy in pair),
            entry(pair.to_us, _CLEAN if pair.comparable else _OTHER, "rollup"),
            None if pair.coexist else entry(pair.to_us, _APART, "rollup"),
        ),
        next_action=_next_action(task, pair, borne),
        pods=[less.pod, more.pod],
        confirms=sorted({x.finding_id for x in borne}),
    )  # fmt: skip


def _entry(app: Application, task: Task, copy: Copy) -> Entry:
    what = (
        f"{copy.pod} is at offset {copy.offset} with {copy.entries_low} to {copy.entries_high} live entries"
        f" (identity {copy.identity or 'unknown'})"
    )
    return entry(copy.first_us, what, place(app.name, task.id, copy.store))


def _next_action(task: Task, pair: _Pair, borne: list[Said]) -> str:
    """Copies first: where the changelog lost records, the fuller copy is the last to have them, whichever was named."""
    keep = (
        f"Keep copies of the directory of {task.id} from both {pair.less.pod} and {pair.more.pod} before anything else,"
        " and remove nothing yet: if the changelog lost records, only the fuller copy still has them. "
    )
    suspects = {x.pod for x in borne}
    if len(suspects) == 1:
        asked = min(borne, key=lambda x: (-Severity(x.severity).rank, x.finding_id)).next_action
        return (
            f"{keep}The agent on {borne[0].pod} reports its own copy as the wrong one: do not fail over to it. After"
            f" the copies: {asked}"
        )
    return (
        f"{keep}Do not fail over between them. Compare each copy with the changelog (statewarden verify --explain), and"
        " remove only one that the changelog contradicts for another reason than an aborted transaction."
    )


RULE = Rule(META, find)
