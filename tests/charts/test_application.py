"""The application chart: what it makes of its values."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.charts import APPLICATION, LIBRARY, ROOT, Helm, Manifest, kind_of, objects, run, scenarios
from tools.alerts.model import DASHBOARDS, RUNBOOKS

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

DIRECTORY = APPLICATION / "ci" / "directory-values.yaml"


def pod_of(job: Manifest) -> Manifest:
    return job["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_the_audit_never_overlaps_and_has_limits(chart: Helm) -> None:
    job = kind_of(chart.objects(DIRECTORY), "CronJob")
    fixed = {
        "concurrencyPolicy": "Forbid", "timeZone": "Etc/UTC", "startingDeadlineSeconds": 600,
        "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 3,
    }  # fmt: skip
    assert fixed.items() <= job["spec"].items()
    made = job["spec"]["jobTemplate"]["spec"]
    assert made["activeDeadlineSeconds"] == 3600
    found = {"containerName": "audit", "operator": "In", "values": [1, 3]}
    assert {"action": "FailJob", "onExitCodes": found} in made["podFailurePolicy"]["rules"], (
        "never tried again"
    )


def test_the_audit_reads_segments_in_order_without_a_token(chart: Helm) -> None:
    pod = pod_of(kind_of(chart.objects(DIRECTORY), "CronJob"))
    assert [x["name"] for x in (*pod["initContainers"], *pod["containers"])] == ["ingest", "compact", "audit"]
    mount = {"name": "events", "mountPath": "/events", "readOnly": True}
    assert mount in pod["initContainers"][0]["volumeMounts"]
    claim = {"claimName": "statewarden-events", "readOnly": True}
    assert {"name": "events", "persistentVolumeClaim": claim} in pod["volumes"]
    assert pod["automountServiceAccountToken"] is False


def test_values_of_the_audit(chart: Helm) -> None:
    """A digest before a tag, the chart's own gateway, or no audit at all."""
    digest = f"sha256:{'0' * 64}"
    image = {"image__digest": digest, "image__registry": "registry.example"}
    (audit,) = pod_of(kind_of(chart.objects(DIRECTORY, **image), "CronJob"))["containers"]
    assert audit["image"] == f"registry.example/statewarden-rollup@{digest}"
    found = chart.objects(DIRECTORY, pushgateway__enabled=True)
    gateway, (audit,) = kind_of(found, "Service"), pod_of(kind_of(found, "CronJob"))["containers"]
    address = f"{gateway['metadata']['name']}:{gateway['spec']['ports'][0]['port']}"
    assert f"--pushgateway=http://{address}" in audit["args"]
    assert "CronJob" not in {x["kind"] for x in chart.objects(DIRECTORY, rollup__enabled=False)}


def test_nothing_is_made_that_was_not_asked_for(chart: Helm) -> None:
    """No object that needs a definition, and nothing reaches the rollup."""
    found = chart.objects(DIRECTORY)
    unasked = {"PodMonitor", "PrometheusRule", "ConfigMap", "Deployment", "Role"}
    assert unasked & {x["kind"] for x in found} == set()
    policy = kind_of(found, "NetworkPolicy", "rollup")["spec"]
    assert (policy["ingress"], len(policy["egress"])) == ([], 1)


def test_what_is_asked_for_is_found_by_those_who_look(chart: Helm) -> None:
    """Agents of all namespaces, what was pushed under its own labels, boards, and events of a sidecar alone."""
    subjects = [{"namespace": "shop", "serviceAccount": "orders"}]
    found = chart.objects(
        DIRECTORY, podMonitor__enabled=True, pushgateway__enabled=True, grafanaDashboards__enabled=True,
        kubernetesEvents__subjects=subjects,
    )  # fmt: skip
    agents = kind_of(found, "PodMonitor", "statewarden-agent")["spec"]
    assert agents["namespaceSelector"] == {"any": True}
    assert agents["podMetricsEndpoints"][0]["port"] == "statewarden"
    gateway = kind_of(found, "PodMonitor", "pushgateway")["spec"]
    assert gateway["podMetricsEndpoints"][0]["honorLabels"] is True
    boards = [x for x in found if x["kind"] == "ConfigMap"]
    assert [x["metadata"]["labels"]["grafana_dashboard"] for x in boards] == ["1"] * 5
    role = kind_of(found, "Role")
    assert role["metadata"]["namespace"] == "shop"
    assert role["rules"] == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]


