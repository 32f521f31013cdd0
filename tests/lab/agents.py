"""The agents of a run: how each fared, and a clock of theirs that can be set."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from deploy.demo.agents import Agent, AgentError
from tests.lab.judge import Health
from tests.lab.toolbox import preloaded, tool


class Clock:
    """A file that says by how much the clock of a pod's agents is wrong."""

    def __init__(self, file: Path) -> None:
        """Let it be right."""
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(struct.pack("q", 0))

    def launcher(self) -> tuple[str, ...]:
        """Give the command that runs an agent with this clock."""
        return (
            tool("env"),
            f"LD_PRELOAD={preloaded('set_clock')}",
            f"HUNT_CLOCK={self._file}",
            sys.executable,
            "-m",
            "agent",
        )

    def set(self, by_s: int) -> None:
        """Let it be wrong by so much."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", by_s))


def leave(agent: Agent) -> Health:
    try:
        peak_mib = agent.memory_mib()[1]
        code = agent.stop()
    except (AgentError, OSError, KeyError) as error:
        return Health(agent.pod, None, 0.0, (str(error), agent.errors))
    errors = [
        " ".join(
            (str(line.get("message")), str(line.get("detector", "")), str(line.get("error", ""))[-300:])
        ).rstrip()
        for line in agent.lines
        if line.get("level") in ("error", "critical") and "finding_id" not in line
    ]
    return Health(agent.pod, code, peak_mib, (*errors, *filter(None, [agent.errors])))
