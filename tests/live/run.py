"""Run scenarios with real releases of Kafka Streams under live agents, and compare what they say with what is true.

python tests/live/run.py --releases 3.9.2 4.3.1 --scenarios life --keep /tmp/live
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.live.judge import Outcome, judge
from tests.live.processes import Broker, LiveError
from tests.live.scenarios import SCENARIOS, Scenario, stores_for
from tests.live.stage import Plan, Stage, numbers


def play(
    broker: Broker, base: Path, name: str, scenario: Scenario, release: str, guarantee: str, keep: bool
) -> Outcome:
    """Play one scenario and judge it."""
    plan = dict(scenario.plan)
    if plan.get("stores") == "all":
        plan["stores"] = stores_for(release)
    home = base / f"{name}-{release}-{guarantee}"
    stage = Stage(broker, home, name, Plan(release, guarantee, **plan))  # type: ignore[arg-type]
    problem = ""
    try:
        try:
            scenario.play(stage)
        except LiveError as error:
            problem = str(error)
        outcome = judge(name, scenario, stage, stage.finish(), problem)
    finally:
        stage.close(keep=keep)
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, write; 1 if a verdict was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", nargs="+", required=True)
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS))
    parser.add_argument("--guarantees", nargs="+", default=None)
    parser.add_argument("--results", type=Path, default=None, help="append outcomes as JSON lines")
    parser.add_argument("--keep", type=Path, default=None, help="keep directories below this one")
    options = parser.parse_args(arguments)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="live-") as scratch:
        base = options.keep or Path(scratch)
        broker = Broker(Path(scratch) / "broker")
        try:
            for release in options.releases:
                for name in options.scenarios:
                    if numbers(release) < numbers(SCENARIOS[name].since):
                        continue
                    for guarantee in options.guarantees or SCENARIOS[name].guarantees:
                        begun = time.monotonic()
                        outcome = play(
                            broker, base, name, SCENARIOS[name], release, guarantee, options.keep is not None
                        )
                        print(outcome.line(), f"({time.monotonic() - begun:.0f} s)", flush=True)
                        for line in outcome.details():
                            print("    " + line, flush=True)
                        wrong += outcome.is_wrong
                        if options.results:
                            with options.results.open("a") as results:
                                results.write(json.dumps(outcome.as_json()) + "\n")
        finally:
            broker.stop()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
