"""A pod with the real thing: Kafka Streams in one container, the agent in the other, a broker beside them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.containers.pod import APPLICATION_UID, GROUP, SidecarPod, java_command
from tests.containers.podman import environment, quietly
from tests.lab.plan import EOS, Plan, configured
from tests.lab.processes import Broker, JavaProcess
from tests.lab.stage import Stage
from tests.lab.toolbox import CACHE, application_classes

RELEASE = "4.2.0"
"""A release with KAFKA-20685: an exposure that the agent must see."""


class ContainerStage(Stage):
    """`tests.lab.stage.Stage` whose application runs in a container, with another user, on the pod's volume."""

    def __init__(self, broker: Broker, pod: SidecarPod, name: str) -> None:
        super().__init__(broker, pod.home / "stage", name, Plan(RELEASE, EOS))
        self._pod = pod
        self.container = f"{pod.name}-app"
        scratch = self.home / "tmp"
        scratch.mkdir(parents=True)
        for path in (self.home, scratch):
            os.chown(path, APPLICATION_UID, GROUP)

    def state_dir(self, pod: str) -> Path:
        """The pod's volume."""
        return self._pod.state

    def sets(self) -> list[str]:
        """What an operator would tell the agent."""
        return [f"{name}={value}" for name, value in configured(self.settings("a", RELEASE), RELEASE).items()]

    def start_in_container(self) -> None:
        """Start the application; wait until it is RUNNING."""
        quietly("rm", "-f", "-i", "-t", "0", self.container)
        launcher = java_command(self.container, self.home, self._pod.state, [CACHE.resolve()])
        arguments = [f"{key}={value}" for key, value in self.settings("a", RELEASE).items()]
        java = JavaProcess(
            "a", application_classes(RELEASE), ["App", *arguments], "app: ", self.home / "tmp",
            environment=environment(), launcher=launcher,
        )  # fmt: skip
        self._stack.callback(self.kill_container)
        self.pods["a"] = java
        java.ask("start")
        self.wait_running("a")

    def kill_container(self) -> None:
        """SIGKILL to the application itself, as the kernel does when memory is used up."""
        quietly("kill", "-s", "KILL", self.container)
        self.pods["a"].kill()

    def close_app(self, after_s: float = 0.0) -> None:
        """Close in order, as a SIGTERM handler does, after so long."""
        time.sleep(after_s)
        self.pods["a"].ask("close")
        self.pods["a"].exit()
