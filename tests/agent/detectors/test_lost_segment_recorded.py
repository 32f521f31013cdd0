"""Detector `lost-segment` on the recordings: from one look, with two facts, and by agents that came late."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent.cli.offline import scan
from agent.cli.output import Shown
from agent.config import load_config
from agent.contract.events import Confidence, Level, Severity
from agent.inventory.disk import Unseen
from agent.replay.trace import Operation, read_trace
from tests.support.scenario_world import World

ID = "lost-segment"
TRACES = Path(__file__).resolve().parents[2] / "data" / "traces"
LOST = ("lost-segment-4.3.1", "lost-segment-close-4.3.1")
TWIN = "kafka-20663-segments-4.3.0"
FACTS = ("processing_guarantee", "kafka_streams_version")
QUIET_US = 600_000_000


def operations_of(name: str) -> list[Operation]:
    """A recording."""
    return list(read_trace(TRACES / name / "trace-pod-a.jsonl.gz"))


def facts_of(name: str, keys: tuple[str, ...] = FACTS) -> dict[str, object]:
    """What an operator tells."""
    settings = json.loads((TRACES / name / "scenario.json").read_text("utf-8"))["settings"]
    return {key: settings[key] for key in keys}


def first_kill(operations: list[Operation]) -> int:
    """Number of the operation after the first kill."""
    return next(number for number, x in enumerate(operations) if x.op == "exit" and x.killed) + 1


def watched(name: str, index: int, facts: dict[str, object], until: int | None = None) -> World:
    """A recording up to an operation, told to an agent that is started before the operation with this index."""
    story = World(facts, watched=False)
    story.operations = operations_of(name)[:until]
    story.now_us = story.operations[-1].at_us + (QUIET_US if until is None else 1)
    return story.attached_at(index)


def said(world: World, level: Level | None = None):
    """What the detector says, info left out."""
    return [
        x
        for x in world.findings()
        if x.detector == ID and x.severity is not Severity.INFO and level in (None, x.level)
    ]


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize(("keys", "severity"), [(FACTS, Severity.CRITICAL), (FACTS[:1], Severity.WARNING)])
def test_one_reading_before_the_next_start(name, keys, severity):
    """A scan of the stopped directory finds it before the start that loses it, also without the release."""
    kill = first_kill(operations_of(name))
    world = watched(name, kill, facts_of(name, keys), until=kill)
    (finding,) = said(world)
    assert (finding.level, finding.severity, finding.confidence) == (
        Level.EXPOSURE,
        severity,
        Confidence.SUSPECTED,
    )


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("more", [{}, {"num_standby_replicas": 1}])
def test_two_facts(name, more):
    """Guarantee and release decide; standbys do not."""
    world = watched(name, 0, {**facts_of(name), **more})
    (finding,) = said(world, Level.DAMAGE)
    assert (finding.severity, finding.task_id, finding.store) == (Severity.CRITICAL, "0_0", "win")


@pytest.mark.parametrize("name", LOST)
def test_nothing_configured(name):
    """The start itself shows what release and guarantee do: damage is found without a fact."""
    (finding,) = said(watched(name, 0, {}), Level.DAMAGE)
    assert finding.severity is Severity.CRITICAL


def test_confirmed_only_by_an_agent_that_saw_both_made():
    """Whenever it starts: sure only from before the first segment, or not at all."""
    name = LOST[0]
    operations = operations_of(name)
    born = next(number for number, x in enumerate(operations) if x.path.endswith("win.1795284000000"))
    (finding,) = said(watched(name, born - 1, facts_of(name)), Level.DAMAGE)
    assert finding.confidence is Confidence.CONFIRMED
    later = range(born + 60, len(operations), max((len(operations) - born) // 12, 1))
    for index in later:
        assert Confidence.CONFIRMED not in {x.confidence for x in said(watched(name, index, facts_of(name)))}


def test_twin_at_any_start_of_the_agent():
    """4.3.0, the old segment's own offset answers: whenever the agent starts, nothing is said."""
    count = len(operations_of(TWIN))
    for index in range(0, count, count // 10):
        assert said(watched(TWIN, index, facts_of(TWIN))) == []


def lay_out(world: World, path: str, root: Path) -> None:
    """Write what a recording left to a real directory, with its modification times."""
    for name, is_directory in world.children(path):
        child = f"{path}/{name}" if path else name
        if is_directory:
            (root / child).mkdir()
            lay_out(world, child, root)
            continue
        stat, content = world.disk.stat(child), world.disk.read_at(child, 0, 1 << 30)
        assert not isinstance(stat, Unseen)
        assert not isinstance(content, Unseen)
        (root / child).write_bytes(content)
        os.utime(root / child, ns=(stat.mtime_us * 1_000, stat.mtime_us * 1_000))


@pytest.mark.parametrize(("name", "code"), [(LOST[0], 1), (LOST[1], 1), (TWIN, 0)])
def test_gate_of_an_init_container(tmp_path, capsys, name, code):
    """`scan --fail-on critical` ends with 1 before the start that would lose records, and with 0 for the twin."""
    kill = first_kill(operations_of(name))
    lay_out(watched(name, kill, {}, until=kill), "", tmp_path)
    sets = [f"{key}={value}" for key, value in facts_of(name).items()]
    assert scan(tmp_path, load_config(sets=sets), shown=Shown(), fail_on="critical") == code
    assert ("before the next start" in capsys.readouterr().out.lower()) == bool(code)
