"""Recordings told to the rules thousands of times: clocks that differ, events lost, the end cut off.

    python tests/prove/disturbed.py [SECONDS] [SEED]     default 300 1: by chance
    python tests/prove/disturbed.py each [SEED]          every event lost in turn, alone: some minutes

`tests/bench/recall.py` asks the same of Spark, a few times per recording. Without Spark the rules take milliseconds, so
that here the unlucky differences of clocks are met.
Exit code 1: something was confirmed at warning or above that is not true of its recording.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.audited import FLEET  # noqa: E402
from agent.contract.events import Kind  # noqa: E402 - path first
from spark_rollup.correlate import RULES  # noqa: E402
from spark_rollup.fleet.meta import Row  # noqa: E402
from tests.bench.fleet import BENIGN, BUGS  # noqa: E402
from tests.bench.recall import lasting  # noqa: E402
from tests.spark_rollup.support.plain import events_of_data, tables  # noqa: E402
from tests.support.recorded_fleet import EXPECTED, replayed  # noqa: E402

NAMES = (*BUGS, *BENIGN)
S = 1_000_000
Event = dict[str, Any]

SKEW_S = 3.0
"""A pod's clock is off by up to this much, either way."""

LOSSES = (0.0, 0.0, 0.003, 0.05)
"""Shares of events lost, one of them drawn: where much is lost nearly all is in doubt, which hides the clocks."""

STRETCHES = (2, 5, 20, 100, 400)
"""Numbers of events of one pod that are lost together."""

CLOCKS_PER_FINDING = 100

TIMES = ("observed_at_us", "occurred_at_us", "opened_at_us", "resolved_at_us", "checkpoint_written_at_us")


def recordings(work: Path) -> dict[str, list[Event]]:
    """Replay every recording; returns its events by its name."""
    told: dict[str, list[Event]] = {}
    for name in NAMES:
        replayed([ROOT / "tests" / "data" / "traces" / name], work / name)
        paths = sorted((work / name).rglob("*.jsonl.gz"))
        lines = (line for path in paths for line in gzip.decompress(path.read_bytes()).splitlines())
        told[name] = [json.loads(line)["data"] for line in lines]
    return told


def disturbed(events: Sequence[Event], dice: random.Random) -> list[Event]:
    """Set each pod's clock wrong, lose some events or stretches, and cut every second telling off somewhere."""
    times = [event["observed_at_us"] for event in events]
    until = max(times) if dice.random() < 0.5 else dice.randint(min(times), max(times))
    loss = dice.choice(LOSSES)
    left = [x for x in events if x["observed_at_us"] <= until and dice.random() >= loss]
    for _ in range(dice.choice((0, 0, 1, 2, 3))):
        left = without_stretch(left, dice)
    return with_clocks(left, dice)


def without_stretch(events: Sequence[Event], dice: random.Random) -> list[Event]:
    """Lose neighbours of one pod, as with a segment; never all of it: a pod that is not heard at all is not known."""
    pod = dice.choice(sorted({event["pod"] for event in events}) or [""])
    own = [number for number, event in enumerate(events) if event["pod"] == pod][1:]
    begin = dice.randrange(len(own) or 1)
    lost = {*own[begin : begin + dice.choice(STRETCHES)]}
    return [event for number, event in enumerate(events) if number not in lost]


def with_clocks(events: Sequence[Event], dice: random.Random) -> list[Event]:
    pods = sorted({event["pod"] for event in events})
    off_us = {pod: round(dice.uniform(-SKEW_S, SKEW_S) * S) for pod in pods}
    return [
        {**event, **{name: event[name] + off_us[event["pod"]] for name in TIMES if event.get(name)}}
        for event in events
    ]


def by_chance(
    known: Mapping[str, Sequence[Event]], seconds: float, dice: random.Random
) -> Iterator[tuple[str, list[Event]]]:
    """Disturb recording by recording until the time is over."""
    ends_s = time.monotonic() + seconds
    for name in itertools.cycle(known):
        if time.monotonic() >= ends_s:
            return
        yield name, disturbed(known[name], dice)


def one_by_one(
    known: Mapping[str, Sequence[Event]], dice: random.Random
) -> Iterator[tuple[str, list[Event]]]:
    """Lose each event of each recording, one at a time: what matters may be one message of a thousand.

    Findings are few and decide most: each is lost under many clocks.
    """
    for name, events in known.items():
        for number, lost in enumerate(events):
            left = [*events[:number], *events[number + 1 :]]
            yield name, left
            for _ in range(CLOCKS_PER_FINDING if lost["kind"] == Kind.FINDING.value else 1):
                yield name, with_clocks(left, dice)


def verdicts(told: Sequence[Event]) -> Iterator[Row]:
    """Ask every rule but `unaudited`, which speaks of the disturbance itself."""
    rules = [rule for rule in RULES if rule.meta.id != "unaudited"]
    as_of_us = max(event["observed_at_us"] for event in told)
    for row in tables(events_of_data(told), as_of_us, rules)["findings"]:
        if row["reported_by"] == FLEET:
            yield row


def main() -> int:
    """Disturb, ask, and hold what is confirmed against what is true."""
    each = sys.argv[1:2] == ["each"]
    right: Counter[str] = Counter()
    wrong: Counter[tuple[str, str, str | None]] = Counter()
    told = 0
    with tempfile.TemporaryDirectory(prefix="statewarden-disturbed-") as work:
        known = recordings(Path(work))
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    if each:
        tellings = one_by_one(known, dice)
    else:
        tellings = by_chance(known, float(sys.argv[1]) if len(sys.argv) > 1 else 300.0, dice)
    for name, events in tellings:
        told += 1
        if not events:
            continue
        true = lasting({(rule, str(task)) for rule, task, _, _ in EXPECTED.get(name, ())})
        for row in verdicts(events):
            rule, task = row["detector"], row["task_id"]
            if row["severity"] != "info" and row["confidence"] == "confirmed":
                if (rule, str(task)) in true:
                    right[rule] += 1
                else:
                    wrong[name, rule, task] += 1
    for rule, number in sorted(right.items()):
        sys.stdout.write(f"{rule:<24} {number:>6} confirmed rightly\n")
    for (name, rule, task), number in sorted(wrong.items(), key=str):
        sys.stdout.write(f"wrong: {rule} {task} of {name}, {number} times\n")
    sys.stdout.write(f"{told} tellings of {len(NAMES)} recordings; {wrong.total()} wrong\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
