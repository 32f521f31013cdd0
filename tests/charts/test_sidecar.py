"""The library chart: what one include makes of somebody else's workload."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.config import load_config
from agent.detectors import BY_ID
from deploy.demo.agents import free_port
from tests.delivery.servers import running
from tests.support.charts import ROOT, Helm, Manifest, kind_of
from tests.support.charts import sidecar_values as own

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]


def pod_of(workload: Manifest) -> dict[str, Any]:
    return workload["spec"]["template"]["spec"]


def native(helm: Helm, **sets: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give pod and sidecar of the workload."""
    pod = pod_of(kind_of(helm.objects(**sets), "StatefulSet"))
    return pod, pod["initContainers"][0]


def environment(container: Manifest) -> dict[str, str]:
    return {x["name"]: x["value"] for x in container["env"] if "value" in x}


def test_native_sidecar_is_the_first_init_container(sidecar: Helm) -> None:
    other = {"name": "migrate", "image": "example/migrate:1"}
    pod, agent = native(sidecar, initContainers=[other])
    assert [x["name"] for x in pod["initContainers"]] == ["statewarden", "migrate"]
    assert agent["restartPolicy"] == "Always"
    assert [x["name"] for x in pod["containers"]] == ["orders"]


def test_application_waits_for_armed_watch_and_first_scan(sidecar: Helm) -> None:
    _, agent = native(sidecar)
    assert agent["startupProbe"]["httpGet"] == {"path": "/readyz", "port": "statewarden"}
    assert agent["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "statewarden"}
    assert "readinessProbe" not in agent
    _, agent = native(sidecar, **own(probes__waitForAgent=False))
    assert "startupProbe" not in agent


def test_state_is_mounted_read_only_where_the_application_mounts_it(sidecar: Helm) -> None:
    mount = {"name": "data", "mountPath": "/var/app", "subPath": "state"}
    _, agent = native(sidecar, volumeMount=mount)
    state, spool = agent["volumeMounts"]
    assert state == {"name": "data", "mountPath": "/var/app", "subPath": "state", "readOnly": True}
    assert environment(agent)["STATEWARDEN_STATE_DIR"] == "/var/app/kafka-streams"
    assert spool == {"name": "statewarden-spool", "mountPath": "/var/lib/statewarden"}


def test_only_claim_template_is_the_volume(sidecar: Helm) -> None:
    _, agent = native(sidecar, **own(state__volume=""))
    assert agent["volumeMounts"][0] == {"name": "data", "mountPath": "/data", "readOnly": True}


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({"registry": "registry.example"}, "registry.example/statewarden-agent:1"),
        ({"repository": "registry.example/team/agent"}, "registry.example/team/agent:1"),
        ({"repository": "localhost/agent"}, "localhost/agent:1"),
        ({"preloaded": True}, "statewarden-agent:1"),
    ],
)
def test_image_that_can_be_pulled_is_taken(sidecar: Helm, image: dict[str, Any], reference: str) -> None:
    _, agent = native(sidecar, **own(image={"preloaded": False, "tag": "1", **image}))
    assert agent["image"] == reference


def by_expression(expression: str) -> dict[str, str]:
    return {"name": "data", "mountPath": "/d", "subPathExpr": expression}


def field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def key(name: str, kind: str = "configMapKeyRef") -> Manifest:
    return {"name": name, "valueFrom": {kind: {"name": "orders", "key": name}}}


def test_sub_path_of_the_pod_is_followed(sidecar: Helm) -> None:
    sets = {"volumeMount": by_expression("$(POD_NAME)"), "env": [field("POD_NAME", "metadata.name")]}
    _, agent = native(sidecar, **sets)
    assert agent["volumeMounts"][0]["subPathExpr"] == "$(POD_NAME)"
    assert [x for x in agent["env"] if x["name"] == "POD_NAME"] == sets["env"]


