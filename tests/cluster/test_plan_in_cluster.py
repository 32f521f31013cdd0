"""The script of `plan` for a pod, run against a control plane; only what needs a container is done here instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.cli.conftest import statewarden as statewarden
from tests.agent.cli.test_plan import DAMAGE, Printed, printed, program, records
from tests.agent.cli.test_plan import state as state
from tests.cluster.test_stopped_volume import PODS, stateful_set
from tests.support.charts import program as built
from tests.support.control_plane import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

KUBECTL = r"""
if [ "$3" = exec ]; then
  while [ "$1" != -- ]; do shift; done; shift
  args=()
  for x in "$@"; do args+=("${x/#\/volume/$VOLUME}"); done
  "${args[@]}"
else
  "$KUBECTL" --kubeconfig "$KUBECONFIG" "$@"
fi
"""
"""No container runs: what is to be done in one is done here, on the volume's directory."""


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """Give a namespace in which four pods of a set run, each on its claim."""
    name = cluster.namespace("planned")
    cluster.volumes(name, *(f"data-app-{number}" for number in range(PODS)))
    cluster.do("apply", "--namespace", name, "-f", "-", stdin=json.dumps(stateful_set()))
    ready = "-o=jsonpath={.status.readyReplicas}"
    cluster.eventually(lambda: cluster.do("get", "-n", name, "statefulset", "app", ready) == str(PODS))
    return name


@pytest.fixture
def script(statewarden: Callable, cluster: Cluster, namespace: str, tmp_path: Path, state: Path) -> Printed:
    """Give the script for two tasks of `app-2`, filled in."""
    both = [
        replace(DAMAGE, id=f"{x[2]:a<16}", task_id=x, incident_id="i-0000000000aa") for x in ("0_0", "0_2")
    ]
    (tmp_path / "all.jsonl").write_text(records(*both, namespace=namespace).replace('"pod-7"', '"app-2"'))
    program(tmp_path, "kubectl", KUBECTL)
    program(tmp_path, "statewarden", f'echo "$*" >"{tmp_path}/asked"\n')
    return printed(
        statewarden("plan", "i-0000000000aa", tmp_path).out, tmp_path, state, KUBECTL=str(built("kubectl")),
        KUBECONFIG=str(cluster.kubeconfig), VOLUME=str(tmp_path), CLAIM="data-app-2", STATE_IN_CLAIM="the state",
        PAUSED="yes",
    )  # fmt: skip


def test_one_pod_is_repaired_while_the_others_run_on(
    cluster: Cluster, namespace: str, script: Printed
) -> None:
    """Pod and set are there again, on the same claims; no other pod was touched, and no maintenance pod is left."""
    pods, claims = cluster.uids("pods", namespace), cluster.uids("pvc", namespace)
    refused = script.run(CLAIM="data-app-1")
    assert "app-2 does not mount data-app-1" in refused.stderr
    assert (script.tasks, cluster.uids("pods", namespace)) == (["0_0", "0_1", "0_2"], pods)
    ran = script.run()
    assert ran.returncode == 0, ran.stderr
    assert (script.tasks, script.copies) == (["0_1"], ["0_0", "0_2"])
    after = cluster.eventually(lambda: len(found := cluster.uids("pods", namespace)) == PODS and found)
    assert {name for name in pods if after[name] != pods[name]} == {"app-2"}
    assert cluster.uids("pvc", namespace) == claims
    (made,) = cluster.get("statefulset", "--namespace", namespace)
    kept = ("replicas", "persistentVolumeClaimRetentionPolicy")
    assert [made["spec"][x] for x in kept] == [stateful_set()["spec"][x] for x in kept]
    asked = (script.tmp_path / "asked").read_text()
    assert asked.startswith("repaired i-0000000000aa http://localhost:9464 --task ")
