"""The lab: real releases of Kafka Streams under live agents, and what the agents say against what is true.

    python tests/lab/run.py                                     written plays: the lean set, about fifteen minutes
    python tests/lab/run.py --releases 3.9.2 --scenarios life   by hand
    python tests/lab/run.py --wide                              every one on every release, hours
    python tests/lab/run.py --releases 4.2.1 --scenarios k20685 --with live.universal=1 stores=window
                                                                the same in another world
    make hunt ARGS="--minutes 60 --seed 1 --releases 4.4.0,3.9.2"   plays drawn from a seed
    make hunt ARGS="--runs 10 --releases 4.2.1"
    make hunt ARGS="--replay 4.3.1-eos-10017 --keep"  a run again, by its name or its result's file

Needs Java 17, `mvn` (jars come from its default repository and are kept in `.cache/live`), gcc, and the right to make
a PID namespace. Every run leaves a file below `--results`. Exit code 1: a word was wrong; 3: too few runs counted, the
others broke off; 2: it cannot be played here.
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
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lab.catalogue import LEAN, named_run, run_of
from tests.lab.design import Run
from tests.lab.draw import draw_many
from tests.lab.ground import CATCH_UP_S
from tests.lab.outcome import conclusion, play_all, summary
from tests.lab.plan import FILES, LAST_OF_MINORS, RELEASES, numbers
from tests.lab.play import Result, play
from tests.lab.processes import Brokers, LiveError, broker_release
from tests.lab.scenarios import SCENARIOS
from tests.lab.toolbox import BROKER_RELEASE, MissingToolError, application_classes, broker_classes

DRAWN_RELEASES = ",".join((*LAST_OF_MINORS[:-3:-1], FILES))
HUNT = "hunt"


# ------------------------------------------------------------------------------------ what is played


def named(word: str) -> Run:
    """Give the run of a name, or of a result's file."""
    path = Path(word)
    return Run.from_json(json.loads(path.read_text())["run"]) if path.is_file() else named_run(word)


def choose_drawn(options: argparse.Namespace) -> list[Run]:
    """Tell which drawn runs are to be played."""
    if options.replay:
        return [named(word) for word in options.replay]
    count = 10_000 if options.runs is None else options.runs
    return draw_many(options.seed, count, options.releases.split(","))


def choose_written(options: argparse.Namespace) -> list[Run]:
    """Tell which runs of the catalogue were asked for, release by release."""
    twist = dict(word.split("=", 1) for word in options.twist)
    if not (options.wide or options.releases or options.scenarios):
        return [run_of(*each, twist) for each in LEAN]
    return [
        run_of(name, release, guarantee, twist)
        for release in (options.releases.split(",") if options.releases else RELEASES)
        for name in options.scenarios or (name for name, x in SCENARIOS.items() if not x.fault)
        if numbers(release) >= numbers(SCENARIOS[name].since)
        and numbers(options.broker) >= numbers(SCENARIOS[name].broker_since)
        for guarantee in SCENARIOS[name].guarantees
        if not options.guarantees or guarantee in options.guarantees
    ]


# ------------------------------------------------------------------------------------ playing


def report(result: Result, results: Path) -> None:
    """Print a line and what was judged, and write the run's file."""
    sys.stdout.write(result.line() + "\n")
    for one in result.judgements:
        if one.is_wrong or result.run.label:
            sys.stdout.write(
                f"    {one.kind}: {one.who} {one.task} {one.detector} {one.severity} {one.what}\n"
            )
    sys.stdout.writelines(f"    failed: {failure[:300]}\n" for failure in result.failures)
    sys.stdout.writelines(f"    proof: {line}\n" for line in result.proof)
    sys.stdout.flush()
    (results / f"{result.run.name}.json").write_text(
        json.dumps(result.as_json(), indent=1, default=sorted) + "\n"
    )


