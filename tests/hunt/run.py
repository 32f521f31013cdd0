"""The hunt: applications drawn from a seed live through mishaps under live agents, and every word is judged.

    make hunt ARGS="--minutes 60 --seed 1 --releases 4.4.0,3.9.2"
    make hunt ARGS="--runs 10 --releases 4.2.1"
    make hunt ARGS="--list --runs 10"                 what would be played
    make hunt ARGS="--replay 4.3.1-eos-10017 --keep"  a run again, by its name or its result's file
    make hunt ARGS="--reduce 4.3.1-eos-10017"         the same with ever fewer steps, as long as it is judged the same
    make hunt ARGS="--judge build/hunt/*.json"        what the judge says otherwise of results than it did
    make hunt ARGS="--runs 0 --page build/evidence/hunt.md"     the page of all results
    make hunt ARGS="--planted"                        faults planted into Kafka Streams, see planted.py

Needs what `tests/live/run.py` needs. Every run leaves a file below `--results`. Exit code 1: a word was wrong;
3: too few runs counted, the others broke off; 2: it cannot be played here.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.hunt import planted
from tests.hunt.again import changed
from tests.hunt.brokers import Brokers, broker_release
from tests.hunt.design import Run
from tests.hunt.draw import draw_many, draw_named
from tests.hunt.ground import CATCH_UP_S
from tests.hunt.outcome import conclusion, play_all, summary
from tests.hunt.page import render
from tests.hunt.play import Result, play
from tests.hunt.reduce import reduce_run
from tests.live.plan import FILES, LAST_OF_MINORS
from tests.live.processes import LiveError
from tests.live.toolbox import MissingToolError, application_classes, broker_classes

RELEASES = ",".join((*LAST_OF_MINORS[:-3:-1], FILES))


def named(word: str) -> Run:
    """Give the run of a name, or of a result's file."""
    path = Path(word)
    return Run.from_json(json.loads(path.read_text())["run"]) if path.is_file() else draw_named(word)


def choose(options: argparse.Namespace) -> list[Run]:
    """Tell what is to be played."""
    if options.replay:
        return [named(word) for word in options.replay]
    count = 10_000 if options.runs is None else options.runs
    return draw_many(options.seed, count, options.releases.split(","))


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


def reduced(
    run: Run, tries: int, play_one: Callable[[Run], Result], keep: Callable[[Run], object], word: str = ""
) -> Run | None:
    """Leave out steps as long as the run is judged for something that the whole run was judged for.

    Args:
        run: One that was judged.
        tries: How often a run is played before it passes for right: real processes are not the same twice.
        play_one: Plays and reports.
        keep: Takes each shorter run: a reduction takes long, and may be broken off.
        word: Detector whose loud words are a reason, too, even if they are true.

    Returns:
        None: the whole run was not judged this time.
    """
    first = next(filter(None, (_reasons(play_one(run), word) for _ in range(tries))), None)
    if first is None:
        return None

    def still_fails(shorter: Run) -> bool:
        fails = any(_reasons(play_one(shorter), word) & first for _ in range(tries))
        if fails:
            keep(shorter)
        return fails

    return reduce_run(run, still_fails)


def _reasons(result: Result, detector: str) -> set[tuple[str, str]]:
    return {
        (one.kind, one.detector)
        for one in result.judgements
        if one.is_wrong or (detector and one.detector == detector)
    }


def reduce_one(run: Run, options: argparse.Namespace, play_one: Callable[[Run], Result]) -> None:
    """Reduce a run; what is left is in a file that `--replay` takes."""
    path = options.results / f"{run.name}-reduced.json"

    def keep(shorter: Run) -> None:
        path.write_text(json.dumps({"run": shorter.as_json()}, indent=1) + "\n")

    shortest = reduced(run, options.tries, play_one, keep, options.word)
    if shortest is None:
        sys.stdout.write(f"{run.name} was not judged in {options.tries} tries\n")
        return
    keep(shortest)
    sys.stdout.writelines(f"needed: {step.words()}\n" for step in shortest.steps)


def fetch(runs: Iterable[Run]) -> None:
    """Fetch and compile what runs need, as far as it is not there.

    Raises:
        MissingToolError: a tool or the network is not there.
    """
    for release in sorted({broker_release(run) for run in runs}):
        broker_classes(release)
    for release in sorted({run.release for run in runs}):
        application_classes(release)


