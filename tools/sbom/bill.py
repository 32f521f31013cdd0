"""One bill of materials: what `cyclonedx-py` reads from a lock, with licences, jars and Debian packages added.

Needs the dependency group `supply`. The same checkout gives the same bytes: there is no serial number, and the time is
an argument.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tools.sbom.debian import Package, base_image, image_markers, installed_packages, recorded_packages
from tools.sbom.jars import Jar
from tools.sbom.licences import Licences
from tools.sbom.locks import FOLDER, Locked, read_lock


@dataclass(frozen=True, slots=True)
class Subject:
    """What a bill is about: its name, its lock, and the recipe if it is an image."""

    name: str
    lock: str
    recipe: str = ""


SUBJECTS = (
    Subject("statewarden", "agent"),
    Subject("statewarden-sinks", "agent-sinks"),
    Subject("statewarden-verify", "agent-verify"),
    Subject("statewarden-rollup", "rollup"),
    Subject("image-agent", "agent", "agent"),
    Subject("image-agent-sinks", "agent-sinks", "agent"),
    Subject("image-agent-verify", "agent-verify", "agent"),
    Subject("image-rollup", "rollup", "rollup"),
)


class BillError(Exception):
    """A bill could not be made, or does not fit the schema."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What all bills of a checkout share.

    Attributes:
        root: The checkout.
        licences: The table of licences.
        jars: Those of the rollup's image.
        built: Directory with `<image>.dpkg-status` of images that were built, where there are any.
        at_s: The time that the bills bear, seconds since the epoch.
    """

    root: Path
    licences: Licences
    jars: tuple[Jar, ...]
    built: Path
    at_s: int


def render(subject: Subject, sources: Sources) -> str:
    """Render one bill.

    Raises:
        BillError: `cyclonedx-py` failed, a licence is not allowed, or the bill does not fit the schema.
    """
    bom: Any = Bom.from_json(json.loads(_bill_of_lock(sources.root, subject.lock, sources.at_s)))
    root = bom.metadata.component
    pinned = {one.name: one for one in read_lock(sources.root, subject.lock)}
    parts = [_licensed(one, sources) for one in bom.components if _is_in(pinned[one.name], subject, sources)]
    if subject.recipe:
        root = _image(subject, root)
        parts += _parts_of_image(subject, sources)
    bom.metadata.component = root
    bom.components = parts
    bom.dependencies.clear()
    bom.register_dependency(root, parts)
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["serialNumber"]
    if subject.recipe:
        # what the base holds beside Debian's packages, Python itself among it, is in no list
        document["compositions"] = [{"aggregate": "incomplete", "assemblies": [root.bom_ref.value]}]
    rendered = json.dumps(document, indent=1, sort_keys=True) + "\n"
    if (error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(rendered)) is not None:
        raise BillError(f"{subject.name} does not fit CycloneDX 1.6: {error}")
    return rendered


@cache
def _bill_of_lock(root: Path, lock: str, at_s: int) -> str:
    # not validated yet: the finished bill is
    command = [
        sys.executable, "-m", "cyclonedx_py", "requirements", str(root / FOLDER / f"{lock}.txt"), "--no-validate",
        "--pyproject", str(root / "pyproject.toml"), "--spec-version", "1.6", "--output-reproducible",
    ]  # fmt: skip
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(at_s), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BillError(f"{lock}: cyclonedx-py failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _is_in(one: Locked, subject: Subject, sources: Sources) -> bool:
    """Leave out what an image's platform does not need; the bill of a wheel lists what any platform may get."""
    return not subject.recipe or one.is_for(image_markers(_recipe(subject, sources)))


def _recipe(subject: Subject, sources: Sources) -> str:
    return (sources.root / "deploy" / "images" / f"{subject.recipe}.Containerfile").read_text(
        encoding="utf-8"
    )


def _licensed(component: Any, sources: Sources) -> Any:
    licence = sources.licences.python.get(component.name, "unknown")
    component.licenses.add(_allowed(licence, component.name, sources.licences, is_jar=False))
    component.bom_ref.value = str(component.purl)
    component.description = None  # the requirement's line, hashes and all
    return component


def _allowed(licence: str, name: str, licences: Licences, is_jar: bool) -> Any:
    if not licences.policy.allows(licence, is_jar):
        raise BillError(f"{name}: the policy does not allow its licence: {licence or 'unknown'}")
    return LicenseFactory().make_from_string(licence)


def _image(subject: Subject, wheel: Any) -> Any:
    return Component(
        type=ComponentType.CONTAINER,
        name=f"statewarden-{subject.name.removeprefix('image-')}",
        version=wheel.version,
        bom_ref=subject.name,
        licenses=list(wheel.licenses),
    )


def _parts_of_image(subject: Subject, sources: Sources) -> Iterator[Any]:
    recipe = _recipe(subject, sources)
    base, tag = base_image(recipe)
    yield Component(type=ComponentType.CONTAINER, name=base, version=tag, bom_ref=f"base:{base}:{tag}")
    status = sources.built / f"{subject.name}.dpkg-status"
    if status.is_file():
        packages = list(recorded_packages(status.read_text(encoding="utf-8")))
    else:
        packages = installed_packages(recipe)
    yield from (_debian(package) for package in packages)
    if subject.recipe == "rollup":
        yield from (_java(jar, sources.licences) for jar in sources.jars)


def _debian(package: Package) -> Any:
    qualifiers = {"arch": package.architecture} if package.architecture else {}
    purl = PackageURL("deb", "debian", package.name, package.version or None, qualifiers)
    return Component(
        type=ComponentType.LIBRARY,
        name=package.name,
        version=package.version or None,
        purl=purl,
        bom_ref=str(purl),
    )


def _java(jar: Jar, licences: Licences) -> Any:
    qualifiers = {"type": "jar"} | ({"classifier": jar.classifier} if jar.classifier else {})
    purl = PackageURL("maven", jar.group, jar.artifact, jar.version, qualifiers)
    return Component(
        type=ComponentType.LIBRARY,
        group=jar.group,
        name=jar.artifact,
        version=jar.version,
        purl=purl,
        bom_ref=str(purl),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256())],
        licenses=[_allowed(licences.of_jar(jar), jar.module, licences, is_jar=True)],
    )