def fetch(runs: Iterable[Run]) -> None:
    """Fetch and compile what runs need, as far as it is not there, or raise `MissingToolError`."""
    for release in sorted({broker_release(run) for run in runs}):
        broker_classes(release)
    for release in sorted({run.release for run in runs}):
        application_classes(release)


def play_chosen(options: argparse.Namespace, runs: Sequence[Run]) -> list[Result]:
    """Play what was asked for."""
    results: list[Result] = []
    options.results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="statewarden-lab-") as scratch:
        brokers = Brokers(Path(scratch), options.broker)
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
            report(result, options.results)
            return result

        try:
            ends_s = time.monotonic() + options.minutes * 60
            play_all(runs, options.again, play_one, lambda: time.monotonic() > ends_s)
        finally:
            brokers.stop()
    return results


# ------------------------------------------------------------------------------------ command line


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line; `hunt` before it: of drawn plays."""
    is_hunt = given[:1] == [HUNT]
    parser = argparse.ArgumentParser(
        prog=HUNT if is_hunt else "lab", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--releases", default=DRAWN_RELEASES if is_hunt else "", help="separated by commas")
    parser.add_argument("--keep", action="store_true", help="keep the directories of all runs")
    parser.add_argument(
        "--again", type=int, default=0, metavar="N", help="play what broke off up to N times again at the end"
    )
    parser.add_argument(
        "--enough", type=int, metavar="N", help="how many runs must count (default: all that were begun)"
    )
    where = "build/hunt" if is_hunt else "build/lab"
    parser.add_argument(
        "--results", type=Path, default=Path(where), help=f"where results go (default: {where})"
    )
    (_drawn_options if is_hunt else _written_options)(parser)
    options = parser.parse_args(given[is_hunt:])
    options.is_hunt = is_hunt
    if bad := [word for word in options.twist if "=" not in word]:
        parser.error(f"--with {bad[0]}: not KEY=VALUE")
    return options


def _written_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wide", action="store_true", help="every scenario on every release")
    names = ", ".join(SCENARIOS)
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), metavar="NAME", help=f"of {names}")
    parser.add_argument("--guarantees", nargs="+")
    parser.add_argument(
        "--broker",
        default=BROKER_RELEASE,
        help=f"release of the broker (default: {BROKER_RELEASE}); scenarios of the streams protocol need 4.2 or later",
    )
    parser.add_argument(
        "--with",
        dest="twist",
        nargs="+",
        default=(),
        metavar="KEY=VALUE",
        help="settings instead of the scenario's own, nothing after `=` takes one away, `stores=...` adds stores:"
        " the same life in another world",
    )
    parser.set_defaults(fetch=False, runs=None, replay=(), minutes=1e9, patience_s=CATCH_UP_S)


def _drawn_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="start no run after so long (default: 60)"
    )
    parser.add_argument("--runs", type=int, help="how many runs (default: as many as there is time for)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--replay", nargs="+", metavar="NAME|FILE", help="runs again, by their names or files"
    )
    patience = f"a run breaks off if its application does not catch up in so long (default: {CATCH_UP_S:.0f})"
    parser.add_argument("--patience-s", type=float, default=CATCH_UP_S, metavar="S", help=patience)
    parser.add_argument("--fetch", action="store_true", help="only fetch what the runs need")
    parser.set_defaults(broker=BROKER_RELEASE, twist=())


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, write; the exit code is that of the docstring above."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that every process is ended
    options = parse(given)
    runs = (choose_drawn if options.is_hunt else choose_written)(options)
    try:
        if options.fetch:
            fetch(runs)
            return 0
        results = play_chosen(options, runs)
    except MissingToolError as missing:
        sys.stderr.write(f"the lab cannot play here: {missing}\n")
        return 2
    begun = list({result.run.name: result.run for result in results}.values())
    enough = len(begun) if options.enough is None else options.enough
    code, why = conclusion(results, runs if options.replay else begun, enough)
    sys.stdout.write(summary(results) + why)
    return code


if __name__ == "__main__":
    sys.exit(main())
