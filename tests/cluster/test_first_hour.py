"""The first hour as in `docs/kubernetes.md`: its commands and values, word for word, up to the first verdicts.

On a real control plane, from packaged charts, with an object store. The containers are processes of this checkout
(`tests/cluster/kubelet.py`), the store is moto's, and the application is a recording that is repeated on the pod's
volume. `pytest -s` prints what each command took, and when the verdicts were there.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deploy.demo.agents import free_port
from deploy.demo.materialise import materialise_fleet
from deploy.demo.scenarios import load_scenario
from tests.cluster.kubelet import Kubelet
from tests.conftest import wait_until
from tests.delivery import rollups, servers
from tests.support.charts import APPLICATION, ROOT, Manifest, objects, program
from tests.support.control_plane import Cluster, control_plane

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

SCENARIO = load_scenario(ROOT / "tests" / "data" / "traces" / "kafka-20685-4.1.2")
PAGE = ROOT / "docs" / "kubernetes.md"
BUCKET = "streams-audit"
NO_ENGINE = "docker"
"""These commands are not run: `tests/containers` builds the images."""


@dataclass
class Stranger:
    """Somebody with a checkout, Helm, kubectl and the page."""

    cluster: Cluster
    checkout: Path
    log: Path
    began_s: float = field(default_factory=time.monotonic)

    @property
    def commands(self) -> list[str]:
        """Read the commands of the section, as they are to be typed here."""
        text = PAGE.read_text("utf-8")
        section = text[text.index("## First hour") : text.index("## One bucket for both")]
        section = re.sub(r"^```.*?^```$", "", section, flags=re.MULTILINE | re.DOTALL)
        (chart,) = objects((APPLICATION / "Chart.yaml").read_text("utf-8"))
        return [
            line.strip().replace("VERSION", chart["version"]).replace("REGISTRY", "registry.example")
            for line in re.findall(r"^    (\w.*)$", section, re.MULTILINE)
        ]

    def save_values(self) -> None:
        """Save the two blocks of values under the names that the page gives them."""
        found = re.findall(r"`(\w+\.yaml)`:\n\n```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
        assert [name for name, _ in found] == ["orders.yaml", "audit.yaml"]
        for name, text in found:
            (self.checkout / name).write_text(text.replace("REGISTRY", "registry.example"))

    def type(self, command: str) -> str:
        """Run a command to its end and insist that it works."""
        began_s = time.monotonic()
        done = subprocess.run(
            shlex.split(command), cwd=self.checkout, env=self.environment, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stderr}"
        self.note(f"{time.monotonic() - began_s:.1f} s: {command}")
        return done.stdout

    def leave_running(self, command: str) -> subprocess.Popen[bytes]:
        """Start a command that stays; what it prints is kept."""
        self.note(command)
        with self.log.open("wb") as out:
            return subprocess.Popen(
                shlex.split(command), cwd=self.checkout, env=self.environment, stdout=out, stderr=subprocess.STDOUT
            )  # fmt: skip

    def note(self, what: str) -> None:
        """Print it with the seconds since the first command."""
        sys.stdout.write(f"{time.monotonic() - self.began_s:5.0f}  {what}\n")
        sys.stdout.flush()

    @property
    def environment(self) -> Mapping[str, str]:
        """Give what a shell needs to find the programs and the cluster."""
        programs = self.checkout / "bin"
        return {
            **os.environ,
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }


@dataclass(frozen=True)
class World:
    """What the stranger finds: a cluster, its kubelet, a cloud."""

    stranger: Stranger
    kubelet: Kubelet
    endpoint: str
    agent_port: int
    audit_log: Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    if not rollups.JARS.is_dir():
        pytest.skip("Spark's jars are fetched by tools/setup_delivery.sh: make check-cluster")
    port, audit_log = free_port(), tmp_path / "audit.log"
    audit_log.touch()
    with ExitStack() as stack:
        cluster = stack.enter_context(control_plane(tmp_path / "cluster", answers(audit_log)))
        store = stack.enter_context(servers.moto(tmp_path))
        bucket = urllib.request.Request(f"{store.endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(bucket, timeout=60).close()
        kubelet = Kubelet(cluster, tmp_path, cloud(tmp_path, store.endpoint))
        stack.callback(kubelet.close)
        cluster.volumes("shop", *(f"state-orders-{number}" for number in range(3)))
        cluster.volumes("audits", "audit-statewarden-results")
        yield World(stranger(cluster, tmp_path), kubelet, store.endpoint, port, audit_log)


def answers(log: Path) -> list[Manifest]:
    """Say to kwok what the audit's container prints."""
    logs = {
        "selector": {"matchNamespaces": ["audits"]},
        "logs": [{"containers": ["audit"], "logsFile": str(log)}],
    }
    kind = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs"}
    return [{**kind, "metadata": {"name": "audit"}, "spec": logs}]


