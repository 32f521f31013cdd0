"""Replay every recorded scenario and compare what was found with what happened: `make evaluate`.

Exit code 0 when nothing was missed and nothing was falsely reported; 1 otherwise. Each scenario is replayed with
everything told, with the two facts that everybody knows, with a false third one, and with nothing: what is missed
then must be named by the fact that it needs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.events import Affected, Level, Severity, Status  # noqa: E402 - the repository goes on the path first
from agent.contract.finding import Finding  # noqa: E402
from agent.detectors import BY_ID, DETECTORS  # noqa: E402
from agent.detectors.undecided import META as UNDECIDED  # noqa: E402
from agent.judging.base import Detector  # noqa: E402
from agent.judging.decision import ASKED, GUARANTEE, STANDBYS  # noqa: E402
from tests.support.replays import replayed  # noqa: E402

TRACES = ROOT / "tests" / "data" / "traces"
HARMLESS = ("benign-", "control-")
"""Recordings of which no critical is shown at any time, however short."""
TWO_FACTS = ("processing_guarantee", "kafka_streams_version", "enable_transactional_statestores")
"""What everybody knows; the third only where a recording says so (4.4 and later)."""


class Told(StrEnum):
    """What somebody told the agent."""

    ALL = "everything"
    TWO = "two facts"
    STANDBY = "two facts and one standby"
    NOTHING = "nothing"


def told_settings(settings: dict[str, object], told: Told) -> dict[str, object]:
    """Give the settings of a scenario as they would be told."""
    if told is Told.ALL:
        return settings
    two = {key: value for key, value in settings.items() if key in TWO_FACTS and told is not Told.NOTHING}
    return {**two, "num_standby_replicas": 1} if told is Told.STANDBY else two


@dataclass(slots=True)
class Outcome:
    scenario: str  # its id
    verdict: str  # what really happened: bug, exposure or benign
    told: Told = Told.ALL  # what the agent was told
    found: list[tuple[str, Finding]] = field(default_factory=list)  # (pod, finding), info included
    hits: list[str] = field(default_factory=list)  # detectors of fulfilled expectations
    missed: list[str] = field(default_factory=list)  # expectations that nothing fulfilled
    # The same where the detector names a fact that was not told: (detector, fact)
    needing: list[tuple[str, str]] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)  # expectations whose detectors are not registered yet
    false_alarms: list[str] = field(default_factory=list)  # findings of warning or above that nothing allows
    faults: list[str] = field(default_factory=list)  # detectors that raised
    questions: list[str] = field(
        default_factory=list
    )  # an answer does not decide them, or nothing asks for them


def evaluate(folder: Path, *, told: Told = Told.ALL, delay_ms: int = 0) -> Outcome:
    """Replay one scenario's pods and judge the judgement."""
    scenario = json.loads((folder / "scenario.json").read_text("utf-8"))
    outcome = Outcome(scenario["id"], scenario["expected"]["verdict"], told)
    settings = told_settings(scenario["settings"], told)
    for pod in scenario["pods"]:
        findings = replay_pod(folder / pod["trace"], settings, outcome.faults, delay_ms)
        outcome.found += [(pod["name"], x) for x in findings]
        if told is Told.NOTHING:
            said = questions(folder / pod["trace"], scenario["settings"])
            outcome.questions += [f"{words} on {pod['name']}" for words in said]
        if folder.name.startswith(HARMLESS) and told is Told.ALL:
            shown = replayed(folder / pod["trace"], settings, delay_ms=delay_ms).shown
            loud = sorted(name for name, severity in shown if severity == Severity.CRITICAL.value)
            outcome.false_alarms += [f"{name} on {pod['name']}: critical for a while" for name in loud]
    wishes = scenario["expect"]["find"]
    if told is not Told.ALL:
        wishes = [{key: value for key, value in wish.items() if key != "severity"} for wish in wishes]
    allowed = list(scenario["expect"].get("allow", []))
    if told is not Told.ALL:  # a suspicion that names the fact by which it would be none
        allowed += scenario["expect"].get("allow_untold", [])
    _compare(outcome, wishes, allowed)
    if told is Told.STANDBY:
        outcome.false_alarms.clear()  # a false fact may mislead; it must not hide anything
    _name_missing_facts(outcome, settings)
    return outcome


