"""Faults planted into Kafka Streams, which nobody has reported: what do the laws say of them?

    make hunt ARGS="--planted"                                       all
    make hunt ARGS="--planted --only delete-held --keep"             one

Every detector of a known fault is disabled, so that a law has no one to yield to. What is true is compared as in every
other run. Each play is short and always the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent.detectors import DETECTORS
from tests.lab.brokers import Brokers
from tests.lab.design import Run
from tests.lab.draw import GRACE_MS, RETENTION_MS, WINDOW_MS
from tests.lab.ground import Ground
from tests.lab.plan import ALOS, EOS, numbers
from tests.lab.play import end
from tests.lab.said import LOUD, Said, loudest
from tests.lab.truth import Difference
from tests.lab.written import Play
from tests.support.laws import LAWS
from tests.support.shipped import shipped_records

RELEASES = "3.9.2,4.3.1"
POD = "a"
BIG = {"live.write.buffer": 16_777_216}
"""Nothing is flushed before a close or, up to 4.2, a checkpoint."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One fault and the life that meets it.

    Args of the dataclass:
        what: What the changed Kafka Streams does.
        act: The life; the pod runs when it begins, and when it ends.
        otherwise: What is wrong where every store is right.
        undecided_since: From this release on no disk shows it, and no store is wrong; empty = it must be seen.
    """

    what: str
    guarantee: str
    stores: tuple[str, ...]
    settings: Mapping[str, object]
    act: Play
    otherwise: str = ""
    undecided_since: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one play."""

    fault: str
    release: str
    differences: tuple[Difference, ...]
    said: tuple[Said, ...]

    @property
    def truth(self) -> str:
        """What was wrong with the stores."""
        wrong = [f"{x.store}: {x.lost} of {x.expected} lost" for x in self.differences if x.lost]
        wrong += [f"{x.store}: {x.extra} of {x.expected} counted twice" for x in self.differences if x.extra]
        return "; ".join(wrong) or PLAYS[self.fault].otherwise

    @property
    def words(self) -> str:
        """Laws that spoke, warning or above, and which of the agents heard them."""
        loud = sorted({x.detector for x in self.said if x.severity in LOUD})
        agents = {name: {x.agent for x in self.said if x.detector == name} for name in loud}
        return ", ".join(name if len(agents[name]) > 1 else f"{name} (one agent)" for name in loud)

    @property
    def is_missed(self) -> bool:
        """Whether no law spoke that must."""
        since = PLAYS[self.fault].undecided_since
        return not self.words and not (since and numbers(self.release) >= numbers(since))

    def lines(self) -> str:
        """Say it for people, with every word. One agent: the configured one, others do not know the guarantee."""
        said = "".join(f"    {x.agent} {x.detector} {x.severity}: {x.summary}\n" for x in self.said)
        return f"{self.fault} {self.release}: {self.truth}; laws: {self.words or 'silent'}\n{said}"


KILLED_UNCOMMITTED = Play(
    "Killed with uncommitted records on disk: they have to be wiped before the next start goes on.",
    """
    feed 2500 1 0; caught-up; stop a; back a; feed 10 1 0; caught-up
    feed-and-flush 6000; kill a; back a; check; stop a; back a
    """,
)
CROSSES_SEGMENTS = Play(
    "Stream time goes through three segments.",
    3 * f"feed 300 1 {RETENTION_MS // 2}; caught-up; " + "idle 15 'segments are settled'; check",
)
KILLED_BEHIND_A_COMMIT = Play(
    "Killed while one store's offset on disk is behind its changelog, and another store's is higher.",
    """
    feed 300 1 0; caught-up; feed-again 100 -1000 is_deletion=no; caught-up; stop a; back a
    feed 300 1 60000; caught-up; kill a; back a; check; stop a; back a
    """,
)
WAITS_FOR_THE_CLEANER = Play(
    "Runs on until the cleaner has been there twice.",
    """
    feed 2500 1 0; caught-up; stop a; back a; feed 300 1 0; caught-up
    idle 16 'the cleaner comes'; feed 300 1 0; caught-up; check
    """,
)
RESTORES_FROM_EMPTY = Play(
    "A pod that comes back without its disk restores everything.",
    "feed 2500 1 0; caught-up; stop a; clean-back; check; stop a; back a",
)

