"""The proof of `verify` on real releases: every kind of store; no wrong word, and losses counted.

    python tests/verify/run.py [--releases 2.8.2,4.3.1] [--work DIR]

Needs what tests/lab needs, and the extra `verify`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lab.plan import ALOS, EOS, FILES, LAST_OF_MINORS, TRANSACTIONAL, TRANSACTIONAL_SINCE, Plan, numbers
from tests.lab.plays import PLAYS as WRITTEN
from tests.lab.processes import Broker, LiveError
from tests.lab.stage import Stage
from tests.verify import courses, traced
from tests.verify.looking import Run, Unwatched, losses

RELEASES = ("2.8.2", FILES, "4.2.1", *LAST_OF_MINORS[-2:])


def healthy(run: Run) -> None:
    """Running, closed, killed, run again: nothing may be said against it."""
    stage = run.stage
    stage.start()
    stage.send(2000)
    stage.settle()
    run.look("running")
    stage.wait_committed()
    run.look("running, committed")
    stage.stop()
    run.look("closed", closed=True)
    stage.start()
    stage.send(1500)
    stage.send_again(0, 0, 700)
    stage.settle()
    stage.kill()
    run.look("killed")
    stage.start()
    stage.settle()
    run.look("running after kill", run.held())
    stage.wait_committed()
    held = run.held()
    stage.stop()
    run.look("closed after kill", held, closed=True)


def standby(run: Run) -> None:
    """Two instances, each with the other's standby: both directories hold what the changelog says."""
    stage = run.stage
    stage.start("a")
    stage.start("b")
    stage.send(2000)
    stage.settle()
    stage.wait_committed()
    for pod in ("a", "b"):
        run.look(f"running, {pod}", pod=pod)
    stage.stop("b")
    run.look("closed, b", pod="b")
    stage.kill("a")
    run.look("killed, a")


def expiring(run: Run) -> None:
    """Records over ten times the retention: segments are dropped, the changelog still has them."""
    stage = run.stage
    stage.start()
    stage.send(2000, step_ms=200)
    stage.settle()
    run.look("running")
    stage.wait_committed()
    stage.stop()
    run.look("closed", closed=True)


def lost_segment(run: Run) -> None:
    """An older segment is lost in a kill (4.3): named while the application runs on, with the number that it counts."""
    stage = run.stage
    assert isinstance(stage, Unwatched)
    stage.before_stop = lambda: run.expect("lost, running", losses(stage))
    WRITTEN["lost-segment"](stage)
    run.expect("lost, closed", losses(stage))


def loss(course: Callable[[Stage], None], store: str = "kv") -> Callable[[Run], None]:
    """Give a course in which a bug loses keys: exactly those are missing that the application lacks."""

    def played(run: Run) -> None:
        stage = run.stage
        assert isinstance(stage, Unwatched)
        keys: list[int] = []

        def count() -> None:
            stage.wait_committed()
            keys.append(stage.count(store)[0])

        stage.before_stop = count
        course(stage)
        lost = sum(stage.sent.values()) - keys[-1]
        print(f"  the application holds {keys[-1]} keys of {store}, {lost} are lost")
        run.total("lost", lost, store)

    return played


@dataclass(frozen=True)
class Play:
    """A course of events, in one world."""

    course: Callable[[Run], None]  # what happens
    stores: str = "kv,plain,window,join,repartition,foreign,session,versioned"
    """As `App.java` takes them; `versioned`, and `session` where it cannot be counted, go by release."""
    settings: Mapping[str, object] = field(default_factory=dict)  # of the application, beside the usual ones
    first: tuple[int, ...] = (2, 6)  # release from which it can be played
    last: tuple[int, ...] = (9,)  # release up to which it can be played
    partitions: int = 1  # of the input topics
    guarantees: tuple[str, ...] = (ALOS, EOS)  # with which it can be played

    def fits(self, release: str, guarantee: str) -> bool:
        return self.first <= numbers(release) <= self.last and guarantee in self.guarantees

    def plan(self, release: str, guarantee: str) -> Plan:
        """Fit it to a release."""
        left_out = set()
        if numbers(release) < (3, 5):
            left_out.add("versioned")
        if numbers(release) < (3, 3):
            left_out.add("closing")
        if numbers(release) < (3, 1) and self.course is lost_segment:
            left_out.add("session")
        stores = [name for name in self.stores.split(",") if name not in left_out]
        return Plan(release, guarantee, ",".join(stores), partitions=self.partitions, settings=self.settings)