def hunt(options: argparse.Namespace) -> list[Result]:
    """Play what was asked for."""
    results: list[Result] = []
    options.results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="statewarden-hunt-") as scratch:
        brokers = Brokers(Path(scratch))
        base = (options.results / "kept" if options.keep else Path(scratch)).resolve()

        def play_one(run: Run) -> Result:
            begun_s = time.monotonic()
            shutil.rmtree(base / run.name, ignore_errors=True)  # of a try that broke off
            try:
                result = play(
                    brokers.for_run(run), base, run, keep=options.keep, patience_s=options.patience_s
                )
            except (LiveError, OSError, subprocess.SubprocessError) as error:  # on the way in or out
                brokers.stop()
                result = Result(run, time.monotonic() - begun_s, problem=f"{type(error).__name__}: {error}")
            results.append(result)
            # a shorter run has the name of the whole one, whose result is not to be lost
            report(result, Path(scratch) if options.reduce else options.results)
            return result

        try:
            if options.reduce:
                reduce_one(named(options.reduce), options, play_one)
            else:
                ends_s = time.monotonic() + options.minutes * 60
                play_all(choose(options), options.again, play_one, lambda: time.monotonic() > ends_s)
        finally:
            brokers.stop()
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, write; the exit code is that of the docstring above."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that every process is ended
    if "--planted" in given:
        return planted.main([word for word in given if word != "--planted"])
    parser = argparse.ArgumentParser(prog="hunt", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="start no run after so long (default: 60)"
    )
    parser.add_argument("--runs", type=int, help="how many runs (default: as many as there is time for)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--releases", default=RELEASES, help=f"separated by commas (default: {RELEASES})")
    parser.add_argument(
        "--replay", nargs="+", metavar="NAME|FILE", help="runs again, by their names or files"
    )
    parser.add_argument("--reduce", metavar="NAME|FILE", help="find the steps that a judged run needs")
    parser.add_argument(
        "--word",
        default="",
        metavar="DETECTOR",
        help="when reducing: what it says is a reason, even if it is true",
    )
    parser.add_argument("--tries", type=int, default=2, help="of each shorter run when reducing (default: 2)")
    parser.add_argument(
        "--judge",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="judge results again, tell what is judged otherwise",
    )
    parser.add_argument(
        "--again",
        type=int,
        default=0,
        metavar="N",
        help="play runs that broke off up to N times again at the end",
    )
    parser.add_argument(
        "--enough", type=int, metavar="N", help="how many runs must count (default: all that were begun)"
    )
    parser.add_argument(
        "--patience-s",
        type=float,
        default=CATCH_UP_S,
        metavar="S",
        help=f"a run breaks off if its application does not catch up in so long (default: {CATCH_UP_S:.0f})",
    )
    parser.add_argument("--fetch", action="store_true", help="only fetch what the runs need")
    parser.add_argument("--list", action="store_true", help="print runs as JSON and play nothing")
    parser.add_argument("--keep", action="store_true", help="keep the directories of all runs")
    parser.add_argument("--results", type=Path, default=Path("build/hunt"), help="where results go")
    parser.add_argument("--page", type=Path, help="write the page of all results there")
    options = parser.parse_args(given)
    if options.list:
        options.runs = options.runs or 10
        sys.stdout.writelines(f"{run.name} {json.dumps(run.as_json())}\n" for run in choose(options))
        return 0
    if options.judge:
        sys.stdout.writelines(f"{line}\n" for line in changed(options.judge))
        return 0
    try:
        if options.fetch:
            fetch(choose(options))
            return 0
        results = hunt(options) if options.runs != 0 else []
    except MissingToolError as missing:
        sys.stderr.write(f"the hunt cannot be played here: {missing}\n")
        return 2
    if options.page:
        rows = [json.loads(path.read_text()) for path in sorted(options.results.glob("*-[0-9]*.json"))]
        page = options.page.read_text() if options.page.exists() else ""
        options.page.parent.mkdir(parents=True, exist_ok=True)
        options.page.write_text(render([row for row in rows if "judgements" in row], page))
    begun = list({result.run.name: result.run for result in results}.values())
    enough = len(begun) if options.enough is None else options.enough
    code, why = conclusion(results, choose(options) if options.replay else begun, enough)
    sys.stdout.write(summary(results) + why)
    return code


if __name__ == "__main__":
    sys.exit(main())