def cloud(work: Path, endpoint: str) -> dict[str, dict[str, str]]:
    """Give what a cloud puts beside containers: a region and a way to credentials; here also where its services are."""
    token = work / "token"
    token.write_text("a.b.c")
    keys = {
        "AWS_ACCESS_KEY_ID": servers.KEY,
        "AWS_SECRET_ACCESS_KEY": servers.SECRET,
        "AWS_REGION": "us-east-1",
    }
    role = {
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/statewarden-audit",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ENDPOINT_URL_STS": endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": "us-east-1",
        "XDG_CACHE_HOME": str(rollups.cache(work)),
    }
    here = {"STATEWARDEN_SHIP_ENDPOINT": endpoint, "STATEWARDEN_SHIP_ALLOW_HTTP": "true"}
    return {"statewarden-agent": {**keys, **here}, "statewarden-rollup": role}


def stranger(cluster: Cluster, home: Path) -> Stranger:
    """Give a checkout in which nothing was built, whose example is the application of the recording."""
    checkout = home / "checkout"
    shutil.copytree(ROOT / "helm", checkout / "helm")
    shutil.copytree(
        ROOT / "deploy" / "example", checkout / "deploy" / "example", ignore=shutil.ignore_patterns("charts")
    )
    workload = checkout / "deploy" / "example" / "orders" / "templates" / "workload.yaml"
    text = workload.read_text("utf-8")
    assert "application.id=orders" in text
    workload.write_text(text.replace("application.id=orders", f"application.id={SCENARIO.application_id}"))
    (checkout / "bin").mkdir()
    for name, binary in (("helm", program("helm")), ("kubectl", program("kubectl"))):
        (checkout / "bin" / name).symlink_to(binary)
    return Stranger(cluster, checkout, home / "left-running.log")


def test_first_verdicts_by_the_page(world: World) -> None:
    them, kubelet, cluster = world.stranger, world.kubelet, world.stranger.cluster
    waiting = [x for x in them.commands if not x.startswith(NO_ENGINE)]
    assert len(them.commands) - len(waiting) == 4, "two images, built and pushed"
    them.save_values()

    while not (command := waiting.pop(0)).startswith("kubectl --namespace shop port-forward"):
        them.type(command)
    pods = cluster.eventually(lambda: running_pods(cluster, "shop", 3))
    kubelet.start_agent(pods[0], world.agent_port)
    for pod in pods[1:]:
        kubelet.start_agent(pod)
    (trace,) = SCENARIO.traces.values()
    materialise_fleet({"orders-0": (trace, kubelet.volume(pods[0], "state"))})

    with them.leave_running(command) as forward:
        wait_until(lambda: "Forwarding from 127.0.0.1:9464" in them.log.read_text(), 60)
        forward.terminate()
    page = wait_until(lambda: verdict_of_the_pod(world.agent_port), 120)
    assert "skipped-eos-wipe" in page
    headline = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    them.note(f"verdict of a pod: {headline[1] if headline else page}")

    while not (command := waiting.pop(0)).startswith("kubectl --namespace audits logs"):
        them.type(command)
    assert waiting == []
    (pod,) = cluster.eventually(lambda: running_pods(cluster, "audits", 1, "audit-now"))
    wait_until(lambda: shipped(world.endpoint), 120)
    codes = kubelet.run_to_end(pod, {"audit": world.audit_log}, f"--endpoint={world.endpoint}")
    with them.leave_running(command) as follow:
        (shown,) = re.findall(r"^CRITICAL .*$", PAGE.read_text("utf-8"), re.MULTILINE)
        wait_until(lambda: shown in them.log.read_text(), 60)
        follow.terminate()
    assert codes == {"ingest": 0, "compact": 0, "audit": 1}, "1: a critical finding is open"
    report = kubelet.volume(pod, "results") / "audit" / "report.html"
    assert "stale-eos-state" in report.read_text("utf-8")
    them.note(f"verdict of the fleet:\n{them.log.read_text()}")


def running_pods(cluster: Cluster, namespace: str, count: int, prefix: str = "") -> list[Manifest]:
    """Give the running pods of a namespace whose names begin so, once there are as many."""
    pods = cluster.get("pods", "--namespace", namespace)
    found = [
        x for x in pods if x["status"].get("phase") == "Running" and x["metadata"]["name"].startswith(prefix)
    ]
    return sorted(found, key=lambda x: x["metadata"]["name"]) if len(found) == count else []


def verdict_of_the_pod(port: int) -> str:
    """Ask the agent itself, because kwok 0.8 takes a forwarded connection and passes nothing on."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
        text: str = answer.read().decode()
    return text if "critical incident" in text else ""


def shipped(endpoint: str) -> bool:
    """Tell whether the pods' agents have shipped something."""
    with urllib.request.urlopen(f"{endpoint}/{BUCKET}?prefix=statewarden/events/", timeout=60) as answer:
        return b"<Key>" in answer.read()