PLAYS: dict[str, Planted] = {
    "skip-wipe": Planted(
        "does not wipe what an unclean end left",
        EOS, ("kv",), {"commit.interval.ms": 10_000}, KILLED_UNCOMMITTED,
    ),
    "drop-segment": Planted(
        "deletes the segment in the middle of a window store",
        ALOS, ("kv", "window"), {}, CROSSES_SEGMENTS,
    ),
    "other-offset": Planted(
        "restores every store of a task from the highest offset of any of them",
        ALOS, ("kv", "session"), BIG, KILLED_BEHIND_A_COMMIT,
        "right; the offset was out of range, and everything was read again",
    ),
    "delete-held": Planted(
        "its cleaner takes the directories of running tasks, too",
        ALOS, ("kv",), {"state.cleanup.delay.ms": 5000}, WAITS_FOR_THE_CLEANER,
        "right; its files are gone",
    ),
    "replay-twice": Planted(
        "restores a changelog to its end, and then once more from its beginning",
        ALOS, ("kv",), {}, RESTORES_FROM_EMPTY,
        "right; everything was put twice", "4.3.0",
    ),
}  # fmt: skip


def design(fault: str, release: str) -> Run:
    """Give the run of a fault."""
    planted = PLAYS[fault]
    settings: dict[str, object] = {
        "commit.interval.ms": 500,
        "state.cleanup.delay.ms": 600_000,
        "session.timeout.ms": 6000,
        "live.write.buffer": 65_536,
        "retention.ms": RETENTION_MS,
        "grace.ms": GRACE_MS,
        "window.ms": WINDOW_MS,
        "live.planted": fault,
    }
    if planted.guarantee == EOS:
        settings["producer.transaction.timeout.ms"] = 30_000
    return Run(0, release, planted.guarantee, planted.stores, settings=settings | dict(planted.settings))


def play(brokers: Brokers, base: Path, fault: str, release: str, *, keep: bool) -> Outcome:
    """Play one fault on one release, under agents that know the laws only."""
    run = design(fault, release)
    unknown = ";".join(f"{x.meta.id}=blind check" for x in DETECTORS if not x.meta.is_law)
    ground = Ground(brokers.for_run(run), base / f"planted-{fault}-{release}", run)
    try:
        with mock.patch.dict(os.environ, {"STATEWARDEN_DETECTORS_DISABLED": unknown}):
            ground.join(POD)
        PLAYS[fault].act(ground)
        end(ground)
        laws = {x.meta.id for x in LAWS}
        said = [
            x for x in loudest(shipped_records(ground.home / "shipped"), ground.marks) if x.detector in laws
        ]
        differences = {(x.store, x.partition): x for look in ground.looks for x in look.found.differences}
        return Outcome(fault, release, tuple(differences.values()), tuple(said))
    finally:
        ground.close(keep=keep)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print; 1 if no law speaks of a fault that made a store wrong, or took it away."""
    parser = argparse.ArgumentParser(prog="planted", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[*PLAYS], default=[*PLAYS])
    parser.add_argument("--releases", default=RELEASES, help=f"separated by commas (default: {RELEASES})")
    parser.add_argument("--keep", action="store_true", help="keep the directories")
    parser.add_argument("--results", type=Path, default=Path("build/hunt"), help="where directories are kept")
    options = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="statewarden-planted-") as scratch:
        brokers = Brokers(Path(scratch))
        base = (options.results / "kept" if options.keep else Path(scratch)).resolve()
        try:
            for fault in options.only:
                for release in options.releases.split(","):
                    outcomes.append(play(brokers, base, fault, release, keep=options.keep))
                    sys.stdout.write(outcomes[-1].lines())
                    sys.stdout.flush()
        finally:
            brokers.stop()
    return int(any(x.is_missed for x in outcomes))


if __name__ == "__main__":
    sys.exit(main())