PLAYS = {
    "healthy": Play(healthy),
    "lost_segment": Play(lost_segment),
    "standby": Play(standby, settings={"num.standby.replicas": 1}),
    "expiring": Play(expiring, "kv,window,session,join"),
    "headers": Play(healthy, settings={"dsl.store.format": "HEADERS"}, first=(4, 3)),
    "transactional": Play(healthy, settings={TRANSACTIONAL: "true"}, first=numbers(TRANSACTIONAL_SINCE)),
    "cached": Play(healthy, settings={"statestore.cache.max.bytes": 10_000_000}, first=(3, 4)),
    "torn_cleanup": Play(loss(WRITTEN["torn-cleanup"]), "kv,plain", partitions=2, last=(4, 2, 9)),
    "k7672": Play(
        loss(WRITTEN["unrestored"]),
        "kv",
        {"commit.interval.ms": 500, "state.cleanup.delay.ms": 4000},
        first=(2, 0, 1),
        last=(2, 1, 1),
        partitions=2,
        guarantees=(ALOS,),
    ),
    "d13": Play(
        loss(WRITTEN["close-after-corruption-of-a-table"], "table"),
        "table",
        first=(3, 8),
        partitions=2,
        guarantees=(EOS,),
    ),
    "source_topic": Play(healthy, "kv,table"),
    "closing": Play(healthy, "kv,closing", first=(3, 3)),
    # 4.3.1 under exactly-once does not start again after a kill: its global store is corrupted for it at every start
    "global": Play(healthy, "kv,global", partitions=3, guarantees=(ALOS,)),
    "planted_global": Play(courses.planted, "kv,global", partitions=3),
    "planted": Play(courses.planted, "kv,plain,window,session,join,closing"),
    "compacted": Play(
        courses.compacted,
        "kv,plain,table",
        {
            "topology.optimization": "none",  # the table has a changelog of its own, with tombstones
            "topic.segment.ms": 500,
            "topic.min.cleanable.dirty.ratio": 0.01,
            "topic.delete.retention.ms": 100,
        },
    ),
    "reset": Play(courses.reset_without_cleanup, "kv,plain,window"),
    "traced": Play(traced.traced),
    "k8187": Play(
        courses.carried_checkpoint,
        "kv",
        {"num.standby.replicas": 1, "state.cleanup.delay.ms": 10_000, "live.planted": "steered-standbys"},
        first=(2, 0, 1),
        last=(2, 0, 1),
        partitions=4,
        guarantees=(ALOS,),
    ),
}


def play(broker: Broker, home: Path, release: str, guarantee: str, title: str) -> Run:
    """Play one course; what is wrong is in its result."""
    print(f"{release} {guarantee} {title}", flush=True)
    chosen = PLAYS[title]
    stage = Unwatched(broker, home, title, chosen.plan(release, guarantee))
    run = Run(stage)
    try:
        chosen.course(run)
    except (LiveError, RuntimeError, ValueError) as error:
        run.wrong.append(f"not played: {error}")
    finally:
        stage.close()
    for line in run.found:
        print(f"  left of the kill: {line}", flush=True)
    return run


def main() -> int:
    """Play every run, unless chosen otherwise; exit code 1 if a word was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", default=",".join(RELEASES))
    parser.add_argument("--guarantees", default=f"{ALOS},{EOS}")
    parser.add_argument("--plays", default=",".join(PLAYS))
    parser.add_argument("--work", type=Path)
    chosen = parser.parse_args()
    wrong: list[str] = []
    played = words = 0
    with tempfile.TemporaryDirectory(dir=chosen.work) as name:
        broker = Broker(Path(name) / "broker")
        try:
            for release, guarantee, title in product(
                chosen.releases.split(","), chosen.guarantees.split(","), chosen.plays.split(",")
            ):
                if not PLAYS[title].fits(release, guarantee):
                    continue
                run = play(broker, Path(name) / "stage", release, guarantee, title)
                played, words = played + 1, words + run.rows
                wrong += [f"{release} {guarantee} {title} {line}" for line in run.wrong]
        finally:
            broker.stop()
    print(f"{played} runs, {words} words, {len(wrong)} wrong")
    for line in wrong:
        print("WRONG", line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
