"""A policy scan of everything that the charts and manifests make: nothing fails but what is listed with a reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.charts import APPLICATION, CONSUMER, ROOT, Helm, program, run, scenarios

pytestmark = [pytest.mark.charts, pytest.mark.timeout(360)]

REASONS = {
    ("CKV_K8S_43", ".*"): "digests are values (`image.digest`): the project cannot know yours",
    ("CKV_K8S_15", ".*"): "a tag is pulled when it is absent; with a digest nothing else makes sense",
    ("CKV_K8S_35", "audit-statewarden-(rollup|test)"): "Spark's s3a takes credentials from the environment",
    ("CKV_K8S_8", "audit-statewarden-test"): "the pod of `helm test` ends by itself",
    ("CKV_K8S_9", "audit-statewarden-test"): "the same",
    (
        "CKV_K8S_9",
        "orders",
    ): "plain variant: an auditor never takes traffic away, so it has no readiness probe",
    ("CKV_K8S_8", "word-count"): "Kafka's demo answers no probe",
    ("CKV_K8S_9", "word-count"): "the same",
    ("CKV_K8S_22", "kafka"): "the image of the throw-away broker writes its settings at start",
    ("CKV_K8S_40", "kafka"): "the same image, whose files belong to user 1000",
}
"""Check and name of the object -> why it may fail."""


def test_nothing_fails_without_a_reason(chart: Helm, sidecar: Helm, tmp_path: Path) -> None:
    for helm, source in ((chart, APPLICATION), (sidecar, CONSUMER)):
        for path in scenarios(source):
            (tmp_path / f"{source.name}-{path.name}").write_text(helm.text(path))
    for path in (ROOT / "deploy" / "manifests").glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text("utf-8"))
    done = run(
        program("checkov"), "--directory", tmp_path, "--framework", "kubernetes", "--compact", "--quiet",
        "--skip-download", "--output", "json",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["summary"]["parsing_errors"] == 0
    assert found["summary"]["passed"] > 1000
    used, unexplained = set(), set()
    for failed in found["results"]["failed_checks"]:
        check, resource = failed["check_id"], failed["resource"]
        reasons = {key for key in REASONS if key[0] == check and re.search(rf"\.{key[1]}(\.|$)", resource)}
        used |= reasons
        if not reasons:
            unexplained.add((check, failed["check_name"], failed["file_path"], resource))
    assert unexplained == set()
    assert used == set(REASONS), "a reason that nothing needs"