def questions(trace: Path, settings: dict[str, object]) -> Iterator[str]:
    """Say which question of an agent that was told nothing is a wrong one.

    Its answer must give the verdict that everything told gives; and where release, standbys and kind of stores are
    told, only what some guarantee makes wrong is asked about.
    """
    defaults: dict[str, object] = {GUARANTEE: "at_least_once", STANDBYS: 0}
    given = defaults | settings

    def told(*names: str, **more: object) -> tuple[Finding, ...]:
        return replayed(trace, {x: given[x] for x in names if x in given} | more).findings

    asked = _asked(told())
    if not asked or not asked.keys() <= given.keys():
        return  # a run that changes its release cannot be told one
    answered = told(*asked)
    if _loud(answered) != _loud(told(*given)):
        yield f"{', '.join(asked)}: the answer gives {_loud(answered)}, everything told {_loud(told(*given))}"
    if _asked(answered) and not any("Other settings may matter" in x for x in asked.values()):
        yield f"{', '.join(asked)}: the answer leaves {', '.join(_asked(answered))} open"
    rest = [x for x in ASKED if x != GUARANTEE]
    left = _asked(told(*rest))
    either = [_loud(told(*rest, **{GUARANTEE: x})) for x in ("exactly_once_v2", "at_least_once")]
    if left and (left.keys() != {GUARANTEE} or not any(either)):
        yield f"{', '.join(left)}: asked, and no guarantee makes anything wrong"


def _asked(findings: Iterable[Finding]) -> dict[str, str]:
    """List the settings that are asked for, each with what is said of them."""
    asked = [x for x in findings if x.detector == UNDECIDED.id and x.status is Status.OPEN]
    return {fact: x.summary for x in asked for fact in x.missing_facts}


def _loud(findings: Iterable[Finding]) -> set[tuple[str | None, str, str]]:
    """What is open, a warning or more, and no question."""
    return {
        (x.task_id, x.detector, x.severity.value) for x in findings
        if x.status is Status.OPEN and x.severity is not Severity.INFO and x.detector != UNDECIDED.id
    }  # fmt: skip


def _name_missing_facts(outcome: Outcome, settings: dict[str, object]) -> None:
    """What is missed for want of a setting is no miss where the agent asked for it.

    A remark and an event of less than a minute are not asked about: then the setting is one that the detector needs.
    """
    asked = [(pod, x) for pod, x in outcome.found if x.detector == UNDECIDED.id]
    for row in list(outcome.missed) if outcome.told is not Told.ALL else ():
        names, task, _, pod = row.split(" ")
        questions = [
            x
            for on, x in asked
            if on == pod
            and any(
                name in y.what and y.where.endswith(task) for name in names.split("|") for y in x.evidence
            )
        ]
        name = names.split("|")[0]
        wanted = [fact for fact in BY_ID[name].meta.needs if fact not in settings] if name in BY_ID else []
        if questions or wanted:
            outcome.missed.remove(row)
            facts = sorted({fact for x in questions for fact in x.missing_facts})
            outcome.needing.append((name, f"asked: {', '.join(facts)}" if questions else ", ".join(wanted)))


def replay_pod(
    trace: Path,
    settings: dict[str, object],
    faults: list[str],
    delay_ms: int,
    detectors: tuple[Detector, ...] = DETECTORS,
) -> list[Finding]:
    """Replay one pod, see `replayed`; `faults` takes detectors that raised."""
    found = replayed(trace, settings, delay_ms=delay_ms, detectors=detectors)
    faults += [f"{trace.parent.name}: {detector}: {error}" for detector, error in found.faults]
    return list(found.findings)


def _compare(outcome: Outcome, expected: list[dict[str, object]], allowed: list[str]) -> None:
    used: set[int] = set()
    for wish in expected:
        names = wish["detector"] if isinstance(wish["detector"], list) else [wish["detector"]]
        told = f"{'|'.join(map(str, names))} {wish.get('task_id')} on {wish['pod']}"
        if not any(name in BY_ID for name in names):
            outcome.pending.append(told)
            continue
        matches = [
            i for i, (pod, x) in enumerate(outcome.found) if _fulfils(pod, x, wish, names, outcome.told)
        ]
        used.update(matches)
        if matches:
            outcome.hits.append(outcome.found[matches[0]][1].detector)
        else:
            outcome.missed.append(told)
    for i, (pod, finding) in enumerate(outcome.found):
        if i in used or finding.severity is Severity.INFO or finding.detector == UNDECIDED.id:
            continue  # a question is no alarm
        loud = finding.severity is Severity.CRITICAL and outcome.verdict != "bug"
        outside = finding.affected is Affected.NO and finding.level in (Level.DAMAGE, Level.EXPOSURE)
        if finding.detector not in allowed or loud or outside:
            outcome.false_alarms.append(f"{finding.detector} {finding.task_id} on {pod}: {finding.summary}")


