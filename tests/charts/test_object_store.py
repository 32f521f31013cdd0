"""The object store: the same few values in both charts, and what each makes of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.agents import free_port
from spark_rollup.arguments import parser
from tests.support.answering import Answer, Request, answering
from tests.support.charts import APPLICATION, LIBRARY, ROOT, Helm, Manifest, kind_of, objects, run, scenarios
from tests.support.charts import sidecar_values as own

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def chart(chart: Helm) -> Helm:
    """Give the application chart with an image that can be pulled: the rest of the values is of the store."""
    return replace(chart, always={"image__preloaded": True})


OWN_STORE = {
    "bucket": "streams-audit",
    "prefix": "prod/streams",
    "endpoint": "https://example.com:9000",
    "region": "eu",
    "credentialsSecret": "statewarden-s3",
}


def commands(found: list[Manifest]) -> dict[str, list[str]]:
    """Give each container's arguments."""
    pod = pod_of(found)
    return {x["name"]: x["args"] for x in (*pod["initContainers"], *pod["containers"])}


def pod_of(found: list[Manifest]) -> Manifest:
    return kind_of(found, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def egress(found: list[Manifest]) -> tuple[set[int], set[str]]:
    """Give the TCP ports that are open to everywhere, and the addresses that are open beside."""
    ports: set[int] = set()
    addresses: set[str] = set()
    for rule in kind_of(found, "NetworkPolicy", "rollup")["spec"]["egress"]:
        to = rule.get("to", [])
        addresses |= {x["ipBlock"]["cidr"] for x in to if "ipBlock" in x}
        ports |= {x["port"] for x in rule["ports"] if not to and x["protocol"] == "TCP"}
    return ports - {53}, addresses


@pytest.mark.parametrize("path", scenarios(APPLICATION), ids=lambda x: x.stem)
def test_rollup_knows_every_argument(chart: Helm, path: Path) -> None:
    found = chart.objects(path, rollup__ingestArgs=[])
    if any(x["kind"] == "CronJob" for x in found):
        for name, arguments in commands(found).items():
            assert parser().parse_args(arguments).command == name


def test_one_value_is_enough(chart: Helm) -> None:
    found = chart.objects(objectStore__bucket="streams-audit")
    events, bronze = "s3a://streams-audit/statewarden/events", "s3a://streams-audit/statewarden/bronze"
    assert commands(found) == {
        "ingest": ["ingest", f"--input={events}", f"--bronze={bronze}"],
        "compact": ["compact", "--snapshots", f"--bronze={bronze}"],
        "audit": ["audit", f"--input={bronze}", "--output=/results/audit", "--fail-on=critical"],
    }
    (claim,) = (x for x in found if x["kind"] == "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"], "findings and report only"
    assert [x["name"] for x in pod_of(found)["volumes"]] == ["results", "scratch"]


def test_both_charts_know_the_block_by_the_same_names(chart: Helm, sidecar: Helm) -> None:
    """One block, word for word in both values files: the agents write where the rollup reads."""
    (pod, *_) = (x for x in sidecar.objects(**own(objectStore=OWN_STORE)) if x["kind"] == "StatefulSet")
    (agent, *_) = pod["spec"]["template"]["spec"]["initContainers"]
    given = {x["name"].removeprefix("STATEWARDEN_SHIP_"): x["value"] for x in agent["env"] if "value" in x}
    assert agent["image"].endswith("-sinks")
    told = commands(chart.objects(objectStore=OWN_STORE))
    assert f"--input={given['TO'].replace('s3://', 's3a://')}" in told["ingest"]
    for arguments in told.values():
        assert {f"--endpoint={given['ENDPOINT']}", f"--region={given['REGION']}"} <= set(arguments)
    fields = [
        objects((x / "values.yaml").read_text("utf-8"))[0]["objectStore"] for x in (APPLICATION, LIBRARY)
    ]
    assert fields[0] == fields[1]
    schemas = [json.loads((x / "values.schema.json").read_text("utf-8")) for x in (APPLICATION, LIBRARY)]
    assert schemas[0]["properties"]["objectStore"] == schemas[1]["properties"]["objectStore"]


def test_one_secret_serves_both_charts(chart: Helm, sidecar: Helm) -> None:
    """The agent reads its keys as files, Hadoop as the environment that AWS's clients know."""
    (pod, *_) = (x for x in sidecar.objects(**own(objectStore=OWN_STORE)) if x["kind"] == "StatefulSet")
    volumes = {x["name"]: x for x in pod["spec"]["template"]["spec"]["volumes"]}
    assert volumes["statewarden-credentials"]["secret"]["secretName"] == "statewarden-s3"
    found = pod_of(chart.objects(objectStore=OWN_STORE, rollup__extraEnv=[{"name": "TZ", "value": "UTC"}]))
    for container in (*found["initContainers"], *found["containers"]):
        *secret, zone = container["env"]
        assert zone == {"name": "TZ", "value": "UTC"}
        keys = {x["name"]: x["valueFrom"]["secretKeyRef"] for x in secret}
        assert {name: x["key"] for name, x in keys.items()} == {
            "AWS_ACCESS_KEY_ID": "access_key_id",
            "AWS_SECRET_ACCESS_KEY": "secret_access_key",
            "AWS_SESSION_TOKEN": "session_token",
        }
        assert {x["name"] for x in keys.values()} == {"statewarden-s3"}
        assert [name for name, x in keys.items() if x.get("optional")] == ["AWS_SESSION_TOKEN"]


def test_empty_prefix_is_the_bucket_itself(chart: Helm, sidecar: Helm) -> None:
    store = {"bucket": "streams-audit", "prefix": ""}
    assert "--input=s3a://streams-audit/events" in commands(chart.objects(objectStore=store))["ingest"]
    assert "value: s3://streams-audit/events" in sidecar.text(**own(objectStore=store))


Places = tuple[dict[str, Any], str, str]

OVERRIDES: dict[str, Places] = {
    "bronze in another bucket": (
        {"objectStore__bucket": "streams-audit", "rollup__bronze": "s3a://other/bronze"},
        "s3a://streams-audit/statewarden/events",
        "s3a://other/bronze",
    ),
    "bronze on the claim": (
        {"objectStore__bucket": "streams-audit", "rollup__bronze": "/results/bronze"},
        "s3a://streams-audit/statewarden/events",
        "/results/bronze",
    ),
    "Kafka, bronze in the store": (
        {"objectStore__bucket": "streams-audit", "rollup__input": "kafka://b:9094/events"},
        "kafka://b:9094/events",
        "s3a://streams-audit/statewarden/bronze",
    ),
    "a claim, bronze in the store": (
        {"events__existingClaim": "segments", "rollup__bronze": "s3a://other/bronze"},
        "/events",
        "s3a://other/bronze",
    ),
    "places as the agents write them": (
        {"rollup__input": "s3://streams-audit/events", "rollup__bronze": "s3://other/bronze"},
        "s3a://streams-audit/events",
        "s3a://other/bronze",
    ),
    "a claim": ({"events__existingClaim": "segments"}, "/events", "/results/bronze"),
    "a claim, mounted elsewhere": (
        {"events__existingClaim": "segments", "rollup__input": "/segments"},
        "/segments",
        "/results/bronze",
    ),
}


@pytest.mark.parametrize("name", list(OVERRIDES))
def test_either_place_can_be_set(chart: Helm, name: str) -> None:
    values, events, bronze = OVERRIDES[name]
    found = chart.objects(**values)
    told = commands(found)
    assert told["ingest"][1:3] == [f"--input={events}", f"--bronze={bronze}"]
    assert told["compact"][2] == f"--bronze={bronze}"
    assert told["audit"][1] == f"--input={bronze}"
    mounts = [x["mountPath"] for x in pod_of(found)["containers"][0]["volumeMounts"] if x["name"] == "events"]
    assert mounts == ([events] if events.startswith("/") else [])


ROLE = {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/statewarden"}
CLOUD = {"169.254.170.23/32", "fd00:ec2::23/128", "169.254.169.254/32"}
S3 = {"objectStore__bucket": "streams-audit"}

POLICIES: dict[str, tuple[dict[str, Any], set[int], set[str]]] = {
    "S3, credentials from the cloud": (S3, {443}, CLOUD),
    "S3, a token that is traded": ({**S3, "serviceAccount__annotations": ROLE}, {443}, set()),
    "a store on another port, a token that is traded": (
        {"objectStore": {**OWN_STORE, "credentialsSecret": ""}, "serviceAccount__annotations": ROLE},
        {443, 9000},
        set(),
    ),
    "S3, a Secret": ({**S3, "objectStore__credentialsSecret": "s3"}, {443}, set()),
    "S3, a Secret as environment": ({**S3, "rollup__environmentSecret": "s3"}, {443}, set()),
    "a store of one's own": ({"objectStore": OWN_STORE}, {9000}, set()),
    "an unencrypted one": ({"objectStore": {**OWN_STORE, "endpoint": "http://example.com"}}, {80}, set()),
    "an IPv6 address": ({"objectStore": {**OWN_STORE, "endpoint": "https://" + "[fd00::1]"}}, {443}, set()),
    "Kafka": (
        {"rollup__input": "kafka://b1:9092,b2:9093/events", "networkPolicy__egressPorts": [9092, 88]},
        {88, 9092, 9093},
        set(),
    ),
    "a Pushgateway elsewhere": (
        {"events__existingClaim": "segments", "rollup__pushgatewayUrl": "http://example.com:9091"},
        {9091},
        set(),
    ),
    "a claim": ({"events__existingClaim": "segments"}, set(), set()),
}


@pytest.mark.parametrize("name", list(POLICIES))
def test_policy_opens_what_the_values_need(chart: Helm, name: str) -> None:
    values, ports, addresses = POLICIES[name]
    assert egress(chart.objects(**values)) == (ports, addresses)


def pages_examples() -> list[tuple[str, Manifest]]:
    """Read the values of `docs/kubernetes.md`: whose they are, and the values."""
    page = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    found = re.findall(
        r"^```yaml\n# (the application|the audit|both)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    return [(owner, objects(text)[0]) for owner, text in found]


def leaves(values: Any) -> int:
    return sum(map(leaves, values.values())) if isinstance(values, dict) else 1


def test_examples_of_the_page_work_and_the_first_is_short(chart: Helm, sidecar: Helm) -> None:
    """Each is installed as it is written there; agents write where the rollup reads."""
    examples = pages_examples()
    assert [owner for owner, _ in examples] == [
        "the application", "the audit", "both", "the application", "the audit",
    ]  # fmt: skip
    assert leaves(examples[0][1]) + leaves(examples[1][1]) <= 8, "with the role of the application"
    store = examples[2][1]["objectStore"]
    pairs = [
        (examples[0][1]["statewarden-sidecar"], examples[1][1]),
        (examples[0][1]["statewarden-sidecar"] | {"objectStore": store}, {"objectStore": store}),
        (examples[3][1]["statewarden-sidecar"], examples[4][1]),
    ]
    for application, audit in pairs:
        told = commands(chart.objects(**audit))
        workload = json.dumps(kind_of(sidecar.objects(**own(**application)), "StatefulSet"))
        place = told["ingest"][1].removeprefix("--input=").replace("s3a://", "s3://")
        assert json.dumps({"name": "STATEWARDEN_SHIP_TO", "value": place}) in workload


def test_first_hour_needs_two_pages() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    steps = page[page.index("## First hour") : page.index("## One bucket for both")]
    assert set(re.findall(r"\]\(([\w/.-]+\.md)", steps)) == {"images.md"}


def test_hook_asks_the_store(chart: Helm, tmp_path: Path) -> None:
    """The script of `helm test` with the arguments of the chart; only the endpoint and the claim are moved."""
    hook = kind_of(chart.objects(objectStore=OWN_STORE), "Pod")["spec"]["containers"][0]
    assert hook["args"][1:] == [
        "--results=/results", "--bucket=streams-audit", f"--endpoint={OWN_STORE['endpoint']}", "--region=eu",
    ]  # fmt: skip
    asked: list[str] = []
    for status, code, told in ((403, 0, "answers (403)"), (404, 1, "there is no such bucket")):

        def store(request: Request, status: int = status) -> Answer:
            asked.append(request.path)
            return status, {}, b""

        with answering(store) as endpoint:
            moved = [f"--results={tmp_path}", "--bucket=streams-audit", f"--endpoint={endpoint}"]
            done = run(ROOT / ".venv" / "bin" / "python", "-c", hook["args"][0], *moved)
        assert done.returncode == code, done.stdout
        assert told in done.stdout
    assert asked == ["/streams-audit"] * 2
    gone = [f"--results={tmp_path}", "--bucket=streams-audit", f"--endpoint=http://127.0.0.1:{free_port()}"]
    done = run(ROOT / ".venv" / "bin" / "python", "-c", hook["args"][0], *gone)
    assert done.returncode == 1
    assert "does a network policy forbid it?" in done.stdout
