"""Run real releases of Kafka Streams under live agents, and compare what the agents say with what is true.

What is found of a bug must also be exactly one incident, of the agent and of the rollup's audit: one page, one action.

    python tests/live/run.py                                    the lean set, about fifteen minutes
    python tests/live/run.py --releases 3.9.2 --scenarios life  by hand
    python tests/live/run.py --wide --page build/evidence/live.md         everything, hours
    python tests/live/run.py --releases 4.2.1 --scenarios k20685 --with live.universal=1 stores=window
                                                                the same in another world

Needs Java 17, `mvn` (jars come from its default repository and are kept in `.cache/live`), gcc, and the right to make
a PID namespace.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.live.fleet import audited
from tests.live.incidents import wrong_incidents
from tests.live.judge import Outcome, judge
from tests.live.lean import LEAN
from tests.live.page import render
from tests.live.plan import NEWEST, RELEASES, numbers
from tests.live.processes import Broker, LiveError
from tests.live.scenario import STORES_OF
from tests.live.scenarios import SCENARIOS
from tests.live.stage import Stage
from tests.live.toolbox import BROKER_RELEASE

Run = tuple[str, str, str]


def play(
    broker: Broker, base: Path, run: Run, twist: Mapping[str, str] | None = None, *, keep: bool = False
) -> Outcome:
    """Play one scenario and judge it.

    Args:
        broker: A running one.
        base: Directory for this run's directory.
        run: Scenario, release, guarantee.
        twist: Settings instead of the scenario's, empty: without; `stores` are added to its own.
        keep: Leave the directory.
    """
    name, release, guarantee = run
    scenario = SCENARIOS[name]
    plan = scenario.planned(release, guarantee, twist)
    label = " ".join((name, *(f"{key}={value}" for key, value in (twist or {}).items())))
    stage = Stage(broker, base / "-".join(run), name, plan)
    problem = ""
    try:
        try:
            scenario.play(stage)
        except LiveError as error:
            problem = str(error)
        outcome = judge(label, scenario, stage, stage.finish(), problem)
        if problem or not scenario.must(plan):
            return outcome
        return replace(outcome, incidents=wrong_incidents(outcome.loud, audited(stage.home)))
    finally:
        stage.close(keep=keep)


def choose(options: argparse.Namespace) -> list[Run]:
    """Tell which runs were asked for, release by release."""
    if not (options.wide or options.releases or options.scenarios):
        return list(LEAN)
    return [
        (name, release, guarantee)
        for release in options.releases or RELEASES
        for name in options.scenarios or SCENARIOS
        if numbers(release) >= numbers(SCENARIOS[name].since)
        and numbers(options.broker) >= numbers(SCENARIOS[name].broker_since)
        for guarantee in options.guarantees or SCENARIOS[name].guarantees
        if guarantee in SCENARIOS[name].guarantees
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, write; 1 if a verdict was wrong or a run broke off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wide", action="store_true", help="every scenario on every release")
    parser.add_argument("--releases", nargs="+")
    parser.add_argument(
        "--scenarios", nargs="+", choices=list(SCENARIOS), metavar="NAME", help=f"of {', '.join(SCENARIOS)}"
    )
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
    parser.add_argument("--results", type=Path, help="append outcomes to this file, one JSON object a line")
    parser.add_argument("--page", type=Path, help="write the page of all outcomes in --results")
    parser.add_argument("--keep", type=Path, help="keep the directories of all runs below this one")
    options = parser.parse_args(arguments)
    if bad := [word for word in options.twist if "=" not in word]:
        parser.error(f"--with {bad[0]}: not KEY=VALUE")
    twist = dict(word.split("=", 1) for word in options.twist)
    with tempfile.TemporaryDirectory(prefix="statewarden-live-") as scratch:
        results = options.results or Path(scratch) / "results.jsonl"
        broker = Broker(Path(scratch) / "broker", options.broker)
        try:
            wrong = sum(
                _report(
                    play(broker, options.keep or Path(scratch), run, twist, keep=options.keep is not None),
                    begun,
                    results,
                )
                for run, begun in _timed(choose(options))
            )
        finally:
            broker.stop()
        if options.page:
            rows = [json.loads(line) for line in results.read_text().splitlines()]
            labels = sorted({*SCENARIOS, *(row["scenario"] for row in rows)}, key=_place)
            page = options.page.read_text() if options.page.exists() else ""
            options.page.parent.mkdir(parents=True, exist_ok=True)
            options.page.write_text(render(rows, {label: _about(label) for label in labels}, page))
    return int(wrong > 0)


def _timed(runs: Iterable[Run]) -> Iterable[tuple[Run, float]]:
    for run in runs:
        yield run, time.monotonic()


def _report(outcome: Outcome, begun: float, results: Path) -> bool:
    sys.stdout.write(f"{outcome.line()} ({time.monotonic() - begun:.0f} s)\n")
    sys.stdout.writelines(f"    {line}\n" for line in outcome.details())
    sys.stdout.flush()
    with results.open("a") as file:
        file.write(json.dumps(outcome.as_json()) + "\n")
    return outcome.is_wrong


def _place(label: str) -> tuple[int, str]:
    return list(SCENARIOS).index(label.split()[0]), label


def _about(label: str) -> str:
    """Say what happens in a scenario, with which stores and settings beside the usual ones."""
    name, *twist = label.split()
    scenario = SCENARIOS[name]
    told = [(scenario.play.__doc__ or "").strip().splitlines()[0]]
    stores = str(scenario.plan.get("stores", "kv"))
    stores = STORES_OF[stores](NEWEST) if stores in STORES_OF else stores
    settings = dict(cast("Mapping[str, object]", scenario.plan.get("settings", {})))
    settings |= dict(word.split("=", 1) for word in twist)
    if more := settings.pop("stores", ""):
        stores = f"{stores},{more}"
    told.append(f"Stores: {stores}.".replace(",", ", "))
    if settings:
        told.append("With " + ", ".join(f"`{key}={value}`" for key, value in settings.items()) + ".")
    return " ".join(told)


if __name__ == "__main__":
    sys.exit(main())
