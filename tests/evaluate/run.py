"""Replay every recorded scenario and compare what was found with what happened: `make evaluate`.

Exit code 0 when nothing was missed and nothing was falsely reported; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.events import Affected, Level, Severity  # noqa: E402 - the repository goes on the path first
from agent.detectors.registry import BY_ID  # noqa: E402
from agent.findings.ledger import Finding  # noqa: E402
from agent.inventory.settings import Setting, SettingsBook  # noqa: E402
from agent.replay.memory_disk import MemoryDisk  # noqa: E402
from agent.runtime.pipeline import Pipeline  # noqa: E402
from agent.runtime.replay_run import first_time_us, replay  # noqa: E402

TRACES = ROOT / "tests" / "data" / "traces"
QUIET_US = 20 * 60 * 1_000_000


@dataclass(slots=True)
class Outcome:
    """What one scenario gave.

    Args of the dataclass:
        scenario: Its id.
        verdict: What really happened: bug, exposure or benign.
        found: (pod, finding), info included.
        hits: Detectors of fulfilled expectations.
        missed: Expectations that nothing fulfilled.
        pending: Expectations whose detectors are not registered yet.
        false_alarms: Findings of warning or above that nothing allows.
        faults: Detectors that raised.
    """

    scenario: str
    verdict: str
    found: list[tuple[str, Finding]] = field(default_factory=list)
    hits: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def evaluate(folder: Path, *, with_settings: bool = True, delay_ms: int = 0) -> Outcome:
    """Replay one scenario's pods and judge the judgement."""
    scenario = json.loads((folder / "scenario.json").read_text("utf-8"))
    outcome = Outcome(scenario["id"], scenario["expected"]["verdict"])
    for pod in scenario["pods"]:
        settings = scenario["settings"] if with_settings else {}
        outcome.found += [
            (pod["name"], x) for x in replay_pod(folder / pod["trace"], settings, outcome.faults, delay_ms)
        ]
    if with_settings:
        _compare(outcome, scenario["expect"]["find"], scenario["expect"].get("allow", []))
    else:
        _check_honest(outcome)
    return outcome


def replay_pod(trace: Path, settings: dict[str, object], faults: list[str], delay_ms: int) -> list[Finding]:
    """Replay one pod with the settings that an operator would give.

    Args:
        trace: The recording.
        settings: What the operator says.
        faults: Takes detectors that raised.
        delay_ms: Longest time (seeded, random) until a notification is followed: a busy or throttled agent.
    """
    book = SettingsBook({key: Setting(str(value), "flag") for key, value in settings.items()})
    disk = MemoryDisk()
    pipeline = Pipeline(
        disk,
        book,
        first_time_us(trace),
        lambda record: None,
        on_fault=lambda detector, error: faults.append(f"{trace.parent.name}: {detector}: {error!r}"),
    )
    replay(trace, pipeline, disk, QUIET_US, delays=_delays(delay_ms))
    return pipeline.ledger.findings()


def _delays(delay_ms: int) -> Iterator[int] | None:
    if delay_ms == 0:
        return None
    dice = random.Random(delay_ms)
    return iter(lambda: dice.randint(1, delay_ms * 1_000), None)


def _compare(outcome: Outcome, expected: list[dict[str, object]], allowed: list[str]) -> None:
    used: set[int] = set()
    for wish in expected:
        names = wish["detector"] if isinstance(wish["detector"], list) else [wish["detector"]]
        told = f"{'|'.join(map(str, names))} {wish.get('task_id')} on {wish['pod']}"
        if not any(name in BY_ID for name in names):
            outcome.pending.append(told)
            continue
        matches = [i for i, (pod, x) in enumerate(outcome.found) if _fulfils(pod, x, wish, names)]
        used.update(matches)
        if matches:
            outcome.hits.append(outcome.found[matches[0]][1].detector)
        else:
            outcome.missed.append(told)
    for i, (pod, finding) in enumerate(outcome.found):
        if i in used or finding.severity is Severity.INFO:
            continue
        loud = finding.severity is Severity.CRITICAL and outcome.verdict != "bug"
        outside = finding.affected is Affected.NO and finding.level in (Level.DAMAGE, Level.EXPOSURE)
        if finding.detector not in allowed or loud or outside:
            outcome.false_alarms.append(f"{finding.detector} {finding.task_id} on {pod}: {finding.summary}")


def _check_honest(outcome: Outcome) -> None:
    """Without any setting nothing may be `confirmed` in a benign scenario."""
    for pod, finding in outcome.found:
        if outcome.verdict == "benign" and finding.severity is Severity.CRITICAL:
            outcome.false_alarms.append(f"{finding.detector} {finding.task_id} on {pod}: {finding.summary}")


