"""The mistakes of the first hour, with a real process: it starts, says which line to change, and goes on."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.demo.agents import Agent
from tests.support.exposed import series_of

pytestmark = [pytest.mark.e2e, pytest.mark.inotify]


def test_an_agent_without_a_usable_volume_says_so_and_works(
    tmp_path: Path, eventually: Callable[..., object]
) -> None:
    """No crash loop: ready, a metric, a log line with the line to change, and an orderly end."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "spool").write_text("a file where the spool should be")
    agent = Agent("pod-a", tmp_path / "state" / "kafka-streams", tmp_path / "own", tmp_path / "shipped", {})

    def level(check: str) -> float | None:
        return read(f'statewarden_agent_preflight{{kind="{check}"}}')

    def read(series: str) -> float | None:
        with urllib.request.urlopen(f"{agent.url}/metrics", timeout=60) as answer:
            return series_of(answer.read().decode()).get(series)

    try:
        agent.wait_ready()
        eventually(lambda: level("spool") == 2.0)
        assert level("inotify") == 0.0
        eventually(lambda: (read('statewarden_agent_spool_drops_total{kind="lifecycle"}') or 0) >= 1)
        assert agent.stop() == 0
    finally:
        agent.kill()
    told = [
        line for line in agent.lines if line["logger"] == "agent.preflight" and line.get("check") == "spool"
    ]
    assert len(told) == 1
    assert told[0]["level"] == "error"
    assert "emptyDir" in told[0]["change"]
    assert (tmp_path / "own" / "spool").read_text() == "a file where the spool should be"
    assert not (tmp_path / "state").exists()
