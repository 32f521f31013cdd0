"""The application chart in a real control plane: installed, upgraded, tested, scheduled, and how little it may do."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.config import load_config
from agent.contract.events import Confidence, Kind, Origin, Record, Severity, Status
from agent.publish.kubernetes import KubernetesEvents
from tests.support.charts import APPLICATION, Helm, Manifest, kind_of, objects, scenarios
from tests.support.control_plane import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SCENARIOS = {x.name.removesuffix("-values.yaml"): x for x in scenarios(APPLICATION)}


def installed(cluster: Cluster, chart: Helm, namespace: str, *values: Path, **sets: str) -> str:
    """Install or upgrade release `audit`; gives what Helm prints."""
    given = [f"--set={key.replace('__', '.')}={value}" for key, value in sets.items()]
    done = chart.on(
        cluster.kubeconfig, "upgrade", "--install", "audit", chart.chart, "--namespace", namespace,
        *(f"--values={path}" for path in values), *given,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "violate PodSecurity" not in done.stderr
    return done.stdout


def make_claim(cluster: Cluster, namespace: str, name: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    cluster.do("apply", "-f", "-", stdin=json.dumps(body))


def pods_of(cluster: Cluster, namespace: str, component: str = "rollup") -> list[Manifest]:
    return cluster.get(
        "pods", "--namespace", namespace, "--selector", f"app.kubernetes.io/component={component}"
    )


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_server_accepts_each_scenario_without_a_warning(cluster: Cluster, chart: Helm, name: str) -> None:
    namespace = cluster.namespace("scenarios-audit")
    for other in ("shop", "search"):
        cluster.namespace(other)
    for account in ("audit-statewarden", "audits"):  # a dry run stores none, and the test's pod asks for it
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
        cluster.do("apply", "--namespace", namespace, "-f", "-", stdin=json.dumps(body))
    rank = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "batch"},
        "value": 1,
    }
    cluster.do("apply", "-f", "-", stdin=json.dumps(rank))
    text = chart.text(SCENARIOS[name], kube="1.36.0").replace("namespace: audits", f"namespace: {namespace}")
    done = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_installed_upgraded_tested_and_removed(cluster: Cluster, chart: Helm) -> None:
    namespace = cluster.namespace(f"audits-{chart.binary.name}")
    cluster.volumes(namespace, "statewarden-events", "audit-statewarden-results")
    make_claim(cluster, namespace, "statewarden-events")
    notes = installed(cluster, chart, namespace, SCENARIOS["directory"])
    assert "helm test audit" in notes
    assert "No Pushgateway" in notes
    more = [
        "podMonitor__enabled",
        "prometheusRule__enabled",
        "grafanaDashboards__enabled",
        "pushgateway__enabled",
    ]
    notes = installed(cluster, chart, namespace, SCENARIOS["directory"], **dict.fromkeys(more, "true"))
    assert "No Pushgateway" not in notes
    assert len(cluster.get("podmonitor", "--namespace", namespace)) == 2
    (rule,) = cluster.get("prometheusrule", "--namespace", namespace)
    assert sum(len(group["rules"]) for group in rule["spec"]["groups"]) > 50
    assert len(cluster.get("configmap", "--namespace", namespace, "--selector", "grafana_dashboard=1")) == 5
    cluster.eventually(
        lambda: [x for x in pods_of(cluster, namespace, "pushgateway") if x["status"]["phase"] == "Running"]
    )

    # The hook's pod is admitted, bound and waited for; its container is simulated (tests/charts runs the script).
    tested = chart.on(cluster.kubeconfig, "test", "audit", "--namespace", namespace, "--timeout=2m")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "Phase:          Succeeded" in tested.stdout

    installed(cluster, chart, namespace, SCENARIOS["directory"])
    assert cluster.get("podmonitor", "--namespace", namespace) == []
    removed = chart.on(cluster.kubeconfig, "uninstall", "audit", "--namespace", namespace)
    assert removed.returncode == 0, removed.stderr
    assert [x["metadata"]["name"] for x in cluster.get("pvc", "--namespace", namespace)] == [
        "audit-statewarden-results",
        "statewarden-events",
    ], "what was found outlives the release"
    installed(cluster, chart, namespace, SCENARIOS["directory"])


@pytest.fixture
def scheduled(cluster: Cluster, chart: Helm) -> str:
    """Give a namespace with an audit that is due every minute."""
    namespace = cluster.namespace(f"scheduled-{chart.binary.name}")
    cluster.volumes(namespace, "statewarden-events", "audit-statewarden-results")
    make_claim(cluster, namespace, "statewarden-events")
    installed(cluster, chart, namespace, SCENARIOS["directory"], rollup__schedule="* * * * *")
    return namespace


def test_cron_job_runs_in_order_and_never_overlaps(cluster: Cluster, chart: Helm, scheduled: str) -> None:
    def jobs() -> list[Manifest]:
        return cluster.get("jobs", "--namespace", scheduled)

    def is_running() -> bool:
        return any(x["status"].get("phase") == "Running" for x in pods_of(cluster, scheduled))

    cluster.eventually(jobs, 90)
    cluster.eventually(is_running)
    (pod,) = pods_of(cluster, scheduled)
    order = [x["name"] for x in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])]
    assert order == ["ingest", "compact", "audit"]

    def skipped() -> bool:
        found = cluster.get("events", "--namespace", scheduled, "--field-selector", "reason=JobAlreadyActive")
        return bool(found)

    cluster.eventually(skipped, 90)
    assert len(jobs()) == 1

    # Exit code 1 says that findings are open: the Job fails at once and is not tried again.
    done = {"exitCode": 1, "reason": "Error", "startedAt": _now(), "finishedAt": _now()}
    statuses = [
        {**x, "ready": False, "started": False, "state": {"terminated": done}}
        for x in pod["status"]["containerStatuses"]
    ]
    cluster.do(
        "patch", "pod", pod["metadata"]["name"], "--namespace", scheduled, "--subresource=status", "--type=merge",
        "--patch", json.dumps({"status": {"phase": "Failed", "containerStatuses": statuses}}),
    )  # fmt: skip

    def failed() -> list[str]:
        return [
            condition["reason"]
            for job in jobs()
            for condition in job["status"].get("conditions", [])
            if condition["type"] == "Failed"
        ]

    assert cluster.eventually(failed) == ["PodFailurePolicy"]


def test_no_account_may_do_more_than_it_needs(cluster: Cluster, chart: Helm) -> None:
    namespace = cluster.namespace(f"rights-{chart.binary.name}")
    shop = cluster.namespace(f"rights-shop-{chart.binary.name}")
    subject = (
        f"kubernetesEvents.subjects[0].namespace={shop},kubernetesEvents.subjects[0].serviceAccount=default"
    )
    done = chart.on(
        cluster.kubeconfig, "install", "audit", chart.chart, "--namespace", namespace,
        f"--values={SCENARIOS['directory']}", f"--set={subject}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rollup, agent = f"{namespace}:audit-statewarden", f"{shop}:default"
    table = {
        (rollup, namespace, verb, resource): False
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
        for resource in ("pods", "secrets", "configmaps", "events", "persistentvolumeclaims", "jobs.batch")
    }
    table |= {
        (agent, shop, verb, "events"): verb == "create"
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    }
    table |= {
        (agent, shop, verb, resource): False
        for verb in ("get", "list", "create", "patch", "delete")
        for resource in ("pods", "secrets", "configmaps", "pods/log", "pods/exec", "serviceaccounts/token")
    }
    table |= {(agent, namespace, verb, "events"): False for verb in ("create", "patch")}
    table |= {(agent, shop, "create", "nodes"): False, (agent, "kube-system", "create", "events"): False}
    assert {row: may(cluster, *row) for row in table} == table


def may(cluster: Cluster, account: str, namespace: str, verb: str, resource: str) -> bool:
    """Ask the API server, as `kubectl auth can-i` does."""
    plain, _, rest = resource.partition("/")
    name, _, group = plain.partition(".")
    attributes = {"namespace": namespace, "verb": verb, "resource": name, "group": group, "subresource": rest}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{account}", "resourceAttributes": attributes},
    }
    return json.loads(cluster.do("create", "--output=json", "-f", "-", stdin=json.dumps(review)))["status"][
        "allowed"
    ]


def test_agent_makes_events_with_no_other_right(cluster: Cluster, sidecar: Helm, tmp_path: Path) -> None:
    """The agent's own code against the real API server, with the token of an account that has the chart's role."""
    namespace = cluster.namespace(f"events-{sidecar.binary.name}")
    values = {"statewarden-sidecar__kubernetesEvents__level": "warning"}
    found = objects(
        sidecar.text(**values, kube="1.36.0").replace("namespace: audits", f"namespace: {namespace}")
    )
    for kind in ("Role", "RoleBinding"):
        cluster.do("apply", "-f", "-", stdin=json.dumps(kind_of(found, kind)))
    cluster.do("create", "serviceaccount", "orders", "--namespace", namespace)
    (tmp_path / "token").write_text(cluster.do("create", "token", "orders", "--namespace", namespace).strip())
    (tmp_path / "ca.crt").write_bytes(cluster.authority.read_bytes())
    config = load_config(
        environment={
            "STATEWARDEN_KUBERNETES_EVENTS": "warning",
            "STATEWARDEN_KUBERNETES_API": cluster.server,
            "STATEWARDEN_KUBERNETES_SERVICE_ACCOUNT_DIR": str(tmp_path),
        }
    )
    origin = Origin(
        pod_uid="5f0c", boot_id="b", pod="orders-0", namespace=namespace, node="simulated", agent_version="0"
    )
    clock = SystemClock()
    events = KubernetesEvents(config.kubernetes, origin)
    events.start()
    try:
        events.offer(Record(Kind.FINDING, clock.now_us(), _finding()))

        def told() -> list[Manifest]:
            return cluster.get("events", "--namespace", namespace, "--field-selector", "reason=TornStore")

        (event,) = cluster.eventually(told, 30)
    finally:
        events.stop(5.0)
    assert event["involvedObject"]["name"] == "orders-0"
    assert "orders/0_3/counts" in event["message"]


def _finding() -> dict[str, object]:
    return {
        "finding_id": "f" * 16,
        "detector": "torn-store",
        "severity": Severity.CRITICAL.value,
        "confidence": Confidence.CONFIRMED.value,
        "status": Status.OPEN.value,
        "application_id": "orders",
        "task_id": "0_3",
        "store": "counts",
        "summary": "The manifest names files that are gone.",
        "next_action": "Keep a copy.",
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
