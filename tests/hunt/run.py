"""The hunt: applications drawn from a seed live through mishaps under live agents, and every word is judged.

    make hunt ARGS="--minutes 60 --seed 1 --releases 4.3.1,3.9.2"
    make hunt ARGS="--runs 10 --releases 4.2.1"
    make hunt ARGS="--list --runs 10"                 what would be played
    make hunt ARGS="--replay 4.3.1-eos-10017 --keep"  one run again, by its name or its result's file

Needs what `tests/live/run.py` needs. Every run leaves a file below `--results`; exit code 1: something was judged.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.hunt.design import Run
from tests.hunt.draw import draw_many, draw_named
from tests.hunt.judge import verdict
from tests.hunt.play import Result, play
from tests.live.plan import numbers
from tests.live.processes import Broker

RELEASES = "4.3.1,3.9.2"
BROKER = "4.3.1"
OLD_BROKER = "3.9.1"
"""The last one that talks to clients of before 2.1."""


class Brokers:
    """A broker for each run: the newest that talks to its release, started when it is first needed."""

    def __init__(self, home: Path) -> None:
        """Start nothing yet."""
        self._home = home
        self._running: dict[str, Broker] = {}

    def for_run(self, run: Run) -> Broker:
        """Give the broker for a run."""
        release = BROKER if numbers(run.release) >= (2, 1) else OLD_BROKER
        if release not in self._running:
            self._running[release] = Broker(self._home / f"broker-{release}", release)
        return self._running[release]

    def stop(self) -> None:
        """End all."""
        for broker in self._running.values():
            broker.stop()


def choose(options: argparse.Namespace) -> list[Run]:
    """Tell what is to be played."""
    if options.replay:
        path = Path(options.replay)
        if path.is_file():
            return [Run.from_json(json.loads(path.read_text())["run"])]
        return [draw_named(options.replay)]
    return draw_many(options.seed, options.runs or 10_000, options.releases.split(","))


def within(runs: Iterable[Run], minutes: float) -> Iterator[Run]:
    """Give runs until the time is over; none is broken off."""
    ends_s = time.monotonic() + minutes * 60
    for run in runs:
        if time.monotonic() > ends_s:
            return
        yield run


def report(result: Result, results: Path) -> None:
    """Print a line and what was judged, and write the run's file."""
    sys.stdout.write(result.line() + "\n")
    for one in result.judgements:
        if one.is_wrong:
            sys.stdout.write(
                f"    {one.kind}: {one.who} {one.task} {one.detector} {one.severity} {one.what}\n"
            )
    sys.stdout.writelines(f"    failed: {failure[:300]}\n" for failure in result.failures)
    sys.stdout.flush()
    (results / f"{result.run.name}.json").write_text(json.dumps(result.as_json(), indent=1) + "\n")


def summary(results: Sequence[Result]) -> str:
    """Say what came of all runs in a few lines."""
    counted = [result for result in results if not result.problem]
    totals = verdict(one for result in counted for one in result.judgements)
    peak = max((health.peak_mib for result in counted for health in result.healths), default=0.0)
    return (
        f"{len(counted)} runs counted, {len(results) - len(counted)} broke off; "
        f"{sum(result.is_judged for result in counted)} judged: "
        f"{', '.join(f'{kind} {count}' for kind, count in sorted(totals.items())) or 'nothing'}; "
        f"agents at most {peak:.0f} MiB\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, write; 1 if something was judged."""
    parser = argparse.ArgumentParser(prog="hunt", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="start no run after so long (default: 60)"
    )
    parser.add_argument("--runs", type=int, help="how many runs (default: as many as there is time for)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--releases", default=RELEASES, help=f"separated by commas (default: {RELEASES})")
    parser.add_argument("--replay", metavar="NAME|FILE", help="one run again, by its name or its file")
    parser.add_argument("--list", action="store_true", help="print runs as JSON and play nothing")
    parser.add_argument("--keep", action="store_true", help="keep the directories of all runs")
    parser.add_argument("--results", type=Path, default=Path("build/hunt"), help="where results go")
    options = parser.parse_args(arguments)
    if options.list:
        options.runs = options.runs or 10
        sys.stdout.writelines(f"{run.name} {json.dumps(run.as_json())}\n" for run in choose(options))
        return 0
    options.results.mkdir(parents=True, exist_ok=True)
    results = []
    with tempfile.TemporaryDirectory(prefix="statewarden-hunt-") as scratch:
        brokers = Brokers(Path(scratch))
        base = options.results / "kept" if options.keep else Path(scratch)
        try:
            for run in within(choose(options), options.minutes):
                results.append(play(brokers.for_run(run), base.resolve(), run, keep=options.keep))
                report(results[-1], options.results)
        finally:
            brokers.stop()
    sys.stdout.write(summary(results))
    return int(any(result.is_judged or result.problem for result in results))


if __name__ == "__main__":
    sys.exit(main())