def alerts(rule: Manifest) -> dict[str, Manifest]:
    return {x["alert"]: x for group in rule["spec"]["groups"] for x in group["rules"] if "alert" in x}


def test_all_alerts_are_there_word_for_word(chart: Helm) -> None:
    given = {"enabled": True, "runbooks": RUNBOOKS, "dashboards": DASHBOARDS}
    rendered = chart.objects(DIRECTORY, pushgateway={"enabled": True}, prometheusRule=given)
    rule = kind_of(rendered, "PrometheusRule")
    written = objects(
        "\n---\n".join(path.read_text("utf-8") for path in (ROOT / "deploy" / "alerts").glob("*.rules.yaml"))
    )
    wanted = {group["name"]: group for document in written for group in document["groups"]}
    assert {group["name"]: group for group in rule["spec"]["groups"]} == wanted
    # `kubectl apply` and Argo CD keep all of it in one annotation, and the API server takes 262,144 bytes of those
    assert len(json.dumps(rule)) < 150_000


def test_without_a_pushgateway_no_alert_waits_for_the_rollup(chart: Helm) -> None:
    given = {"enabled": True, "runbooks": RUNBOOKS, "dashboards": DASHBOARDS}
    rule = kind_of(chart.objects(DIRECTORY, prometheusRule=given), "PrometheusRule")
    assert "statewarden-rollup-absent" not in {group["name"] for group in rule["spec"]["groups"]}


def test_alerts_can_be_left_out_labelled_and_linked(chart: Helm) -> None:
    given = {
        "enabled": True,
        "disabled": ["StatewardenUndecided"],
        "alertLabels": {"team": "streams"},
        "runbooks": "https://example.org/statewarden",
        "dashboards": "https://example.org/grafana/d",
    }
    everything = alerts(kind_of(chart.objects(DIRECTORY, prometheusRule__enabled=True), "PrometheusRule"))
    rule = kind_of(chart.objects(DIRECTORY, prometheusRule=given), "PrometheusRule")
    found = alerts(rule)
    assert not any("dashboard_url" in x["annotations"] for x in everything.values())
    served = 'query }}http://{{ . | first | label "instance" }}/runbooks/detectors/torn-store{{ end }}'
    assert everything["StatewardenTornStore"]["annotations"]["runbook_url"].endswith(served)
    any_agent = (
        '{{ with query `statewarden_agent_build_info` }}http://{{ . | first | label "instance" }}/runbooks/'
    )
    split = everything["StatewardenFleetSplitOwner"]["annotations"]["runbook_url"]
    assert split == any_agent + "rules/split-owner{{ end }}"
    assert all("/runbooks/" in x["annotations"]["runbook_url"] for x in everything.values())
    assert set(everything) - set(found) == {"StatewardenUndecided"}
    assert all(x["labels"]["team"] == "streams" for x in found.values())
    assert all(x["labels"]["severity"] == everything[name]["labels"]["severity"] for name, x in found.items())
    assert "example.com" not in json.dumps(rule)
    assert any(
        x["annotations"]["runbook_url"].startswith("https://example.org/statewarden/") for x in found.values()
    )


def test_boards_arrive_unchanged(chart: Helm) -> None:
    found = [x for x in chart.objects(DIRECTORY, grafanaDashboards__enabled=True) if x["kind"] == "ConfigMap"]
    boards = {
        path.name: json.loads(path.read_text("utf-8"))
        for path in (ROOT / "deploy" / "dashboards").glob("*.json")
    }
    made = {name: json.loads(text) for x in found for name, text in x["data"].items()}
    assert made == boards


def test_nothing_but_copies_is_beside_the_templates() -> None:
    copied = {path.name for path in (APPLICATION / "files").rglob("*.*")} - {"check.py"}
    sources = {path.name for path in (ROOT / "deploy" / "alerts").glob("*.rules.yaml")}
    sources |= {path.name for path in (ROOT / "deploy" / "dashboards").glob("*.json")}
    assert copied == sources


