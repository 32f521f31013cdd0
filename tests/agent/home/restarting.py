"""Restart the agent of a built scenario: what it remembers goes the way through JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agent.contract.events import Kind
from agent.engine.pipeline import Pipeline
from agent.home.baseline import RUNNING, compose, understand
from tests.support.scenario import Scenario

STATE = "/state"


def lines_of(pipeline: Pipeline, at_us: int, reason: str = RUNNING) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(line)) for line in compose(pipeline, STATE, at_us, reason)]


@contextmanager
def away(run: Scenario, reason: str = RUNNING) -> Iterator[None]:
    """Stop the agent, let the block happen unseen, and start another one from the baseline."""
    world = run.world
    assert world.pipeline is not None
    lines, until_us = lines_of(world.pipeline, world.now_us, reason), world.now_us
    world.pipeline = None
    world.records.clear()
    yield
    found = understand(iter(lines), STATE, until_us)
    world.pipeline = world.agent()
    world.pipeline.said.first_us = found.said
    world.pipeline.resume(found.inventory, found.findings, until_us, "it was stopped")
    world.pipeline.scan(world.now_us)


def told(run: Scenario) -> list[tuple[str, str]]:
    """List (change, source) of every transition since the restart."""
    return [
        (str(x.body["change"]), str(x.body["source"])) for x in run.world.records if x.kind is Kind.TRANSITION
    ]
