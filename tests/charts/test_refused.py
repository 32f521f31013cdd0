"""Mistakes that are refused before anything is installed, each with a sentence that says what to change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.charts import Helm, scenarios
from tests.support.charts import sidecar_values as own

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

Cases = dict[str, tuple[dict[str, Any], str]]
"""What is wrong -> values, and what the refusal says."""

SCHEMA_OF_THE_AUDIT: Cases = {
    "unknown key": ({"rollup__shedule": "@daily"}, "shedule"),
    "unknown key at the top": ({"podmonitor": {"enabled": True}}, "podmonitor"),
    "text for a number": ({"rollup__backoffLimit": "three"}, "rollup.backoffLimit"),
    "severity that there is not": ({"rollup__failOn": "fatal"}, "rollup.failOn"),
    "schedule of four fields": ({"rollup__schedule": "*/5 * * *"}, "rollup.schedule"),
    "time zone in the schedule": ({"rollup__schedule": "CRON_TZ=UTC 0 0 * * *"}, "rollup.schedule"),
    "negative history": ({"rollup__failedJobsHistoryLimit": -1}, "rollup.failedJobsHistoryLimit"),
    "digest without algorithm": ({"image__digest": "0123456789ab"}, "image.digest"),
    "root as user": ({"rollup__user": 0}, "rollup.user"),
    "size without unit": ({"results__size": 20}, "results.size"),
    "input that nothing reads": ({"rollup__input": "ftp://host/events"}, "rollup.input"),
    "topic without a port": ({"rollup__input": "kafka://broker/topic"}, "rollup.input"),
    "bronze that nothing keeps": ({"rollup__bronze": "/tmp/bronze"}, "rollup.bronze"),
    "bucket with its scheme": ({"objectStore__bucket": "s3://streams-audit"}, "objectStore.bucket"),
    "prefix that ends in a slash": ({"objectStore__prefix": "streams/"}, "objectStore.prefix"),
    "endpoint with credentials": (
        {"objectStore__endpoint": "https://key:secret@example.com"},
        "objectStore.endpoint",
    ),
    "endpoint without its scheme": ({"objectStore__endpoint": "minio:9000"}, "objectStore.endpoint"),
    "override without a value": ({"rollup__settings": ["num_standby_replicas"]}, "rollup.settings"),
    "label that is no text": ({"podMonitor__labels": {"release": 1}}, "podMonitor.labels"),
    "port that there is not": ({"networkPolicy__egressPorts": [70000]}, "networkPolicy.egressPorts"),
    "subject without namespace": (
        {"kubernetesEvents__subjects": [{"serviceAccount": "orders"}]},
        "kubernetesEvents.subjects",
    ),
}

COMBINATIONS_OF_THE_AUDIT: Cases = {
    "image that cannot be pulled": (
        {"image__registry": ""},
        "image.registry is empty, and no public registry has statewarden-rollup",
    ),
    "no place of the events": ({"events__existingClaim": ""}, "set objectStore.bucket to the bucket"),
    "directory without a claim": (
        {"events__existingClaim": "", "rollup__input": "/segments"},
        "no claim is mounted there: set events.existingClaim",
    ),
    "bucket beside a claim": (
        {"objectStore__bucket": "streams-audit"},
        "streams-audit and the claim statewarden-events exclude each other",
    ),
    "input in a bucket beside a claim": ({"rollup__input": "s3a://bucket/prefix"}, "would not be used"),
    "bronze among the segments": (
        {"events__existingClaim": "", "rollup__input": "s3a://bucket/x", "rollup__bronze": "s3a://bucket/x"},
        "give bronze a separate place",
    ),
    "endpoint of no store": (
        {"objectStore__endpoint": "https://example.com"},
        "objectStore.endpoint is set, but nothing is in an object store",
    ),
    "credentials of no store": (
        {"objectStore__credentialsSecret": "s3"},
        "objectStore.credentialsSecret is set, but nothing is in an object store",
    ),
    "two claims for events": ({"events__create__enabled": True}, "exclude each other"),
    "two Pushgateways": (
        {"pushgateway__enabled": True, "rollup__pushgatewayUrl": "http://example.com:9091"},
        "exclude each other",
    ),
    "alert that there is not": (
        {"prometheusRule": {"enabled": True, "disabled": ["StatewardenTypo"]}},
        "there is no alert StatewardenTypo",
    ),
}


def _by_expression(name: str, *env: dict[str, Any], **more: Any) -> dict[str, Any]:
    mount = {"name": "data", "mountPath": "/d", "subPathExpr": f"$({name})"}
    return {"volumeMount": mount, "env": list(env), **more}


MISTAKES_OF_THE_SIDECAR: Cases = {
    "sub path by a variable that nobody has": (
        _by_expression("MY_POD"),
        "needs $(MY_POD), which env of that container does not have: give it there, or in extraEnv",
    ),
    "sub path by a variable from the cluster": (
        _by_expression("MY_POD", envFrom=[{"configMapRef": {"name": "orders"}}]),
        "which env of that container does not have (envFrom may, but its content is in the cluster): give it there",
    ),
    "sub path by a variable of such a variable": (
        _by_expression("DIR", {"name": "DIR", "value": "x-$(ZONE)"}),
        "needs $(ZONE)",
    ),
    "sub path by another variable of that name": (
        _by_expression("POD_NAME", {"name": "POD_NAME", "value": "a"}),
        "needs $(POD_NAME), which is metadata.name in the sidecar and something else there",
    ),
    "sub path by a name of the sidecar's": (
        _by_expression("STATEWARDEN_SPOOL", {"name": "STATEWARDEN_SPOOL", "value": "a"}),
        "a name that is the sidecar's",
    ),
    "sub path by the container's resources": (
        _by_expression(
            "CPUS", {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
        ),
        "whose resourceFieldRef is about that container only",
    ),
    "unknown key": (own(agent__rescanseconds=5), "rescanseconds"),
    "unknown fact": (own(facts={"processing.guarantee": "at_least_once"}), "processing.guarantee"),
    "cleanup delay with which nothing starts": (
        own(facts={"state_cleanup_delay_ms": -1}),
        "state_cleanup_delay_ms",
    ),
    "guarantee that there is not": (
        own(facts={"processing_guarantee": "exactly-once"}),
        "processing_guarantee",
    ),
    "release as a number": (own(facts={"kafka_streams_version": 4.10}), "kafka_streams_version"),
    "credentials in the address": (own(ship__to="s3://key:secret@bucket"), "ship.to"),
    "root as user": (own(user=0), "user"),
    "image that cannot be pulled": (
        own(image__preloaded=False),
        "image.registry is empty, and no public registry has statewarden-agent: the pod would stay in ImagePullBackOff",
    ),
    "image of somebody's own name": (
        own(image={"preloaded": False, "repository": "team/statewarden-agent"}),
        "no public registry has team/statewarden-agent",
    ),
    "no volume": (
        {"kind": "Deployment", **own(state__volume="")},
        "state.volume is empty; name the volume of Deployment orders",
    ),
    "another volume": (own(state__volume="date"), 'state.volume "date" is no volume'),
    "volume that the application does not mount": (
        {"volumeMount": {"name": "other", "mountPath": "/data"}},
        "no container of StatefulSet orders mounts volume",
    ),
    "group unknown": ({"podSecurityContext": {"fsGroup": 1000, "runAsGroup": None}}, "runAsGroup"),
    "no time to flush": ({"terminationGracePeriodSeconds": 5}, "leaves no room for the agent's 10 s"),
    "no time to linger": (
        {"terminationGracePeriodSeconds": 20, **own(variant="plain")},
        "leaves no room for the agent's 25 s",
    ),
    "spool larger than its volume": (own(spool__sizeLimit="64Mi"), "the kubelet would evict the pod"),
    "ceiling above the limit": (own(agent__memoryMib=128), "the kernel would kill the agent"),
    "bucket beside another place": (
        own(objectStore__bucket="streams-audit", ship__to="/events"),
        'objectStore.bucket "streams-audit" and ship.to "/events" exclude each other',
    ),
    "endpoint of no store": (
        own(objectStore__endpoint="https://example.com", ship__to="/events"),
        "segments do not go to an object store",
    ),
    "endpoint without encryption": (
        own(objectStore={"bucket": "streams-audit", "endpoint": "http://example.com:9000"}),
        "is not encrypted, and the agent would refuse it",
    ),
    "secret of Kafka for a store": (
        own(objectStore__bucket="streams-audit", ship__credentialsSecret="s3"),
        "an object store's is objectStore.credentialsSecret",
    ),
    "directory without a claim": (
        own(ship__to="/events"),
        'ship.to "/events" is a directory, and no claim is mounted',
    ),
    "claim without a directory": (own(ship={"to": "s3://bucket", "claim": "events"}), "absolute path"),
    "claim template of a Deployment": (
        {"kind": "Deployment", **own(spool__claimTemplate__enabled=True)},
        "spool.claimTemplate needs a StatefulSet",
    ),
    "no release in the tag": (
        own(agent__streamsVersionFrom__imageTag="-streams([0-9.]+)$"),
        "finds no release such as 3.9.1 in the tag of example/orders:1.0",
    ),
    "release in two places": (
        own(agent__streamsVersionFrom={"label": "example.com/streams", "imageTag": "(.+)"}),
        "agent.streamsVersionFrom.label and .imageTag exclude each other",
    ),
    "expression without a group": (
        own(agent__streamsVersionFrom__imageTag="streams"),
        "streamsVersionFrom.imageTag",
    ),
    "workload without pods": ({"pods": False}, "only StatefulSet, Deployment and DaemonSet"),
}


@pytest.mark.parametrize("name", [*SCHEMA_OF_THE_AUDIT, *COMBINATIONS_OF_THE_AUDIT])
def test_audit_refuses(chart: Helm, name: str) -> None:
    sets, told = {**SCHEMA_OF_THE_AUDIT, **COMBINATIONS_OF_THE_AUDIT}[name]
    (base,) = (x for x in scenarios(chart.chart) if x.name == "directory-values.yaml")
    assert told in chart.refusal(base, **sets)


@pytest.mark.parametrize("name", list(MISTAKES_OF_THE_SIDECAR))
def test_sidecar_refuses(sidecar: Helm, name: str) -> None:
    sets, told = MISTAKES_OF_THE_SIDECAR[name]
    assert told in sidecar.refusal(**sets)


def test_native_sidecar_is_refused_before_kubernetes_1_29(sidecar: Helm) -> None:
    assert "1.29 is the first" in sidecar.refusal(kube="1.28.0")


def test_audit_is_refused_before_kubernetes_1_29(chart: Helm) -> None:
    assert "kubeVersion" in chart.refusal(scenarios(chart.chart)[0], kube="1.28.0")
