"""A state directory per pod below the mount: one piece of knowledge for agent, `scan` and `preflight`."""

from __future__ import annotations

from pathlib import Path

from agent.engine.pipeline import Pipeline
from agent.inventory import nested as module
from agent.inventory.nested import in_words, nested
from agent.inventory.settings import SettingsBook
from agent.observe.kernel_disk import KernelDisk
from agent.preflight.facts import survey
from tests.agent.cli.commands import plant
from tests.support.scenario_case import at

PODS = ("orders-0", "orders-1")


def known_at(pipeline: Pipeline, seconds: int) -> tuple[str, ...]:
    """Let the agent read everything, and give what it knows one level below."""
    pipeline.scan(at(seconds))
    pipeline.beat(at(seconds + 1))
    return pipeline.inventory.nested


def test_all_of_them_know_the_same(tmp_path: Path) -> None:
    """The agent as long as there is no application, `preflight` and `scan` by the same function."""
    for pod in PODS:
        plant(tmp_path / pod)
    (tmp_path / "logs" / "today").mkdir(parents=True)
    assert nested(KernelDisk(tmp_path), ("logs", *PODS)) == PODS
    facts = survey(tmp_path)
    assert (facts.nested, facts.applications) == (PODS, [])
    pipeline = Pipeline(KernelDisk(tmp_path), SettingsBook(), at(0), lambda record: None)
    assert known_at(pipeline, 1) == PODS
    plant(tmp_path)
    assert known_at(pipeline, 3) == ()
    assert survey(tmp_path).nested == ()


def test_its_cost_has_a_bound(tmp_path: Path, monkeypatch) -> None:
    """Of a volume with very many directories the first are listed."""
    for number in range(4):
        plant(tmp_path / f"pod-{number}")
    monkeypatch.setattr(module, "ASKED", 2)
    assert nested(KernelDisk(tmp_path), [f"pod-{n}" for n in range(4)]) == ("pod-0", "pod-1")


def test_the_directory_of_this_pod_comes_first() -> None:
    """Its name is known where the pod's is; a stranger's directory is never advised."""
    assert in_words(PODS, "orders-1").startswith(
        "no application is here, but one level below: orders-1 is a state directory (2 are: orders-0, orders-1)"
    )
    assert in_words(PODS, "orders-1").endswith("give this pod's own")
    assert in_words(PODS[:1]).endswith("orders-0 is a state directory; give the one of this pod")
