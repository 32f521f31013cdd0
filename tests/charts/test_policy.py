"""Every pod that charts and manifests make keeps to the restricted Pod Security Standard, and to a little more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.charts import APPLICATION, CONSUMER, ROOT, Helm, Manifest, objects, scenarios

pytestmark = [pytest.mark.charts, pytest.mark.timeout(360)]

REASONS = {
    ("kafka", "may write its root"): "the image of the throw-away broker writes its settings at start",
}
"""Name of an object, and what its pod does -> why it may."""
CONTAINER = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
SHARED = ("hostNetwork", "hostPID", "hostIPC")


def pods(found: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Give each pod, or template of one, and the name of its object."""
    for one in found:
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        inner = spec.get("template", {}).get("spec", spec)
        if "containers" in inner:
            yield one["metadata"]["name"], inner


def offences(pod: Manifest) -> Iterator[str]:
    """Say what a pod does that none should."""
    if pod.get("automountServiceAccountToken") is not False:
        yield "has a token"
    yield from (name for name in SHARED if pod.get(name))
    yield from ("mounts a path of its node" for volume in pod.get("volumes", ()) if "hostPath" in volume)
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        context = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
        yield from (name for name, wanted in CONTAINER.items() if context.get(name) != wanted)
        if context.get("readOnlyRootFilesystem") is not True:
            yield "may write its root"
        for kind, wanted in (("requests", {"cpu", "memory"}), ("limits", {"memory"})):
            yield from (f"no {kind} of {x}" for x in wanted - {*container.get("resources", {}).get(kind, ())})
        if not {":", "@"} & {*container["image"].rpartition("/")[2]} or container["image"].endswith(
            ":latest"
        ):
            yield "runs whatever is newest"


def test_no_pod_does_what_none_should(chart: Helm, sidecar: Helm) -> None:
    found = [x for helm, source in ((chart, APPLICATION), (sidecar, CONSUMER)) for path in scenarios(source)
             for x in helm.objects(path)]  # fmt: skip
    for path in (ROOT / "deploy" / "manifests").glob("*.yaml"):
        found += objects(path.read_text("utf-8"))
    said = {(name, what) for name, pod in pods(found) for what in offences(pod)}
    assert len({name for name, _ in pods(found)}) >= 6
    assert said == set(REASONS)
