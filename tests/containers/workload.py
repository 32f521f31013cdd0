"""The demo workload of `deploy/manifests` as containers: what its StatefulSet says, without a kubelet.

User, group, read-only root, volumes, limits, commands, arguments and environment are read from the manifest. Other
than there: every container is in the machine's network, so the agents' port and the broker's address are changed; the
image `apache/kafka` is our base with a JVM and Kafka Streams of the same release where that image has its jars, with
`WordCountDemo.java` in place of Kafka's example, which no package registry has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.demo.agents import free_port
from tests.containers.podman import AGENT, BASE, ROOT, Container, podman
from tests.containers.proofs import require
from tests.lab.processes import Broker, wait_until
from tests.lab.toolbox import jars, tool
from tests.support.charts import objects
from tests.support.exposed import answered, scraped

MANIFEST = ROOT / "deploy" / "manifests" / "streams-application.yaml"
_SUFFIXES = {"Mi": "m", "Gi": "g"}

Object = Mapping[str, Any]


class WorkloadPod:
    """One pod of the StatefulSet."""

    def __init__(self, home: Path, workload: Object, config: Path, libraries: Path, ordinal: int) -> None:
        """Make its volumes as the kubelet does for `fsGroup`; nothing runs yet.

        `config` has the ConfigMap's files, `libraries` the jars of the application.
        """
        self.name = f"{workload['metadata']['name']}-{ordinal}"
        self._spec = workload["spec"]["template"]["spec"]
        self._address = f"127.0.0.1:{free_port()}"
        self._url = f"http://{self._address}"
        own = [one["name"] for one in self._spec["volumes"] if "emptyDir" in one]
        claims = [one["metadata"]["name"] for one in workload["spec"]["volumeClaimTemplates"]]
        self._volumes = {name: str(home / name) for name in (*own, *claims)}
        for path in self._volumes.values():
            os.makedirs(path)
            os.chown(path, 0, self._spec["securityContext"]["fsGroup"])
            os.chmod(path, 0o2775)
        self._volumes["config"] = str(config)
        self._libraries = libraries
        self.containers: dict[str, Container] = {}

    def start(self) -> None:
        """Start the sidecar, wait for its start-up probe, start the application."""
        (sidecar,) = self._spec["initContainers"]
        self._run(sidecar, AGENT, ("-e", f"STATEWARDEN_LISTEN={self._address}"), sidecar["args"])
        probe = f"{self._url}{sidecar['startupProbe']['httpGet']['path']}"
        wait_until(lambda: answered(probe), f"{self.name} is ready")
        (application,) = self._spec["containers"]
        java = Path(shutil.which("java") or "/usr/bin/java").resolve()
        mounts = [f"{one}:{one}:ro" for one in (java.parents[1], *Path("/etc").glob("java-*-openjdk"))]
        mounts.append(f"{self._libraries}:/opt/kafka/libs:ro")
        volumes = [part for mount in mounts for part in ("-v", mount)]
        command = application["command"]
        self._run(application, BASE, (*volumes, "--entrypoint", str(java)), command[1:])

    def series(self, name: str) -> dict[str, float]:
        """Give the series of one family: as written -> value."""
        return {series: x for series, x in scraped(self._url).items() if series.partition("{")[0] == name}

    def held(self) -> int:
        """Tell how many tasks the application holds."""
        return int(sum(self.series("statewarden_task_held").values()))

    def preflight(self) -> str:
        """Run preflight as the docs say, in the running sidecar; a check that fails raises `ContainerError`."""
        return podman("exec", self.containers["statewarden"].name, "statewarden", "preflight")

    def stop(self) -> dict[str, int]:
        """Stop it as a kubelet does: the application, then the native sidecar; gives their exit codes."""
        grace_s = self._spec["terminationGracePeriodSeconds"]
        return {name: one.stop(grace_s) for name, one in reversed(self.containers.items())}

    def close(self) -> None:
        for one in self.containers.values():
            one.remove()

    def _run(self, container: Object, image: str, more: tuple[object, ...], command: list[str]) -> None:
        context = {**self._spec["securityContext"], **container["securityContext"]}
        limits = container["resources"]["limits"]
        options: list[object] = [
            "--network", "host", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all",
            "--security-opt", "no-new-privileges", "--user", f"{context['runAsUser']}:{context['runAsGroup']}",
            "--group-add", context["fsGroup"], "--cpus", _cores(limits["cpu"]),
            "-m", limits["memory"][:-2] + _SUFFIXES[limits["memory"][-2:]],
        ]  # fmt: skip
        for mount in container["volumeMounts"]:
            mode = ":ro" if mount.get("readOnly") else ""
            options += ["-v", f"{self._volumes[mount['name']]}:{mount['mountPath']}{mode}"]
        for one in container.get("env", ()):
            options += ["-e", f"{one['name']}={one.get('value', self.name)}"]
        name = f"sw-{self.name}-{container['name']}"
        self.containers[container["name"]] = Container(name, image, [*options, *more], command)


def workload(home: Path) -> Iterator[str]:
    """Run both pods of the demo workload: WordCountDemo holds its tasks, nothing loud is found, all end in order."""
    manifest = objects(MANIFEST.read_text("utf-8"))
    (config_map,) = (one for one in manifest if one["kind"] == "ConfigMap")
    (stateful_set,) = (one for one in manifest if one["kind"] == "StatefulSet")
    broker = Broker(home / "broker")
    pods: list[WorkloadPod] = []
    try:
        for topic in ("streams-plaintext-input", "streams-wordcount-output"):
            broker.do(f"topic {topic} 4")
        config = home / "config"
        config.mkdir()
        for name, text in config_map["data"].items():
            (config / name).write_text(text.replace("kafka:9092", broker.address))
        libraries = _libraries(home / "libraries", stateful_set)
        for ordinal in range(stateful_set["spec"]["replicas"]):
            pods.append(WorkloadPod(home / str(ordinal), stateful_set, config, libraries, ordinal))
            pods[-1].start()
        broker.do("produce streams-plaintext-input 0 k 0 1000 1700000000000 1000")
        # four tasks of the counts, each with a standby: every pod holds all four
        wait_until(lambda: [one.held() for one in pods] == [4, 4], "each pod holds four tasks", 120)
        yield f"{len(pods)} pods of WordCountDemo: each holds four tasks, half of them as standbys"
        for one in pods:
            last = one.preflight().splitlines()[-1]
            yield f"{one.name}: preflight in the sidecar: {last}"
        loud = {
            series for one in pods for series, value in one.series("statewarden_findings_open").items()
            if value and 'severity="info"' not in series
        }  # fmt: skip
        require(not loud, f"found in a benign workload: {loud}")
        yield "findings above info: none"
        for one in pods:
            codes = one.stop()
            # 143: a JVM that ends by SIGTERM after its shutdown hooks
            require(codes == {"word-count": 143, "statewarden": 0}, f"{one.name}: exit codes {codes}")
        yield "SIGTERM to the applications, then to the sidecars: all ended in order"
    finally:
        for one in pods:
            one.close()
        broker.stop()


def _libraries(home: Path, stateful_set: Object) -> Path:
    """Make what the image has at `/opt/kafka/libs`: Kafka Streams of the image's release, and the demo."""
    (application,) = stateful_set["spec"]["template"]["spec"]["containers"]
    shutil.copytree(jars("kafka-streams", application["image"].partition(":")[2]), home)
    with tempfile.TemporaryDirectory() as classes:
        source = Path(__file__).with_name("WordCountDemo.java")
        subprocess.run([tool("javac"), "-cp", f"{home}/*", "-d", classes, str(source)], check=True)
        subprocess.run([tool("jar"), "-c", "-f", str(home / "demo.jar"), "-C", classes, "."], check=True)
    return home


def _cores(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)
