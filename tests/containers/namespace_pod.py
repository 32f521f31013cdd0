"""A pod without containers: an application's process and the agent, each in PID and mount namespaces of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from deploy.demo.agents import Agent
from tests.agent.cli.commands import FACTS
from tests.containers.pod import AGENT_UID, APPLICATION_UID, GROUP
from tests.containers.podman import ROOT
from tests.support.exposed import scraped
from tests.support.shipped import Data, last_findings, shipped_records

HERE = Path(__file__).resolve().parent
MESSAGE = "what `unshare` and another user need: run as root"


class NamespacePod:
    """The volumes, the holder and the agent; the agent's volume is mounted read-only where it looks."""

    def __init__(self, home: Path) -> None:
        """Make the volumes, with a group's rights, and start both processes; every user may enter `home`."""
        self.home, self.state, self.mount_at = home, home / "state", home / "seen"
        for volume in (self.state, home / "own", home / "shipped"):
            volume.mkdir()
            os.chown(volume, 0, GROUP)
            volume.chmod(0o2770)
        self.mount_at.mkdir()
        arguments = [str(APPLICATION_UID), str(GROUP), str(self.state)]
        self._holder = subprocess.Popen(
            [sys.executable, str(HERE / "holder.py"), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=ROOT,
        )  # fmt: skip
        sidecar = (str(AGENT_UID), str(GROUP), str(self.state), str(self.mount_at))
        self.agent = Agent(
            "pod-a",
            self.mount_at,
            home / "own",
            home / "shipped",
            FACTS,
            launcher=(sys.executable, "-m", "tests.containers.sidecar", *sidecar),
        )

    def tell(self, command: str) -> None:
        """Let the application do something, and wait until it has."""
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.write(f"{command}\n")
        assert self._holder.stdout.readline().strip() == command

    def metric(self, series: str) -> float | None:
        """Scrape once and give one series; None = there is none."""
        return scraped(self.agent.url).get(series)

    def findings(self) -> list[Data]:
        """Stop the agent in order; give the last word of each finding that it shipped."""
        assert self.agent.stop() == 0, self.agent.errors
        return last_findings(shipped_records(self.home / "shipped"))

    def close(self) -> None:
        self.agent.kill()
        self._holder.kill()
        self._holder.wait()
        for stream in (self._holder.stdin, self._holder.stdout):
            if stream is not None:
                stream.close()


def play(pod: NamespacePod, wait: Callable[[Callable[[], object]], object]) -> None:
    """Hold, let go, lose the store but not its checkpoint, hold again: the agent must see each."""
    held = 'statewarden_task_held{application_id="app",task_id="0_0"}'
    found = 'statewarden_findings_open{application_id="app",detector="resurrected-checkpoint",severity="critical"}'
    pod.agent.wait_ready()
    pod.tell("hold")
    wait(lambda: pod.metric(held) == 1.0)
    wait(lambda: pod.metric('statewarden_task_checkpoint_offset{application_id="app",task_id="0_0"}') == 10.0)
    pod.tell("free")
    wait(lambda: pod.metric(held) == 0.0)
    pod.tell("tear")
    pod.tell("hold")
    wait(lambda: pod.metric(found) == 1.0)
    wait(lambda: pod.metric(held) == 1.0)
    pod.tell("free")
    wait(lambda: pod.metric(held) == 0.0)
    assert pod.metric('statewarden_agent_missed_changes_total{cause="unannounced"}') == 0.0