@pytest.mark.parametrize(
    ("expression", "env", "copied"),
    [
        ("$(MY_POD)", [field("MY_POD", "metadata.name")], ["MY_POD"]),
        (
            "a/$(ZONE)/$(MY_POD)",
            [key("MY_POD", "secretKeyRef"), key("ZONE"), key("OTHER")],
            ["MY_POD", "ZONE"],
        ),
        ("$(DIR)", [key("ZONE"), {"name": "DIR", "value": "$(ZONE)-$(ZONE)-$$(NONE)"}], ["ZONE", "DIR"]),
        ("$(DIR)", [field("POD_NAME", "metadata.name"), {"name": "DIR", "value": "x-$(POD_NAME)"}], ["DIR"]),
        ("$$(DIR)/$(A)", [{"name": "A", "value": "first"}, {"name": "A", "value": "1"}], ["A"]),
    ],
)
def test_variables_of_the_sub_path_are_copied(
    sidecar: Helm, expression: str, env: list[Manifest], copied: list[str]
) -> None:
    """With what they are made of, in their order; the last of a name counts; nothing else of the application."""
    _, agent = native(sidecar, volumeMount=by_expression(expression), env=env)
    last = {x["name"]: x for x in env}
    downward = {"POD_NAME", "POD_NAMESPACE", "POD_UID", "NODE_NAME"}
    names = [x["name"] for x in agent["env"]]
    strange = [x for x in names if x not in downward and not x.startswith("STATEWARDEN_")]
    assert strange == copied
    assert [x for x in agent["env"] if x["name"] in copied] == [last[x] for x in copied]


def test_variable_that_the_sidecar_is_given_is_not_copied(sidecar: Helm) -> None:
    extra = field("MY_POD", "metadata.name")
    _, agent = native(
        sidecar, volumeMount=by_expression("$(MY_POD)"), env=[key("MY_POD")], **own(extraEnv=[extra])
    )
    assert [x for x in agent["env"] if x["name"] == "MY_POD"] == [extra]


def test_properties_of_the_application_are_mounted_read_only(sidecar: Helm) -> None:
    pod, agent = native(
        sidecar, **own(agent__propertiesFrom={"configMap": "orders", "key": "kafka.properties"})
    )
    (volume,) = (x for x in pod["volumes"] if x["name"] == "statewarden-properties")
    items = [{"key": "kafka.properties", "path": "streams.properties"}]
    assert volume["configMap"] == {"name": "orders", "optional": True, "items": items}
    (mount,) = (x for x in agent["volumeMounts"] if x["name"] == "statewarden-properties")
    assert mount["readOnly"]
    assert environment(agent)["STATEWARDEN_PROPERTIES"] == f"{mount['mountPath']}/streams.properties"


def test_release_comes_from_a_label_of_the_pod(sidecar: Helm) -> None:
    _, agent = native(sidecar, **own(agent__streamsVersionFrom__label="example.com/streams"))
    (variable,) = (x for x in agent["env"] if x["name"] == "STATEWARDEN_STREAMS_VERSION")
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.labels['example.com/streams']"}}
    _, agent = native(sidecar)
    assert "STATEWARDEN_STREAMS_VERSION" not in {x["name"] for x in agent["env"]}


@pytest.mark.parametrize(
    ("image", "pattern"),
    [
        ("example.com:5000/shop/orders:1.2-streams3.9.1", "-streams([0-9.]+)$"),
        ("orders:3.9.1-7", "^([0-9]+[.][0-9]+[.][0-9]+)-"),
        (f"orders:3.9.1@sha256:{'0' * 64}", "^(.+)$"),
    ],
)
def test_release_comes_from_the_tag_of_the_image(sidecar: Helm, image: str, pattern: str) -> None:
    _, agent = native(sidecar, image=image, **own(agent__streamsVersionFrom__imageTag=pattern))
    release = (
        load_config(environment=environment(agent)).applications.of("orders").text("kafka_streams_version")
    )
    assert release == "3.9.1"


def test_disabled_detectors_arrive_as_the_agent_reads_them(sidecar: Helm) -> None:
    reasons = {"torn-store": "a = known, old one", "zombie-state": "by design"}
    _, agent = native(sidecar, **own(detectors__disabled=reasons))
    assert load_config(environment=environment(agent), detectors=BY_ID).detectors.disabled == reasons
    _, agent = native(sidecar)
    assert "STATEWARDEN_DETECTORS_DISABLED" not in environment(agent)