def _fulfils(pod: str, finding: Finding, wish: dict[str, object], names: list[object], told: Told) -> bool:
    if finding.detector not in names or pod != wish["pod"] or finding.task_id != wish.get("task_id"):
        return False
    if "severity" in wish:
        wanted = wish["severity"]
        return finding.severity.value in (wanted if isinstance(wanted, list) else [wanted])
    return finding.severity is not Severity.INFO or told is Told.ALL


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


def knowledge_rows(outcomes: Sequence[Outcome]) -> list[tuple[str, dict[Told, tuple[int, int]], str]]:
    """(detector, told -> (expected, found at warning or above), facts that the rest needs) over all scenarios."""
    counts: dict[str, dict[Told, list[int]]] = defaultdict(lambda: {told: [0, 0] for told in Told})
    needs: dict[str, set[str]] = defaultdict(set)
    for x in outcomes:
        for name in x.hits:
            counts[name][x.told][0] += 1
            counts[name][x.told][1] += 1
        for row in x.missed:
            counts[row.split(" ")[0].split("|")[0]][x.told][0] += 1
        for name, facts in x.needing:
            counts[name][x.told][0] += 1
            needs[name].update(facts.split(", "))
    return [
        (name, {told: (row[0], row[1]) for told, row in counts[name].items()}, ", ".join(sorted(needs[name])))
        for name in sorted(counts)
    ]


def render(outcomes: Sequence[Outcome]) -> str:
    """Render recall and false alarms per detector, what less knowledge costs, every scenario, every mistake."""
    first = [x for x in outcomes if x.told is outcomes[0].told]
    lines = [
        "# Evaluation",
        "",
        "Recordings of real Kafka Streams runs (`tests/data/traces`), replayed with the settings that an operator would"
        " give. A false alarm is a finding of warning or above that the recording's ground truth does not allow.",
        "",
        f"{len(first)} scenarios, {sum(x.verdict == 'benign' for x in first)} of them benign. A row of zeros: no"
        " recording is of what this detector reports, and in none did it raise a false alarm.",
        "",
        "| detector | expected | found | missed | false alarms |",
        "|---|---:|---:|---:|---:|",
        *(f"| {' | '.join(map(str, row))} |" for row in detector_rows(first)),
        "",
        "How much of what is expected is reported at warning or above with fewer settings. A wrong third setting (one"
        " standby where there is none) must not hide anything.",
        "",
        f"| detector | {' | '.join(told.value for told in Told)} | the rest needs |",
        f"|---|{'---:|' * len(Told)}---|",
    ]
    for name, by_told, facts in knowledge_rows(outcomes):
        cells = " | ".join(f"{found} of {expected}" for expected, found in by_told.values())
        lines.append(f"| {name} | {cells} | {facts or '-'} |")
    lines += ["", "| scenario | what happened | findings of warning or above |", "|---|---|---|"]
    for x in first:
        loud = {f"{f.detector} ({f.severity.value})" for _, f in x.found if f.severity is not Severity.INFO}
        lines.append(f"| {x.scenario} | {x.verdict} | {', '.join(sorted(loud)) or '-'} |")
    lines.append("")
    for x in outcomes:
        for word, rows in (
            ("missed", x.missed), ("false alarm", x.false_alarms), ("pending", x.pending), ("fault", x.faults),
            ("question", x.questions),
        ):  # fmt: skip
            lines += [f"- {word}, told {x.told.value}: {x.scenario}: {row}" for row in rows]
    return "\n".join(lines) + "\n"


def publish(page: str, target: Path | None) -> None:
    """Print a page, and write it to its file."""
    sys.stdout.write(page)
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate all scenarios, or those whose name contains a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only scenarios whose name contains this")
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder of scenarios")
    parser.add_argument(
        "--told", choices=[x.value for x in Told], help="only with so much told (default: each)"
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
        levels = list(Told) if chosen.told is None else [Told(chosen.told)]
        wishes = [
            pool.submit(evaluate, x, told=told, delay_ms=chosen.delay_ms) for told in levels for x in folders
        ]
        outcomes = [wish.result() for wish in wishes]
    publish(render(outcomes), chosen.page)
    missed = sum(len(x.missed) for x in outcomes)
    alarms = sum(len(x.false_alarms) for x in outcomes)
    faults = sum(len(x.faults) for x in outcomes)
    pending = sum(len(x.pending) for x in outcomes)
    wrong = sum(len(x.questions) for x in outcomes)
    sys.stdout.write(
        f"\n{len(folders)} scenarios: {missed} missed, {alarms} false alarms, {faults} faults,"
        f" {wrong} wrong questions, {pending} expectations pending\n"
    )
    return int(bool(missed or alarms or faults or wrong))


if __name__ == "__main__":
    sys.exit(main())
