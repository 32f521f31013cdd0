"""One pod of many is stopped and its volume opened by the commands of `docs/stopped-volume.md`; the others run on."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.charts import ROOT, Manifest, program
from tests.support.control_plane import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PAGE = (ROOT / "docs" / "stopped-volume.md").read_text("utf-8")
PODS = 4
NOT_RUN = ("exec", "cp")
"""They need a container."""


def stateful_set() -> Manifest:
    """Give one whose claims go with their pods, the worst case."""
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "app", "image": "example/app:1", "securityContext": restricted,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }  # fmt: skip
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "app"},
        "spec": {
            "serviceName": "app",
            "replicas": PODS,
            "podManagementPolicy": "Parallel",
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
            "selector": {"matchLabels": {"app": "app"}},
            "template": {"metadata": {"labels": {"app": "app"}}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }


def commands(namespace: str) -> list[str]:
    """Read the page's commands, for pod `app-2` of the set `app`."""
    steps = PAGE[: PAGE.index("```yaml")]
    found = re.findall(r"`(kubectl -n NS [^`]*)`", steps)
    words = {"NS": namespace, "POD-2": "app-2", "SET": "app"}
    return [
        re.sub(r"\b(?:NS|POD-2|SET)\b", lambda x: words[x[0]], command)
        for command in found
        if command.split()[3] not in NOT_RUN
    ]


def test_one_pod_of_many_is_stopped(cluster: Cluster, tmp_path: Path) -> None:
    namespace = cluster.namespace("stopped")
    cluster.volumes(namespace, *(f"data-app-{number}" for number in range(PODS)))
    cluster.do("apply", "--namespace", namespace, "-f", "-", stdin=json.dumps(stateful_set()))

    def pods() -> dict[str, str]:
        found = cluster.get("pods", "--namespace", namespace)
        return {
            x["metadata"]["name"]: x["metadata"]["uid"]
            for x in found
            if x["status"].get("phase") == "Running"
        }

    before, kept = cluster.eventually(
        lambda: len(pods()) == PODS and (pods(), cluster.uids("pvc", namespace))
    )
    maintenance = PAGE[PAGE.index("```yaml") + 8 : PAGE.index("```", PAGE.index("```yaml") + 8)]
    (tmp_path / "maintenance.yaml").write_text(maintenance.replace("CLAIM", "data-app-2"))
    (tmp_path / "kubectl").symlink_to(program("kubectl"))

    def type_(command: str) -> None:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "KUBECONFIG": str(cluster.kubeconfig)},
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stderr}"

    typed = commands(namespace)
    last = next(x for x in typed if "apply -f maintenance" in x)
    for command in typed[: typed.index(last) + 1]:
        type_(command)
    others = {name: uid for name, uid in before.items() if name != "app-2"}
    cluster.eventually(lambda: set(pods()) == {*others, "statewarden-maintenance"})
    assert {name: uid for name, uid in pods().items() if name in others} == others
    assert cluster.uids("pvc", namespace) == kept

    for command in typed[typed.index(last) + 1 :]:
        type_(command)
    cluster.eventually(lambda: set(pods()) == set(before))
    after = pods()
    assert {name: uid for name, uid in after.items() if name in others} == others
    assert after["app-2"] != before["app-2"]
    assert cluster.uids("pvc", namespace) == kept
