"""Tell the story of a small fleet and get the lines that its agents would have shipped.

    fleet = Fleet("case-1")
    a = fleet.pod("pod-a")
    a.holds("0_0", 5)
    a.writes_checkpoint("0_0", 10, offset=2000, puts=2000)
    a.releases("0_0", 20)
    fleet.write(tmp_path)

Times are seconds after `START`. The case's name is the namespace, so that many cases fit into one frame.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record

START_US = 1_795_000_000_000_000
"""Second 0 of every story, microseconds since the epoch."""

HORIZON_S = 900
"""Agents report until this second unless told otherwise."""


@dataclass
class Pod:
    """One pod with its agent."""

    fleet: Fleet
    name: str
    uid: str = ""
    boot: str = "boot-1"
    begins_s: float = 0
    ends_s: float = HORIZON_S
    announces_end: bool = True
    counts: bool = True
    """Whether its heartbeats count what is open: those of an agent older than contract 1.3 do not."""
    records: list[Record] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    lost_findings: set[float] = field(default_factory=set)
    blind: list[dict[str, object]] = field(default_factory=list)

    def holds(self, task: str, at: float) -> Pod:
        """See the task's lock held from now on."""
        return self.changes("task-held", task, at, held=True)

    def releases(self, task: str, at: float) -> Pod:
        """See all locks of the task free from now on."""
        return self.changes("task-released", task, at, held=False)

    def writes_checkpoint(self, task: str, at: float, offset: int, **body: object) -> Pod:
        """See a new checkpoint."""
        return self.changes("checkpoint-written", task, at, offset_after=offset, **body)

    def deletes_task(self, task: str, at: float, shape: str = "cleaner-walk", **body: object) -> Pod:
        """See the task directory go."""
        return self.changes("task-deleted", task, at, shape=shape, **body)

    def creates_store(self, task: str, at: float, identity: str, store: str = "s") -> Pod:
        """See a store recreated."""
        return self.changes("store-created", task, at, identity=identity, store=store)

    def changes(self, change: str, task: str, at: float, **body: object) -> Pod:
        """See any transition of a task."""
        return self.tells(Kind.TRANSITION, at, task_id=task, change=change, source="inotify", **body)

    def measures(self, task: str, at: float, held: bool | None = True, **store: object) -> Pod:
        """Send a summary with one store."""
        process = {"process_id": store.pop("process_id")} if "process_id" in store else {}
        limit = {"unsaved_puts": 10_000} if self.counts else {}
        row = {"store": "s", "held": held, **limit, **store}
        return self.tells(Kind.SUMMARY, at, task_id=task, source="timer", held=held, stores=[row], **process)

    def finds(self, detector: str, task: str | None, at: float, **body: object) -> Pod:
        """Report a finding of the agent."""
        given: dict[str, object] = {
            "finding_id": f"{detector}-{self.name}-{task}",
            "detector": detector,
            "level": "damage",
            "severity": "critical",
            "confidence": "confirmed",
            "status": "open",
            "opened_at_us": at_us(at),
            "upstream": ["KAFKA-1"],
            "affected": "yes",
            "missing_facts": [],
            "summary": f"{detector} on {self.name}",
            "next_action": "look",
            "evidence": [{"at": "2026-11-18T11:06:40.000000Z", "what": "seen by the agent", "where": task}],
        }
        place = {} if task is None else {"task_id": task}
        return self.tells(Kind.FINDING, at, **(place | given | body))

    def repeats(self, detector: str, task: str, at: float, said: float, **body: object) -> Pod:
        """Report once more what was reported before."""
        return self.finds(detector, task, at, **{"opened_at_us": at_us(said), "said_us": at_us(said), **body})

    def loses_findings(self, *seconds: float) -> Pod:
        """Never deliver what was found then."""
        self.lost_findings.update(seconds)
        return self

    def configures(self, at: float = 0, release: str | None = None, **settings: object) -> Pod:
        """Report the application's settings."""
        rows = [{"key": key, "value": str(value), "origin": "flag"} for key, value in settings.items()]
        if release:
            rows.append({"key": "kafka_streams_version", "value": release, "origin": "flag"})
        return self.tells(Kind.CONFIGURATION, at, settings=rows)

    def tells(self, kind: Kind, at: float, **body: object) -> Pod:
        """Send any record."""
        self.records.append(Record(kind, at_us(at), {"application_id": self.fleet.application, **body}))
        return self

    def is_blind(
        self, from_s: float, to_s: float | None, cause: str = "queue-overflow", **body: object
    ) -> Pod:
        """Report a blind interval in the heartbeats from then on."""
        self.blind.append(
            {"from_us": at_us(from_s), "to_us": None if to_s is None else at_us(to_s), "cause": cause, **body}
        )
        return self

    def drops(self, at: float, first: int, last: int) -> Pod:
        """Lose heartbeats with these sequence numbers for want of room, and say so."""
        told = {"dropped_kind": "heartbeat", "dropped_count": last - first + 1, "reason": "full"}
        pod = self.loses(*range(first, last + 1))
        return pod.tells(Kind.DROP, at, first_sequence=first, last_sequence=last, **told)

    def loses(self, *sequences: int) -> Pod:
        """Never deliver these records."""
        self.lost.update(sequences)
        return self

    def lines(self) -> list[str]:
        """Encode everything in time order, with heartbeats every 30 s and the agent's start and end."""
        told = [Record(Kind.LIFECYCLE, at_us(self.begins_s), {"phase": "started"}), *self.records]
        beat = self.begins_s + 30
        while beat < self.ends_s:
            known = [row for row in self.blind if int(str(row["from_us"])) <= at_us(beat)]
            level = level_of(self.records, at_us(beat)) if self.counts else {}
            tasks = {x.body["task_id"] for x in self.records if "task_id" in x.body}
            told.append(Record(Kind.HEARTBEAT, at_us(beat), {"blind": known, "tasks": len(tasks), **level}))
            beat += 30
        if self.announces_end:
            told.append(
                Record(Kind.LIFECYCLE, at_us(self.ends_s), {"phase": "stopping", "reason": "end of story"})
            )
        encoder = Encoder(
            Origin(
                self.uid, self.boot, self.name, self.fleet.name, "node-1", "1.0.0", cluster=self.fleet.cluster
            )
        )
        told.sort(key=lambda record: record.observed_at_us)
        unheard = {at_us(at) for at in self.lost_findings}
        return [
            encoder.encode(record, number)
            for number, record in enumerate(told, 1)
            if number not in self.lost
            and not (record.kind is Kind.FINDING and record.observed_at_us in unheard)
        ]


