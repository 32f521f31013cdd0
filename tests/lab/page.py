"""The page of the lab: written plays as a matrix of scenario x release, drawn ones counted, and every judgement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.lab.catalogue import about
from tests.lab.design import SHORT
from tests.lab.judge import HARMLESS
from tests.lab.plan import EOS, numbers
from tests.lab.scenarios import SCENARIOS

Row = Mapping[str, Any]
Key = tuple[str, str, str]
"""Scenario, release, guarantee."""
MARKER = "<!-- generated up to here (tests/lab/page.py); below, written by hand -->"
_HEAD = """# The lab

Real releases of Kafka Streams ran against a real broker. Beside each instance ran two agents: one with every setting
configured (`--set`), one with none and in a separate PID namespace. Every warning and critical word was judged, and
every silence. Written by `python tests/lab/run.py --page FILE`, or `make hunt ARGS="--runs 0 --page FILE"`, from the
results there.
"""
_WRITTEN = """## Written plays

What must be found is proved by the application itself: the counts that its store holds afterwards.
`a` at-least-once, `e` exactly-once: nothing of warning or above was reported, and nothing was wrong. `A`, `E`:
findings of warning or above, all of them required or true for that release; [listed below](#findings). `!`:
missed, a false alarm, more than one incident of one bug, or broke off; none may be here. Empty: not run.
"""
_DRAWN = """## The hunt

Applications drawn from a seed lived through kills, pauses, full disks, copied volumes, upgrades and more. What every
store must hold is known from what was sent; it was compared with what the application itself answers. A run is played
again by its name: `make hunt ARGS="--replay NAME"`.
"""


def render(rows: Iterable[Row], page: str = "") -> str:
    """Write the page.

    Args:
        rows: Results as `Result.as_json` gives them; of the same run the last counts.
        page: The page as it is; what is below the marker is kept.
    """
    known = sorted(rows, key=lambda row: (numbers(row["run"]["release"]), row["name"]))
    written = {_key(row): row for row in known if isinstance(row["run"]["seed"], str)}
    drawn = [row for row in known if not isinstance(row["run"]["seed"], str)]
    parts = [_HEAD]
    if written:
        parts += _of_written(written)
    if drawn:
        parts += _of_drawn(drawn)
    return "\n".join([*parts, MARKER + (page.partition(MARKER)[2] or "\n")])


def _key(row: Row) -> Key:
    return row["run"]["seed"], row["run"]["release"], row["run"]["guarantee"]


# ------------------------------------------------------------------------------------ written plays


def _of_written(last: Mapping[Key, Row]) -> list[str]:
    scenarios = sorted({key[0] for key in last}, key=lambda x: (list(SCENARIOS).index(x.split()[0]), x))
    wrong = sum(_is_wrong(row) for row in last.values())
    return [
        _WRITTEN,
        f"{len(last)} runs, {wrong} wrong.\n",
        _letters(last, scenarios),
        f"### Findings\n\n{_findings(last, scenarios)}",
        f"### Scenarios\n\n{_scenarios(scenarios)}",
    ]


def _letters(last: Mapping[Key, Row], scenarios: Iterable[str]) -> str:
    releases = sorted({key[1] for key in last}, key=numbers)
    lines = ["| scenario | " + " | ".join(releases) + " |", "|---" * (len(releases) + 1) + "|"]
    for scenario in scenarios:
        cells = (_cells(last, scenario, release) for release in releases)
        lines.append(f"| {scenario} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cells(last: Mapping[Key, Row], scenario: str, release: str) -> str:
    """Say what came out on one release: a letter per guarantee."""
    here = {key[2]: row for key, row in last.items() if key[:2] == (scenario, release)}
    return "".join(_letter(guarantee, row) for guarantee, row in sorted(here.items()))


def _letter(guarantee: str, row: Row) -> str:
    letter = "e" if guarantee == EOS else "a"
    return "!" if _is_wrong(row) else letter.upper() if _loud(row) else letter


def _findings(last: Mapping[Key, Row], scenarios: Sequence[str]) -> str:
    """List what was reported, runs with the same detectors in one row."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for scenario in scenarios:
        for (name, release, guarantee), row in last.items():
            if name == scenario and (said := _outcome(row)):
                grouped.setdefault((scenario, guarantee, said), []).append(release)
    lines = ["| scenario | guarantee | releases | detectors |", "|---|---|---|---|"]
    for (scenario, guarantee, said), releases in grouped.items():
        lines.append(f"| {scenario} | {guarantee} | {', '.join(sorted(releases, key=numbers))} | {said} |")
    return "\n".join(lines) + "\n"


def _outcome(row: Row) -> str:
    loud = ", ".join(_loud(row))
    if row["problem"]:
        return "**broke off**"
    wrong = {one["kind"]: one for one in row["judgements"] if one["kind"] not in HARMLESS}
    if "miss" in wrong:
        return f"**missed** {wrong['miss']['what']}"
    if "false_alarm" in wrong:
        return f"**false alarm** {loud}"
    return f"**not one incident** {loud}" if wrong else loud


def _scenarios(scenarios: Sequence[str]) -> str:
    """Say what happens, scenarios with the same sentence in one row."""
    named: dict[str, list[str]] = {}
    for scenario in scenarios:
        named.setdefault(about(scenario), []).append(scenario)
    lines = ["| scenario | what happens |", "|---|---|"]
    lines += [f"| {', '.join(same)} | {sentence} |" for sentence, same in named.items()]
    return "\n".join(lines) + "\n"


def _loud(row: Row) -> list[str]:
    return sorted({one["detector"] for one in row["judgements"] if one["severity"]})


def _is_wrong(row: Row) -> bool:
    return bool(row["problem"]) or any(one["kind"] not in HARMLESS for one in row["judgements"])


# ------------------------------------------------------------------------------------ drawn plays


def _of_drawn(known: Sequence[Row]) -> list[str]:
    counted = [row for row in known if not row["problem"]]
    return [
        _DRAWN,
        _figures(counted, len(known) - len(counted)),
        f"### Runs\n\n{_matrix(counted)}",
        f"### Judged\n\n{_judged(counted)}",
        f"### Undecided\n\nOf copies that were not asked after it: neither right nor wrong.\n\n{_undecided(counted)}",
        f"### Stores that were wrong\n\n{_wrong(counted)}",
        f"### Silences in announced blind spots\n\n{_blind_spots(counted)}",
        f"### True words while every store was right, or about what was wrong\n\n{_excused(counted)}",
        f"### Actions\n\n{_actions(counted)}",
    ]


def _figures(counted: Sequence[Row], broken: int) -> str:
    peak = max((agent["peak_mib"] for row in counted for agent in row["agents"]), default=0.0)
    kinds = Counter(
        one["kind"] for row in counted for one in row["judgements"] if one["kind"] not in HARMLESS
    )
    critical = sum(
        one["kind"] == "false_alarm" and one["severity"] == "critical"
        for row in counted
        for one in row["judgements"]
    )
    undecided = sum(one["kind"] == "undecided" for row in counted for one in row["judgements"])
    copies = sum(len(pairs or ()) for row in counted for _, pairs in row.get("asked", ()))
    alarmed = sum(any(one["kind"] == "false_alarm" for one in row["judgements"]) for row in counted)
    looks = sum(row["looks"] for row in counted)
    judged = ", ".join(f"{kind}: {kinds[kind]}" for kind in sorted(kinds)) or "Nothing was judged"
    return (
        f"{len(counted)} runs counted, {broken} broke off and are not. {looks} checks of the truth, {copies} of a pod's"
        f" own copy of a store. {judged}; undecided words: {undecided}; false criticals: {critical}; runs with a false"
        f" word: {alarmed} of {len(counted)}. An agent took {peak:.0f} MiB at most.\n"
    )


def _matrix(counted: Sequence[Row]) -> str:
    lines = [
        "| release | guarantee | runs | judged | with a wrong store | ended by itself |",
        "|---|---|---|---|---|---|",
    ]
    keys = sorted(
        {(row["run"]["release"], row["run"]["guarantee"]) for row in counted},
        key=lambda x: (numbers(x[0]), x[1]),
    )
    for release, guarantee in keys:
        here = [x for x in counted if (x["run"]["release"], x["run"]["guarantee"]) == (release, guarantee)]
        judged = sum(any(one["kind"] not in HARMLESS for one in row["judgements"]) for row in here)
        wrong = sum(any(not truth["allowed"] for truth in row["truths"]) for row in here)
        ended = sum(bool(row["failures"]) for row in here)
        lines.append(f"| {release} | {SHORT[guarantee]} | {len(here)} | {judged} | {wrong} | {ended} |")
    return "\n".join(lines) + "\n"


def _judged(counted: Sequence[Row]) -> str:
    found: Counter[tuple[str, ...]] = Counter()
    for row in counted:
        for one in row["judgements"]:
            if one["kind"] not in HARMLESS:
                found[row["name"], one["kind"], _who(one["who"]), one["task"], _word(one)] += 1
    lines = ["| run | kind | who | task | word |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(key)} |" for key in found]
    return "\n".join(lines) + "\n" if found else "Nothing.\n"


def _undecided(counted: Sequence[Row]) -> str:
    found = Counter(
        (row["name"], _who(one["who"]), one["task"], _word(one))
        for row in counted
        for one in row["judgements"]
        if one["kind"] == "undecided"
    )
    lines = ["| run | who | task | word | times |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(key)} | {times} |" for key, times in found.items()]
    return "\n".join(lines) + "\n" if found else "None.\n"


def _wrong(counted: Sequence[Row]) -> str:
    lines = ["| run | task | store | lost | too many | of | said |", "|---|---|---|---|---|---|---|"]
    for row in counted:
        seen = set()
        for truth in row["truths"]:
            whose = f"{truth['pod']}'s copy of " if truth.get("pod") else ""
            key = (truth["task"], whose + truth["store"])
            if truth["allowed"] or key in seen:
                continue
            seen.add(key)
            said = {x["detector"] for x in row["judgements"] if x["severity"] and x["task"] == truth["task"]}
            figures = f"{truth['lost']} | {truth['extra']} | {truth['expected']}"
            words = ", ".join(sorted(said)) or "nothing"
            lines.append(f"| {row['name']} | {' | '.join(key)} | {figures} | {words} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else "None.\n"


def _blind_spots(counted: Sequence[Row]) -> str:
    lines = [
        f"- {row['name']} {one['task']}: {_cell(one['what'])}"
        for row in counted
        for one in row["judgements"]
        if one["kind"] == "blind_spot"
    ]
    return "\n".join(lines) + "\n" if lines else "None.\n"


def _excused(counted: Sequence[Row]) -> str:
    said: Counter[tuple[str, str]] = Counter()
    runs: dict[tuple[str, str], set[str]] = {}
    for row in counted:
        for one in row["judgements"]:
            if one["kind"] == "excused":
                key = (one["detector"], one["severity"])
                said[key] += 1
                runs.setdefault(key, set()).add(row["name"])
    lines = ["| word | severity | times | runs |", "|---|---|---|---|"]
    lines += [f"| {key[0]} | {key[1]} | {said[key]} | {len(runs[key])} |" for key in sorted(said)]
    return "\n".join(lines) + "\n" if said else "None.\n"


def _actions(counted: Sequence[Row]) -> str:
    played = Counter(action for row in counted for action, _ in row["run"]["steps"])
    lines = ["| action | times |", "|---|---|"]
    lines += [f"| {action} | {played[action]} |" for action in sorted(played)]
    return "\n".join(lines) + "\n"


def _word(one: Row) -> str:
    """Name what was said, or what was not."""
    return f"{one['detector']} {one['severity']}".strip() or _cell(one["what"])


def _who(agent: str) -> str:
    """Name an agent, or the rollup over what such agents shipped, by what it was configured with."""
    return (
        agent.replace("-untold", ", unconfigured")
        .replace("-told", ", configured")
        .replace("told", "configured")
    )


def _cell(text: str) -> str:
    return text.replace("|", "/")[:200]
