"""The sidecar, put into pods in four ways, under a real API server, its admission and its controllers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.charts import CONSUMER, ROOT, Helm, Manifest, essence, scenarios, sidecar_of
from tests.support.control_plane import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def running_pod(cluster: Cluster, namespace: str, name: str) -> Manifest:
    """Wait for a pod of a controller, which admission let in, which was bound and (simulated) started."""

    def look() -> Manifest | None:
        found = cluster.get("pods", "--namespace", namespace, "--field-selector", f"metadata.name={name}")
        return found[0] if found and found[0]["status"].get("phase") == "Running" else None

    return cluster.eventually(look)


@pytest.mark.parametrize("path", scenarios(CONSUMER), ids=lambda x: x.stem.removesuffix("-values"))
def test_server_accepts_each_scenario_without_a_warning(cluster: Cluster, sidecar: Helm, path: Any) -> None:
    namespace = cluster.namespace("scenarios")
    text = sidecar.text(path, kube="1.36.0").replace("namespace: audits", f"namespace: {namespace}")
    done = cluster.kubectl(
        "apply", "--dry-run=server", "--validate=strict", "--namespace", namespace, "-f", "-", stdin=text
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, "Pod Security admission warns about templates, too"


def test_restricted_pod_with_the_sidecar_is_admitted_and_starts_it_first(
    cluster: Cluster, sidecar: Helm
) -> None:
    namespace = cluster.namespace(f"shop-{sidecar.binary.name}")
    cluster.volumes(namespace, "data-orders-0", "statewarden-spool-orders-0")
    (values,) = (x for x in scenarios(CONSUMER) if x.name.startswith("object-store"))
    done = sidecar.on(
        cluster.kubeconfig, "install", "orders", sidecar.chart, "--namespace", namespace, f"--values={values}"
    )
    assert done.returncode == 0, done.stderr
    pod = running_pod(cluster, namespace, "orders-0")
    first, second = pod["spec"]["initContainers"]
    assert (first["name"], first["restartPolicy"]) == ("statewarden", "Always")
    assert "restartPolicy" not in second
    shown = {x["name"]: x["state"] for x in pod["status"]["initContainerStatuses"]}
    assert "running" in shown["statewarden"]
    assert "terminated" in shown["migrate"]
    mounts = {x["name"]: x.get("readOnly", False) for x in first["volumeMounts"]}
    assert mounts["data"] is True
    assert mounts["statewarden-spool"] is False


def test_pod_that_is_not_restricted_is_refused(cluster: Cluster, sidecar: Helm) -> None:
    """The admission that lets the sidecar in is not asleep: one forgotten line, and there is no pod."""
    namespace = cluster.namespace(f"strict-{sidecar.binary.name}")
    text = sidecar.text(kube="1.36.0").replace("namespace: audits", f"namespace: {namespace}")
    agents_own = (
        r"allowPrivilegeEscalation: false(?=\s+capabilities:\s+drop:\s+- ALL\s+\w+: true\s+runAsGroup)"
    )
    wrong = re.sub(agents_own, "allowPrivilegeEscalation: true", text)
    assert wrong != text
    done = cluster.kubectl("apply", "--namespace", namespace, "-f", "-", stdin=wrong)
    assert "would violate PodSecurity" in done.stderr

    def refused() -> bool:
        found = cluster.get("events", "--namespace", namespace, "--field-selector", "reason=FailedCreate")
        return any("violates PodSecurity" in x["message"] for x in found)

    cluster.eventually(refused)
    assert cluster.get("pods", "--namespace", namespace) == []


def test_sidecar_that_is_no_sidecar_is_refused(cluster: Cluster, sidecar: Helm) -> None:
    namespace = cluster.namespace("scenarios")
    text = sidecar.text(kube="1.36.0").replace("restartPolicy: Always", "restartPolicy: Sometimes")
    done = cluster.kubectl(
        "create",
        "--dry-run=server",
        "--namespace",
        namespace,
        "-f",
        "-",
        stdin=text.replace("namespace: audits", f"namespace: {namespace}"),
    )
    assert done.returncode != 0
    assert "Sometimes" in done.stderr


def test_four_ways_make_the_same_sidecar(cluster: Cluster, sidecar: Helm) -> None:
    by_chart = essence(sidecar_of(sidecar.objects()[0]))

    manifest = (ROOT / "deploy" / "manifests" / "streams-application.yaml").read_text("utf-8")
    cluster.do("apply", "--validate=strict", "-f", "-", stdin=manifest)
    (by_hand,) = cluster.get("statefulset", "word-count", "--namespace", "statewarden-demo")
    assert essence(sidecar_of(by_hand)) == by_chart

    built = cluster.do("kustomize", ROOT / "deploy" / "kustomize" / "example")
    namespace = cluster.namespace("kustomized")
    cluster.do("apply", "--validate=strict", "--namespace", namespace, "-f", "-", stdin=built)
    (by_component,) = cluster.get("statefulset", "orders", "--namespace", namespace)
    assert essence(sidecar_of(by_component)) == by_chart
    cluster.volumes(namespace, "state-orders-0")
    pod = running_pod(cluster, namespace, "orders-0")
    assert [x["name"] for x in pod["spec"]["initContainers"]] == ["statewarden", "migrate"]

    injected = injected_pod(cluster)
    assert essence(injected["spec"]["initContainers"][0]) == by_chart


def injected_pod(cluster: Cluster, **changes: object) -> Manifest:
    """Let the admission policy put the sidecar into a plain pod; nothing is stored."""
    cluster.do("apply", "-f", ROOT / "deploy" / "admission" / "statewarden-sidecar.yaml")
    namespace = cluster.namespace("injected")
    cluster.do("label", "namespace", namespace, "statewarden.io/inject=true", "--overwrite")
    pod = json.dumps({**plain_pod(namespace), **changes})

    def look() -> Manifest | None:
        made = json.loads(cluster.do("create", "--dry-run=server", "--output=json", "-f", "-", stdin=pod))
        return made if made["spec"].get("initContainers") or changes else None

    return cluster.eventually(look)


def plain_pod(namespace: str) -> Manifest:
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "orders",
            "namespace": namespace,
            "annotations": {
                "statewarden.io/state-volume": "data",
                "statewarden.io/state-directory": "kafka-streams",
                "statewarden.io/facts": "num_standby_replicas=1,processing_guarantee=at_least_once",
            },
        },
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsUser": 10001, "runAsGroup": 10001, "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "orders", "image": "example/orders:1.0", "securityContext": restricted,
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }  # fmt: skip


def test_admission_policy_says_what_the_annotations_say(cluster: Cluster) -> None:
    pod = injected_pod(cluster)
    agent = pod["spec"]["initContainers"][0]
    assert agent["args"] == [
        "run",
        "--set=num_standby_replicas=1",
        "--set=processing_guarantee=at_least_once",
    ]
    assert {"name": "STATEWARDEN_STATE_DIR", "value": "/data/kafka-streams"} in agent["env"]
    assert agent["volumeMounts"][0] == {"name": "data", "mountPath": "/data", "readOnly": True}
    assert pod["metadata"]["labels"] == {"statewarden.io/agent": "true"}


def test_admission_policy_leaves_other_pods_alone(cluster: Cluster) -> None:
    injected_pod(cluster)  # the policy is active now
    bare = plain_pod("injected")
    unasked = {**bare["metadata"], "annotations": {}}
    assert "initContainers" not in injected_pod(cluster, metadata=unasked)["spec"]
    elsewhere = {**bare["metadata"], "annotations": {"statewarden.io/state-volume": "typo"}}
    assert "initContainers" not in injected_pod(cluster, metadata=elsewhere)["spec"]
    own = {
        "name": "statewarden",
        "image": "example/own:1",
        "securityContext": bare["spec"]["containers"][0]["securityContext"],
    }
    spec = {**bare["spec"], "initContainers": [own]}
    assert [x["image"] for x in injected_pod(cluster, spec=spec)["spec"]["initContainers"]] == [
        "example/own:1"
    ]


def test_manifests_are_accepted(cluster: Cluster) -> None:
    for name in ("kafka.yaml", "streams-application.yaml"):
        path = ROOT / "deploy" / "manifests" / name
        done = cluster.kubectl("apply", "--validate=strict", "-f", path)
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
    cluster.volumes("statewarden-demo", "state-word-count-0", "state-word-count-1")
    for name in ("word-count-0", "word-count-1"):
        pod = running_pod(cluster, "statewarden-demo", name)
        assert pod["spec"]["initContainers"][0]["name"] == "statewarden"