def level_of(records: Iterable[Record], until_us: int) -> dict[str, object]:
    """Count what is open at a time, as an agent's heartbeat does; what is told at that very time comes before it."""
    found = {
        str(x.body["finding_id"]): x.body
        for x in sorted(records, key=lambda x: x.observed_at_us)
        if x.kind is Kind.FINDING and x.observed_at_us <= until_us
    }
    ids = {
        severity: [key for key, x in found.items() if x["status"] == "open" and x["severity"] == severity]
        for severity in ("critical", "warning")
    }
    return {
        "open_criticals": len(ids["critical"]),
        "open_warnings": len(ids["warning"]),
        "open_ids": [*ids["critical"], *ids["warning"]],
    }


class Fleet:
    """Some pods that run one application."""

    def __init__(self, name: str, application: str = "orders", cluster: str = "") -> None:
        """Name the case; the name becomes the namespace."""
        self.name = name
        self.application = application
        self.cluster = cluster
        self.pods: list[Pod] = []

    def pod(self, name: str, **options: object) -> Pod:
        """Add a pod with its agent."""
        options.setdefault("uid", f"{self.name}-{name}")  # events of two fleets must not share an id
        pod = Pod(self, name, **options)  # type: ignore[arg-type]
        self.pods.append(pod)
        return pod

    def lines(self) -> list[str]:
        """Encode what all agents sent."""
        return [line for pod in self.pods for line in pod.lines()]

    def write(self, directory: Path) -> Path:
        """Write one sealed segment per pod, named as agents name them; returns the directory."""
        for pod in self.pods:
            lines = pod.lines()
            folder = directory / pod.uid
            folder.mkdir(parents=True, exist_ok=True)
            last = len(lines) + len(pod.lost)
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{pod.boot}-1-{last}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        return directory


def at_us(seconds: float) -> int:
    """Turn a second of the story into microseconds since the epoch."""
    return START_US + round(seconds * 1_000_000)


def damaged() -> Fleet:
    """Tell of a store that came back with its old offset on one pod, and is healthy on another."""
    fleet = Fleet("shop")
    fleet.pod("pod-b").holds("0_0", 2).measures(
        "0_0", 100, identity="full", puts=2050, offset=2050, entries_low=2000
    )
    a = fleet.pod("pod-a").holds("0_0", 5).creates_store("0_0", 80, "new")
    a.finds("resurrected-checkpoint", "0_0", 81, store="s", identity="new", confidence="suspected")
    a.measures("0_0", 120, identity="new", puts=50, offset=2050)
    fleet.pods[0].configures(1, "2.0.1", num_standby_replicas=1, session_timeout_ms=6000)
    return fleet


STORIES: dict[str, Fleet] = {}
"""Every story that an imported test module tells; one audit looks at all of them together."""


MORE: list[Callable[[], Iterable[Fleet]]] = []
"""Further fleets for the same audit, told only when it takes place."""


def story(tell: Callable[[Fleet], object]) -> str:
    """Tell a story once and remember it; the function's name becomes the story's name, which is returned."""
    name = f"{tell.__module__.rsplit('.', 1)[-1]}.{tell.__name__}"
    assert name not in STORIES, f"two stories are called {name}"
    STORIES[name] = Fleet(name)
    tell(STORIES[name])
    return name


CASES: dict[str, list[tuple[str, str, dict[str, object]]]] = defaultdict(list)
"""Test module -> stories of which a rule is expected to say something, or nothing."""


def says(rule: str, **expected: object) -> Callable[[Callable[[Fleet], object] | str], str]:
    """Tell a story of which a rule has one finding with these columns; without any it says nothing.

    `loud` is severity, confidence and status as far as given; of texts a part is enough, of `evidence` a begin.
    """

    def expecting(tell: Callable[[Fleet], object] | str) -> str:
        name = tell if isinstance(tell, str) else story(tell)
        CASES[name.partition(".")[0]].append((name, rule, expected))
        return name

    return expecting


def cases(module: str) -> list[tuple[str, str, dict[str, object]]]:
    """List the expectations of a test module."""
    return CASES[module.rpartition(".")[2]]
