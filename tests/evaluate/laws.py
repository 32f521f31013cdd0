"""Replay every recorded scenario with the laws alone: what would be seen of a fault that nobody knows.

    python tests/evaluate/laws.py [WORD] [--page FILE] [--jobs NUMBER]

Exit code 1: a law spoke of what was right, or is silent of a damage that the page does not explain. Each scenario is
replayed as configured, and without the release.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.events import Severity  # noqa: E402 - the repository goes on the path first
from agent.contract.runbooks import address_of  # noqa: E402
from tests.evaluate.run import TRACES, publish, replay_pod  # noqa: E402
from tests.support.laws import LAWS  # noqa: E402

_NOT_COUNTED = (
    "from 4.3 on offsets take sequence numbers as data does, so that what a replay put beside old records cannot be"
    " counted exactly"
)
_NOTHING_LOST = "the task cannot be opened; nothing is lost"
UNSEEN = {
    "corrupt-kill-two-timeouts": (
        "its last close wrote an offset that covers the records that were never committed; a task that was committed"
        " leaves the same files (`corrupt-kill-before-wipe-4.1.2`), only the changelog decides"
    ),
    "kafka-7672-gap": (
        "aborted and compacted records make the same jump of the offset; only another pod's copy decides (the rollup)"
    ),
    "kafka-7672-twin": (
        "nothing of that task had reached this pod's disk before; only another pod's copy decides (the rollup)"
    ),
    "kafka-8187-stage1": "a copy is deleted that was still assigned; nothing that is there is wrong",
    "revived-table": (
        "the owner wiped the store, and a source topic that is cut by time leaves as few entries at the same offset"
    ),
    "kafka-20685-upgraded": _NOT_COUNTED,
    "txn-interrupted-wipe": _NOT_COUNTED,
    "startup-leaked-segment": _NOTHING_LOST,
    "txn-enabled-after-crash": _NOTHING_LOST,
    "kafka-20805": "a copy is deleted too early; nothing that is there is wrong",
}
"""Beginning of a scenario's name -> why no law can see its damage."""


@dataclass(slots=True)
class Row:
    """What the laws said of one scenario."""

    scenario: str  # its id
    what: str  # what happened
    damaged: set[tuple[str, str]]  # (pod, task) of which something is lost or wrong; empty = of none
    # Law -> damaged tasks that it names, warning or above
    told: dict[str, set[str]] = field(default_factory=dict)
    untold: dict[str, set[str]] = field(default_factory=dict)  # the same without the release
    wrong: list[str] = field(default_factory=list)  # what laws said of anything else, warning or above

    @property
    def unseen(self) -> list[str]:
        """Damaged tasks that no law names, as configured."""
        named = {task for tasks in self.told.values() for task in tasks}
        return sorted(task for _, task in self.damaged if task not in named)

    @property
    def why_unseen(self) -> str:
        """Why no law speaks; empty = it is not explained."""
        return next((why for name, why in UNSEEN.items() if self.scenario.startswith(name)), "")


def judge(folder: Path) -> Row:
    """Replay one scenario with the laws alone."""
    scenario = json.loads((folder / "scenario.json").read_text("utf-8"))
    row = Row(scenario["id"], scenario["expected"]["what"], _damaged(scenario))
    settings = scenario["settings"]
    without = {key: value for key, value in settings.items() if key != "kafka_streams_version"}
    for told, found in ((settings, row.told), (without, row.untold)):
        for pod in scenario["pods"]:
            faults: list[str] = []
            for x in replay_pod(folder / pod["trace"], told, faults, 0, detectors=LAWS):
                if x.severity is Severity.INFO:
                    continue
                if (pod["name"], x.task_id) in row.damaged and x.task_id:
                    found.setdefault(x.detector, set()).add(x.task_id)
                else:
                    row.wrong.append(f"{x.detector} {x.task_id} on {pod['name']}: {x.summary}")
            row.wrong += faults
    return row


def _damaged(scenario: dict[str, object]) -> set[tuple[str, str]]:
    """List the tasks that a bug damaged: those that a detector of damage is expected to name."""
    expected, expect = scenario["expected"], scenario["expect"]
    assert isinstance(expected, dict)
    assert isinstance(expect, dict)
    if expected["verdict"] != "bug":
        return set()
    return {(wish["pod"], wish["task_id"]) for wish in expect["find"]}


def render(rows: Sequence[Row]) -> str:
    damaged = [x for x in rows if x.damaged]
    seen = [x for x in damaged if x.told]
    lines = [
        "# Laws",
        "",
        "All recordings (`tests/data/traces`), replayed with the laws alone, as if no other detector existed; once as"
        " configured, once without the release.",
        "",
        *(
            f"- [{x.meta.id}]({address_of(x.meta.id, '.md')}): {x.meta.title[:1].lower()}{x.meta.title[1:]}"
            for x in LAWS
        ),
        "",
        f"Of {len(damaged)} recordings with a damage, laws see {len(seen)}, and {sum(bool(x.untold) for x in damaged)}"
        f" without the release. Wrong words (warning or above, of a task that was right):"
        f" {sum(len(x.wrong) for x in rows)} over all {len(rows)} recordings.",
        "",
        "| recording | damaged tasks | laws that speak (tasks) | without the release |",
        "|---|---:|---|---|",
    ]  # fmt: skip
    lines += [f"| {x.scenario} | {len(x.damaged)} | {_words(x.told)} | {_words(x.untold)} |" for x in damaged]
    lines += ["", "Not seen, and why:", ""]
    reasons: dict[str, list[str]] = {}
    for x in damaged:
        if x.unseen:
            reasons.setdefault(x.why_unseen or "not explained", []).append(
                f"{x.scenario} ({', '.join(x.unseen)})"
            )
    lines += [f"- {', '.join(names)}: {why}." for why, names in reasons.items()]
    for x in rows:
        lines += [f"- wrong, {x.scenario}: {word}" for word in x.wrong]
    return "\n".join(lines) + "\n"


def _words(found: dict[str, set[str]]) -> str:
    return ", ".join(f"{name} ({len(tasks)})" for name, tasks in sorted(found.items())) or "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay all scenarios, or those whose name contains a word."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("word", nargs="?", default="", help="only scenarios whose name contains this")
    parser.add_argument("--page", type=Path, help="write the result to this Markdown file")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args(arguments)
    folders = sorted(x.parent for x in TRACES.glob("*/scenario.json") if chosen.word in x.parent.name)
    with ProcessPoolExecutor(chosen.jobs, get_context("fork")) as pool:
        rows = list(pool.map(judge, folders))
    publish(render(rows), chosen.page)
    silent = [x for x in rows if x.unseen and not x.why_unseen]
    return int(bool(silent) or any(x.wrong for x in rows))


if __name__ == "__main__":
    sys.exit(main())
