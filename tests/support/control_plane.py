"""A real Kubernetes control plane on loopback for tests: etcd, API server, controllers, scheduler, simulated nodes.

The programs come from `tests/cluster/build.sh cluster`. Pods are admitted, bound and owned for real; what a kubelet
would do with them is simulated by kwok, stage by stage, as `tests/cluster/kwok.yaml` says: no container runs. What
`kubectl logs` shows is up to the test.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.demo.agents import free_port
from tests.conftest import wait_until
from tests.delivery.servers import running
from tests.support.charts import Manifest, program, run

READY_S = 120.0
ISSUER = "kubernetes.default.svc"
STAGES = Path(__file__).resolve().parents[1] / "cluster" / "kwok.yaml"


@dataclass(frozen=True)
class Cluster:
    """A running control plane, and how to talk to it."""

    kubeconfig: Path
    server: str
    authority: Path

    def kubectl(self, *arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl; the caller judges."""
        return run(program("kubectl"), "--kubeconfig", self.kubeconfig, *arguments, stdin=stdin)

    def do(self, *arguments: object, stdin: str | None = None) -> str:
        """Run kubectl and insist that it works."""
        done = self.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def get(self, *arguments: object) -> list[Manifest]:
        found = json.loads(self.do("get", *arguments, "--output=json"))
        return found["items"] if found["kind"] == "List" else [found]

    def uids(self, kind: str, namespace: str) -> dict[str, str]:
        """Give the uid of each object of a kind, by its name."""
        return {x["metadata"]["name"]: x["metadata"]["uid"] for x in self.get(kind, "--namespace", namespace)}

    def namespace(self, name: str, *, level: str = "restricted") -> str:
        """Make a namespace with a Pod Security level, and wait until pods can be made in it."""
        labels = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn")}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.do("apply", "-f", "-", stdin=json.dumps(body))
        wait_until(
            lambda: self.kubectl("get", "serviceaccount", "default", "-n", name).returncode == 0, READY_S
        )
        return name

    def volumes(self, namespace: str, *claims: str) -> None:
        """Make a volume for each claim, as a provisioner would; those of events are for several pods."""
        for claim in claims:
            body = {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"{namespace}-{claim}"},
                "spec": {
                    "capacity": {"storage": "100Gi"},
                    "accessModes": ["ReadWriteMany" if "events" in claim else "ReadWriteOnce"],
                    "claimRef": {"name": claim, "namespace": namespace},
                    "hostPath": {"path": "/nowhere"},
                },
            }
            self.do("apply", "-f", "-", stdin=json.dumps(body))

    def eventually(self, look: Callable[[], Any], timeout_s: float = READY_S) -> Any:
        """Wait until a look at the cluster is satisfied; looks cost a process each, so not too often."""
        give_up_at = time.monotonic() + timeout_s
        while not (found := look()):
            assert time.monotonic() < give_up_at, f"not within {timeout_s} s; events:\n{self.events()}"
            time.sleep(0.3)
        return found

    def events(self) -> str:
        """Give what the cluster says about itself, newest last."""
        return self.do("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp")[-3000:]


@contextmanager
def control_plane(directory: Path, answers: Sequence[Manifest] = ()) -> Iterator[Cluster]:
    """Run a control plane until the block ends, the API server before what it needs.

    `answers`: objects of kwok that say where logs of containers are.
    """
    etcd, peers, api = free_port(), free_port(), free_port()
    pki = directory / "pki"
    pki.mkdir(parents=True)
    key, token = _key(pki), secrets.token_hex(16)
    (pki / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
    client, peer = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peers}"
    kubeconfig = directory / "kubeconfig"
    cluster = Cluster(kubeconfig, f"https://127.0.0.1:{api}", pki / "apiserver.crt")
    kubeconfig.write_text(json.dumps(_kubeconfig(cluster.server, token)))
    with ExitStack() as stack:

        def start(name: str, port: int, flags: Mapping[str, object], *words: object) -> None:
            given = [f"--{flag}={value}" for flag, value in flags.items()]
            command = [str(x) for x in (program(name), *words, *given)]
            stack.enter_context(running(command, directory / f"{name}.log", port, KUBECONFIG=str(kubeconfig)))

        start("etcd", etcd, {
            "data-dir": directory / "etcd", "listen-client-urls": client, "advertise-client-urls": client,
            "listen-peer-urls": peer, "initial-advertise-peer-urls": peer, "initial-cluster": f"default={peer}",
            "unsafe-no-fsync": "true",
        })  # fmt: skip
        start("kube-apiserver", api, {
            "etcd-servers": client, "cert-dir": pki, "bind-address": "127.0.0.1", "secure-port": api,
            "advertise-address": "127.0.0.1", "service-cluster-ip-range": "10.0.0.0/24",
            "token-auth-file": pki / "tokens.csv", "authorization-mode": "RBAC",
            "service-account-key-file": key, "service-account-signing-key-file": key,
            "service-account-issuer": f"https://{ISSUER}", "allow-privileged": "false",
            "endpoint-reconciler-type": "none",
        })  # fmt: skip
        wait_until(lambda: cluster.kubectl("get", "--raw", "/readyz").returncode == 0, READY_S)
        health, scheduling, simulating = free_port(), free_port(), free_port()
        simulation = directory / "kwok.yaml"
        simulation.write_text("\n---\n".join([STAGES.read_text("utf-8"), *map(json.dumps, answers)]))
        start("kube-controller-manager", health, {
            "kubeconfig": kubeconfig, "bind-address": "127.0.0.1", "secure-port": health, "leader-elect": "false",
            "service-account-private-key-file": key, "root-ca-file": cluster.authority,
            "use-service-account-credentials": "false",
        })  # fmt: skip
        start("kube-scheduler", scheduling, {
            "kubeconfig": kubeconfig, "bind-address": "127.0.0.1", "secure-port": scheduling,
            "leader-elect": "false",
        })  # fmt: skip
        start("kwok", simulating, {
            "kubeconfig": kubeconfig, "config": simulation, "manage-all-nodes": "true",
            "server-address": f"127.0.0.1:{simulating}",
            "tls-cert-file": cluster.authority, "tls-private-key-file": pki / "apiserver.key",
        })  # fmt: skip
        cluster.do("apply", "-f", "-", stdin=json.dumps(_node("simulated", simulating)))
        wait_until(lambda: _is_ready(cluster.get("node", "simulated")), READY_S)
        yield cluster


def _key(pki: Path) -> Path:
    key = pki / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    return key


def _kubeconfig(server: str, token: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }


def _node(name: str, port: int) -> Manifest:
    room = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {
            "allocatable": room,
            "capacity": room,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }


def _is_ready(nodes: Sequence[Manifest]) -> bool:
    conditions = nodes[0].get("status", {}).get("conditions", [])
    tainted = nodes[0]["spec"].get("taints", [])
    return any(x["type"] == "Ready" and x["status"] == "True" for x in conditions) and not tainted