def test_spool_is_bounded_and_its_own(sidecar: Helm) -> None:
    pod, agent = native(sidecar, **own(spool__capMib=16, spool__sizeLimit="32Mi"))
    assert {"name": "statewarden-spool", "emptyDir": {"sizeLimit": "32Mi"}} in pod["volumes"]
    assert environment(agent)["STATEWARDEN_SHIP_CAP_MIB"] == "16"


def test_spool_may_be_a_claim_of_the_stateful_set(sidecar: Helm) -> None:
    (workload, *_) = sidecar.objects(**own(spool__claimTemplate__enabled=True))
    assert [x["metadata"]["name"] for x in workload["spec"]["volumeClaimTemplates"]] == [
        "data",
        "statewarden-spool",
    ]
    assert "volumes" not in pod_of(workload) or pod_of(workload)["volumes"] == []


def test_agent_is_another_user_of_the_applications_group(sidecar: Helm) -> None:
    _, agent = native(sidecar)
    context = agent["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (65532, 1000650000)
    _, agent = native(sidecar, **own(group=0, user=""))
    assert agent["securityContext"]["runAsGroup"] == 0
    assert "runAsUser" not in agent["securityContext"]


def test_container_is_restricted(sidecar: Helm) -> None:
    _, agent = native(sidecar)
    context = agent["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["readOnlyRootFilesystem"] is context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert set(agent["resources"]) == {"requests", "limits"}


def test_plain_variant_is_an_ordinary_container_that_lingers(sidecar: Helm) -> None:
    (workload, *_) = sidecar.objects(kube="1.25.0", **own(variant="plain"))
    pod = pod_of(workload)
    names = [x["name"] for x in pod["containers"]]
    assert names == ["orders", "statewarden"]
    assert "initContainers" not in pod
    agent = pod["containers"][1]
    assert "restartPolicy" not in agent
    assert "startupProbe" not in agent
    assert environment(agent)["STATEWARDEN_LINGER_SECONDS"] == "15"


def test_rest_of_the_workload_is_left_alone(sidecar: Helm) -> None:
    with_agent, without = sidecar.objects()[0], sidecar.objects(**own(enabled=False))[0]
    template = with_agent["spec"]["template"]
    assert template["metadata"]["labels"].pop("statewarden.io/agent") == "true"
    assert [x["name"] for x in template["spec"].pop("initContainers")] == ["statewarden"]
    assert [x["name"] for x in template["spec"].pop("volumes")] == ["statewarden-spool"]
    assert with_agent == without


def test_deployments_carry_it_too(sidecar: Helm) -> None:
    (workload, *_) = sidecar.objects(kind="Deployment")
    assert [x["name"] for x in pod_of(workload)["volumes"]] == ["data", "statewarden-spool"]


def test_every_setting_is_one_that_the_agent_takes(sidecar: Helm) -> None:
    facts = {
        "processing_guarantee": "exactly_once_v2",
        "num_standby_replicas": 1,
        "delete_retention_ms": 604_800_000,
    }
    sets = own(
        facts=facts,
        applications={"orders": {"kafka_streams_version": "4.1.2"}},
        objectStore__bucket="bucket",
        objectStore__endpoint="https://example.com",
        objectStore__region="eu",
        objectStore__credentialsSecret="s3",
        ship__caConfigMap="ca",
        kubernetesEvents__level="warning",
        agent__runbooks="https://example.org",
        agent__memoryMib=100,
    )
    _, agent = native(sidecar, **sets)
    chosen = [x.removeprefix("--set=") for x in agent["args"] if x.startswith("--set=")]
    config = load_config(environment=environment(agent), sets=chosen)
    given = {name for name, origin in config.origins.items() if origin == "environment"}
    assert {
        "state_dir",
        "spool",
        "ship_to",
        "ship.endpoint",
        "kubernetes.events",
    } <= given
    assert len(given) == len(environment(agent)), "a variable that no setting answers to"
    assert config.agent.memory_mib == 100
    assert config.applications.of("orders").values["kafka_streams_version"].value == "4.1.2"
    assert config.applications.of("other").values["num_standby_replicas"].value == "1"
    assert config.applications.of("other").values["delete_retention_ms"].value == "604800000"


def test_image_has_the_library_that_the_sink_needs(sidecar: Helm) -> None:
    for target, tag in (
        ("/events", "0.3.0"),
        ("s3://bucket/prefix", "0.3.0-sinks"),
        ("kafka://b:9092/t", "0.3.0-sinks"),
    ):
        _, agent = native(sidecar, **own(ship__to=target, ship__claim="c" if target.startswith("/") else ""))
        assert agent["image"] == f"statewarden-agent:{tag}"
    _, agent = native(sidecar, **own(ship__to="s3://bucket", image__tag="mine"))
    assert agent["image"] == "statewarden-agent:mine"


def test_files_are_mounted_where_the_settings_say(sidecar: Helm) -> None:
    sets = own(
        ship__to="kafka://broker:9092/events",
        ship__credentialsSecret="sasl",
        ship__kafkaConfigMap="options",
        kubernetesEvents__level="critical",
    )
    pod, agent = native(sidecar, **sets)
    volumes = {x["name"]: x for x in pod["volumes"]}
    mounts = {x["name"]: x for x in agent["volumeMounts"]}
    assert set(mounts) == {"data", *volumes}
    assert volumes["statewarden-credentials"]["secret"] == {"secretName": "sasl", "defaultMode": 0o444}
    assert all(mounts[name].get("readOnly") for name in volumes if name != "statewarden-spool")
    assert environment(agent)["STATEWARDEN_SHIP_KAFKA_CONFIG"].startswith(
        mounts["statewarden-kafka"]["mountPath"]
    )
    assert (
        environment(agent)["STATEWARDEN_KUBERNETES_SERVICE_ACCOUNT_DIR"]
        == (mounts["statewarden-token"]["mountPath"])
    )


@pytest.mark.timeout(600)
def test_rendered_sidecar_runs_and_answers_its_probes(
    sidecar: Helm, tmp_path: Path, eventually: Callable[..., object]
) -> None:
    """The real agent, with arguments and environment word for word; only mounts are moved to where a test may write."""
    port = free_port()
    _, agent = native(sidecar, **own(agent__port=port, facts={"processing_guarantee": "exactly_once_v2"}))
    given = environment(agent)
    for mount in agent["volumeMounts"]:
        place = tmp_path / mount["name"]
        place.mkdir()
        given = {name: value.replace(mount["mountPath"], str(place)) for name, value in given.items()}
    (tmp_path / "data" / "kafka-streams").mkdir()

    def passes(probe: str) -> bool:
        path = agent[probe]["httpGet"]["path"]
        url = f"http://127.0.0.1:{port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=agent[probe]["timeoutSeconds"]) as answer:
                return answer.status == 200
        except OSError:
            return False

    command = [str(ROOT / ".venv" / "bin" / "statewarden"), *agent["args"]]
    with running(command, tmp_path / "agent.log", port, POD_NAME="orders-0", **given):
        eventually(lambda: passes("startupProbe"))
        eventually(lambda: passes("livenessProbe"))


def test_shared_claim_is_mounted_where_segments_go(sidecar: Helm) -> None:
    pod, agent = native(sidecar, **own(ship__to="/events", ship__claim="statewarden-events"))
    assert {"name": "statewarden-ship", "mountPath": "/events"} in agent["volumeMounts"]
    assert pod["volumes"][-1]["persistentVolumeClaim"] == {"claimName": "statewarden-events"}


def test_events_need_one_verb_on_one_resource(sidecar: Helm) -> None:
    found = sidecar.objects(**own(kubernetesEvents__level="warning"))
    role, binding = kind_of(found, "Role"), kind_of(found, "RoleBinding")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "orders", "namespace": "audits"}]