def _fulfils(pod: str, finding: Finding, wish: dict[str, object], names: list[object]) -> bool:
    if finding.detector not in names or pod != wish["pod"] or finding.task_id != wish.get("task_id"):
        return False
    return wish.get("severity") in (None, finding.severity.value)


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Print one line per scenario, then recall and false alarms per detector."""
    for x in outcomes:
        state = "ok" if not (x.missed or x.false_alarms or x.faults) else "BAD"
        loud = sorted(
            {f"{f.detector}:{f.severity.value}" for _, f in x.found if f.severity is not Severity.INFO}
        )
        _say(f"{state:<4}{x.scenario:<46}{x.verdict:<10}{', '.join(loud) or '-'}")
        for word, rows in (
            ("missed", x.missed),
            ("false alarm", x.false_alarms),
            ("pending", x.pending),
            ("fault", x.faults),
        ):
            for row in rows:
                _say(f"      {word}: {row}")
    _say("")
    _say(f"{'detector':<26}{'expected':>9}{'found':>7}{'missed':>8}{'false alarms':>14}")
    for name, expected, found, missed, alarms in detector_rows(outcomes):
        _say(f"{name:<26}{expected:>9}{found:>7}{missed:>8}{alarms:>14}")


def detector_rows(outcomes: Sequence[Outcome]) -> list[tuple[str, int, int, int, int]]:
    """(detector, expected, found, missed, false alarms) over all scenarios."""
    hits: dict[str, int] = defaultdict(int)
    missed: dict[str, int] = defaultdict(int)
    alarms: dict[str, int] = defaultdict(int)
    for x in outcomes:
        for name in x.hits:
            hits[name] += 1
        for row in x.missed:
            missed[row.split(" ")[0].split("|")[0]] += 1
        for row in x.false_alarms:
            alarms[row.split(" ")[0]] += 1
    return [(n, hits[n] + missed[n], hits[n], missed[n], alarms[n]) for n in sorted({*BY_ID, *missed})]


def render_page(outcomes: Sequence[Outcome]) -> str:
    """Render docs/evaluation.md: recall and false alarms per detector, then every scenario."""
    lines = [
        "# Evaluation",
        "",
        "Generated by `make evaluate`; do not edit. Recordings of real Kafka Streams runs (`tests/data/traces`),"
        " replayed with the settings that an operator would give. A false alarm is a finding of warning or above that"
        " the recording's ground truth does not allow; findings of severity info are not counted.",
        "",
        f"{len(outcomes)} scenarios, {sum(x.verdict == 'benign' for x in outcomes)} of them benign.",
        "",
        "| detector | expected | found | missed | false alarms |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [f"| {n} | {e} | {f} | {m} | {a} |" for n, e, f, m, a in detector_rows(outcomes)]
    lines += ["", "| scenario | what happened | findings of warning or above | state |", "|---|---|---|---|"]
    for x in outcomes:
        loud = sorted(
            {f"{f.detector} ({f.severity.value})" for _, f in x.found if f.severity is not Severity.INFO}
        )
        problems = [*(f"missed {m}" for m in x.missed), *(f"false: {a}" for a in x.false_alarms), *x.faults]
        lines.append(
            f"| {x.scenario} | {x.verdict} | {', '.join(loud) or '-'} | {'; '.join(problems) or 'ok'} |"
        )
    return "\n".join(lines) + "\n"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate all scenarios, or those whose name contains a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only scenarios whose name contains this")
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder of scenarios")
    parser.add_argument(
        "--no-settings", action="store_true", help="give no setting: nothing may be wrongly sure"
    )
    parser.add_argument("--delay-ms", type=int, default=0, help="follow notifications up to so late")
    parser.add_argument("--page", type=Path, help="write the result to this Markdown file")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args(arguments)
    folders = sorted(x.parent for x in chosen.traces.glob("*/scenario.json") if chosen.word in x.parent.name)
    if not folders:
        sys.stderr.write(f"evaluate: no scenario below {chosen.traces} contains {chosen.word!r}\n")
        return 2
    with ProcessPoolExecutor(chosen.jobs, get_context("fork")) as pool:
        wishes = [
            pool.submit(evaluate, x, with_settings=not chosen.no_settings, delay_ms=chosen.delay_ms)
            for x in folders
        ]
        outcomes = [wish.result() for wish in wishes]
    print_table(outcomes)
    if chosen.page is not None:
        chosen.page.write_text(render_page(outcomes), "utf-8")
    missed = sum(len(x.missed) for x in outcomes)
    alarms = sum(len(x.false_alarms) for x in outcomes)
    faults = sum(len(x.faults) for x in outcomes)
    pending = sum(len(x.pending) for x in outcomes)
    _say(
        f"\n{len(outcomes)} scenarios: {missed} missed, {alarms} false alarms, {faults} faults,"
        f" {pending} expectations pending"
    )
    return int(bool(missed or alarms or faults))


if __name__ == "__main__":
    sys.exit(main())