def test_every_value_has_a_comment() -> None:
    """`helm show values` explains each: its line is below a comment, or it is in a map that has one."""
    for place in (APPLICATION, LIBRARY):
        text = (place / "values.yaml").read_text("utf-8")
        (values,) = objects(text)
        assert leaves(values) - commented(text) == set()


def commented(text: str) -> set[str]:
    """List dotted names of the values whose line follows a comment."""
    found, outer, before = set(), list[str](), ""
    for line in text.splitlines():
        if key := re.match(r"( *)([\w.-]+):", line):
            outer = [*outer[: len(key[1]) // 2], key[2]]
            found |= {".".join(outer)} if before.lstrip().startswith("#") else set()
        before = line
    return found


def leaves(values: Manifest, place: str = "") -> set[str]:
    """List dotted names of all values that are no map, or an empty one, or free labels."""
    found = set()
    for key, value in values.items():
        is_inner = (
            isinstance(value, dict) and value and key not in ("labels", "annotations", "requests", "limits")
        )
        found |= leaves(value, f"{place}{key}.") if is_inner else {f"{place}{key}"}
    return found


def test_versions_agree(sidecar: Helm) -> None:
    from agent import __version__

    for place in (APPLICATION, LIBRARY):
        (about,) = objects((place / "Chart.yaml").read_text("utf-8"))
        assert about["appVersion"] == __version__
    (pod, *_) = (x["spec"]["template"]["spec"] for x in sidecar.objects() if x["kind"] == "StatefulSet")
    assert pod["initContainers"][0]["image"] == f"statewarden-agent:{__version__}"


def test_selectors_of_monitor_policy_and_service_meet_their_pods(chart: Helm) -> None:
    (everything,) = (x for x in scenarios(APPLICATION) if x.name.startswith("everything"))
    found = chart.objects(everything)
    gateway = kind_of(found, "Deployment")["spec"]["template"]["metadata"]["labels"]
    rollup = kind_of(found, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    for selector, labels in (
        (kind_of(found, "Service")["spec"]["selector"], gateway),
        (kind_of(found, "PodMonitor", "pushgateway")["spec"]["selector"]["matchLabels"], gateway),
        (kind_of(found, "NetworkPolicy", "pushgateway")["spec"]["podSelector"]["matchLabels"], gateway),
        (kind_of(found, "NetworkPolicy", "rollup")["spec"]["podSelector"]["matchLabels"], rollup),
    ):
        assert selector.items() <= labels.items()
    assert not kind_of(found, "Service")["spec"]["selector"].items() <= rollup.items()


def test_rollup_takes_the_arguments_that_it_is_given(chart: Helm) -> None:
    """Every command line is parsed by the program itself, which then refuses the input that is not there."""
    (everything,) = (x for x in scenarios(APPLICATION) if x.name.startswith("everything"))
    pod = pod_of(kind_of(chart.objects(everything, rollup__ingestArgs=[]), "CronJob"))
    for container in (*pod["initContainers"], *pod["containers"]):
        done = run(ROOT / ".venv" / "bin" / "statewarden-rollup", *container["args"])
        assert done.returncode == 2
        assert "usage:" not in done.stderr, done.stderr


def test_script_of_the_test_hook(tmp_path: Path) -> None:
    script = APPLICATION / "files" / "check.py"
    python = ROOT / ".venv" / "bin" / "python"
    events, results = tmp_path / "events", tmp_path / "results"
    done = run(python, script, "--results", results, "--events", events)
    assert done.returncode == 1
    assert done.stdout.count("FAILED") == 2
    for folder in (events, results / "audit"):
        folder.mkdir(parents=True)
    (results / "audit" / "_SUCCESS.json").write_text('{"watermark": "2026-01-02T03:04:05Z"}')
    done = run(python, script, "--results", results, "--events", events)
    assert done.returncode == 0, done.stdout
    assert "looked up to 2026-01-02T03:04:05Z" in done.stdout
    done = run(python, script, "--results", results, "--pushgateway", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "does not answer" in done.stdout
