"""Helm and its neighbours for tests: where programs are, rendered charts as objects, and what is wrong with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHARTS = ROOT / "helm"
APPLICATION, LIBRARY = CHARTS / "statewarden", CHARTS / "statewarden-sidecar"
CONSUMER = ROOT / "tests" / "charts" / "consumer"
VENV = ROOT / ".venv" / "charts"
CACHE = Path(os.environ.get("STATEWARDEN_CACHE", Path.home() / ".cache" / "statewarden")) / "bin"
NEWEST = "1.37.0"
VERSIONS = tuple(f"1.{minor}.0" for minor in range(29, 38))
"""Kubernetes releases that the charts promise: native sidecars began with 1.29; 1.37 has the newest schemas."""

TIMEOUT_S = 300
Manifest = dict[str, Any]


def program(name: str) -> Path:
    """Find a program that `make setup-charts` or `tests/cluster/build.sh` put down; skip the test without it."""
    for place in (VENV / "bin" / name, CACHE / name):
        if place.is_file():
            return place
    pytest.skip(f"{name} is not here: run `make setup-charts`, or tests/cluster/build.sh {name}")


def run(
    *command: object, stdin: str | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and keep what it says."""
    return subprocess.run(
        [str(part) for part in command],
        input=stdin,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def objects(text: str) -> list[Manifest]:
    """Parse YAML documents; by the charts' own interpreter, because the other one has no YAML."""
    code = (
        "import json, sys, yaml; L = getattr(yaml, 'CSafeLoader', yaml.SafeLoader); "
        "json.dump([x for x in yaml.load_all(sys.stdin, L) if x], sys.stdout, default=str)"
    )
    done = run(program("python"), "-c", code, stdin=text)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Helm:
    """One release of Helm and one chart; `always` are values under those of a call."""

    binary: Path
    chart: Path
    always: Mapping[str, Any] = field(default_factory=dict)

    def template(
        self, *values: Path, kube: str = NEWEST, release: str = "audit", **sets: Any
    ) -> subprocess.CompletedProcess[str]:
        """Render; `sets` are values by their dotted path, dots written as double underscores."""
        named = {**self.always, **sets}
        given = [f"--set-json={key.replace('__', '.')}={json.dumps(value)}" for key, value in named.items()]
        return self._run("template", release, *values, given=[*given, "--kube-version", kube])

    def lint(self, *values: Path) -> subprocess.CompletedProcess[str]:
        """Run the linter, warnings counting as errors."""
        command, *rest = "lint", "--strict"
        return run(self.binary, command, self.chart, *rest, *(f"--values={path}" for path in values))

    def text(self, *values: Path, kube: str = NEWEST, **sets: Any) -> str:
        """Render and insist that it works."""
        done = self.template(*values, kube=kube, **sets)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(self, *values: Path, kube: str = NEWEST, **sets: Any) -> list[Manifest]:
        return objects(self.text(*values, kube=kube, **sets))

    def refusal(self, *values: Path, kube: str = NEWEST, **sets: Any) -> str:
        """Render and insist that it is refused; gives what is said."""
        done = self.template(*values, kube=kube, **sets)
        assert done.returncode != 0, done.stdout[-2000:]
        return done.stderr

    def on(self, cluster: Path, command: str, *rest: object) -> subprocess.CompletedProcess[str]:
        """Run a command against a cluster, which its kubeconfig names."""
        return run(self.binary, "--kubeconfig", cluster, command, *rest)

    def _run(
        self, command: str, release: str, *values: Path, given: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        files = [f"--values={path}" for path in values]
        return run(self.binary, command, release, self.chart, "--namespace=audits", *files, *given)


def consumer(directory: Path) -> Path:
    """Copy the consuming chart with the library in it, as `helm dependency update` would leave it."""
    copy = directory / "consumer"
    shutil.copytree(CONSUMER, copy)
    shutil.copytree(LIBRARY, copy / "charts" / LIBRARY.name)
    return copy


def sidecar_values(**sets: Any) -> dict[str, Any]:
    """Name values of the sidecar as the consuming chart knows them."""
    return {f"{LIBRARY.name}__{key}": value for key, value in sets.items()}


def scenarios(chart: Path) -> list[Path]:
    """List the values files of a chart's scenarios."""
    found = sorted((chart / "ci").glob("*-values.yaml"))
    assert found, f"no scenarios in {chart / 'ci'}"
    return found


def kind_of(found: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    """Give the one object of a kind whose name ends so."""
    (one,) = (x for x in found if x["kind"] == kind and x["metadata"]["name"].endswith(name))
    return one


def sidecar_of(workload: Manifest) -> Manifest:
    """Give the container that runs beside the application's."""
    found: Manifest = workload["spec"]["template"]["spec"]["initContainers"][0]
    return found


def essence(container: Manifest) -> Manifest:
    """Give a sidecar without what a server adds, and without what differs from application to application."""
    left: Manifest = json.loads(json.dumps(container))
    for key in ("terminationMessagePath", "args"):
        left.pop(key, None)
    for probe in ("startupProbe", "livenessProbe"):
        left[probe].pop("successThreshold", None)
        left[probe]["httpGet"].pop("scheme", None)
    for variable in left["env"]:
        if "valueFrom" in variable:
            variable["valueFrom"]["fieldRef"].pop("apiVersion", None)
    known = (x for x in left["env"] if x["name"] != "STATEWARDEN_STATE_DIR")
    left["env"] = sorted(known, key=lambda x: x["name"])
    left["securityContext"].pop("runAsGroup", None)
    left["volumeMounts"] = [x for x in left["volumeMounts"] if x["name"] == "statewarden-spool"]
    return left


_MISTAKES = """
import json, pathlib, sys, jsonschema, kubernetes_validate, yaml

class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        mistakes.extend({"kind": "", "msg": f"{key} twice"} for key in {*keys} if keys.count(key) > 1)
        return super().construct_mapping(node, deep)

version, crds, *skipped = sys.argv[1:]
mistakes = []
for one in filter(None, yaml.load_all(sys.stdin, Loader)):
    group, _, release = one["apiVersion"].rpartition("/")
    own = pathlib.Path(crds) / f"{one['kind'].lower()}-{group.partition('.')[0]}-{release}.json"
    try:
        if crds and own.is_file():
            jsonschema.Draft202012Validator(json.loads(own.read_text())).validate(one)  # its patterns are Go's
        elif one["kind"] not in skipped:
            kubernetes_validate.validate(one, version, strict=True)
    except (kubernetes_validate.ValidationError, jsonschema.ValidationError) as error:
        mistakes.append({"kind": one["kind"], "msg": f"{list(error.path)}: {error.message}"})
    except kubernetes_validate.SchemaNotFoundError:
        mistakes.append({"kind": one["kind"], "msg": "no schema"})
json.dump(mistakes, sys.stdout)
"""


def mistakes(
    text: str, version: str, *, crds: Path | None = None, skip: Sequence[str] = ()
) -> list[Manifest]:
    """Validate manifests by a Kubernetes release's strict schemas: `kind` of each mistake, and `msg` with its place.

    `crds`: folder of schemas of custom resources, `KIND-GROUP-VERSION.json`. `skip`: kinds that have no schema.
    """
    done = run(program("python"), "-c", _MISTAKES, version, crds or "", *skip, stdin=text)
    assert done.returncode == 0, done.stderr
    found: list[Manifest] = json.loads(done.stdout)
    return found
