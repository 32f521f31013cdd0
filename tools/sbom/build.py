"""Write the bills of materials of the wheel and the images: `make sbom`. Needs the dependency group `supply`.

    python tools/sbom/build.py --site .venv/lib/python3.11/site-packages

`cyclonedx-py` reads the locks; licences, jars and Debian packages are added. The same checkout gives the same bytes:
there is no serial number, and the time is SOURCE_DATE_EPOCH, else that of the commit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cyclonedx.schema import SchemaVersion  # noqa: E402
from cyclonedx.validation.json import JsonStrictValidator  # noqa: E402
from packageurl import PackageURL  # noqa: E402

from tools.sbom.licences import LOCKS, SHIPPED, Licences, image_jars, read_licences, read_lock, version_of  # noqa: E402

Part = dict[str, Any]

_BASE = re.compile(r"^ARG BASE=([^:@\s]+)[:@](\S+)$", re.MULTILINE)
_INSTALL = re.compile(r"apt-get install((?: +(?!&&)\S+)+)")


class BillError(Exception):
    """A bill could not be made, or does not fit the schema."""


def bill_of_lock(lock: str, licences: Licences, environment: Mapping[str, str]) -> Part:
    """Have `cyclonedx-py` read a lock, and add licences."""
    command = [
        sys.executable, "-m", "cyclonedx_py", "requirements", str(ROOT / LOCKS / f"{lock}.txt"),
        "--pyproject", str(ROOT / "pyproject.toml"), "--spec-version", "1.6", "--output-reproducible",
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BillError(f"{lock}: cyclonedx-py failed: {done.stderr.strip()[-2000:]}")
    bill: Part = json.loads(done.stdout)
    bill.pop("serialNumber", None)
    for part in bill["components"]:
        del part["description"]  # the requirement's line, hashes and all
        part["bom-ref"] = part["purl"]
        part["licenses"] = allowed(licences, licences.python.get(part["name"], "unknown"), part["name"])
    return bill


def allowed(licences: Licences, licence: str, name: str, *, is_jar: bool = False) -> list[Part]:
    """Write a licence as a bill has it; `BillError`: the policy does not allow it."""
    if not licences.allows(licence, is_jar):
        raise BillError(f"{name}: the policy does not allow its licence: {licence or 'unknown'}")
    return [{"expression": licence}] if " " in licence else [{"license": {"id": licence}}]


def base_of(recipe: str) -> tuple[str, str]:
    """Read name and tag (or digest) of the base that a recipe begins from."""
    if (found := _BASE.search(recipe)) is None:
        raise BillError("the recipe has no ARG BASE")
    return found[1], found[2]


def installed(recipe: str) -> list[tuple[str, str, str]]:
    """List the packages that the last stages of a recipe install by name: those of the stage `build` stay there."""
    stages = re.split(r"^FROM ", recipe, flags=re.MULTILINE)[1:]
    kept = "".join(stage for stage in stages if not stage.splitlines()[0].endswith(" AS build"))
    names = {word for words in _INSTALL.findall(kept.replace("\\\n", " ")) for word in words.split()}
    return [(name, "", "") for name in sorted(names) if name[0] != "-"]


def recorded(status: str) -> Iterator[tuple[str, str, str]]:
    """Read name, version and architecture of what dpkg says is fully installed (`/var/lib/dpkg/status`)."""
    for stanza in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.*)$", stanza, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            yield fields["Package"], fields["Version"], fields["Architecture"]


def as_image(bill: Part, lock: str, jars: Sequence[Part]) -> Part:
    """Make a wheel's bill that of an image: what its platform needs, its base, Debian packages and jars."""
    recipe_of = "rollup" if lock == "rollup" else "agent"
    recipe = (ROOT / "deploy" / "images" / f"{recipe_of}.Containerfile").read_text(encoding="utf-8")
    base, tag = base_of(recipe)
    python = tag.split("-")[0]
    markers = {"python_full_version": f"{python}.0", "python_version": python, "sys_platform": "linux"}
    locked = {name: one.marker for name, one in read_lock(ROOT, lock).items()}
    needed = [
        part for part in bill["components"]
        if (marker := locked[part["name"]]) is None or marker.evaluate(markers)
    ]  # fmt: skip
    status = ROOT / "build" / "images" / f"image-{lock}.dpkg-status"
    packages = recorded(status.read_text(encoding="utf-8")) if status.is_file() else installed(recipe)
    image = bill["metadata"]["component"] | {"type": "container", "name": f"statewarden-{lock}"}
    image["bom-ref"] = f"image-{lock}"
    del image["description"]
    parts = [
        *needed,
        {"type": "container", "name": base, "version": tag, "bom-ref": f"base:{base}:{tag}"},
        *(_part("deb", "debian", *package[:2], {"arch": package[2]}) for package in packages),
        *(jars if lock == "rollup" else ()),
    ]
    return bill | {
        "metadata": bill["metadata"] | {"component": image},
        "components": parts,
        # what the base holds beside Debian's packages, Python itself among it, is in no list
        "compositions": [{"aggregate": "incomplete", "assemblies": [image["bom-ref"]]}],
    }


def _part(kind: str, space: str, name: str, version: str, qualifiers: Mapping[str, str], **more: Any) -> Part:
    purl = str(PackageURL(kind, space, name, version or None, {k: v for k, v in qualifiers.items() if v}))
    given = {"version": version} if version else {}
    return {"type": "library", "name": name, "purl": purl, "bom-ref": purl, **given, **more}


def render(bill: Part) -> str:
    """Write a bill that fits the schema, with what it consists of as its only dependencies."""
    root, parts = bill["metadata"]["component"], sorted(bill["components"], key=lambda part: part["bom-ref"])
    refs = [part["bom-ref"] for part in parts]
    dependencies = [{"ref": root["bom-ref"], "dependsOn": refs}, *({"ref": ref} for ref in refs)]
    whole = bill | {"components": parts, "dependencies": dependencies}
    text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
    if (error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        raise BillError(f"the bill of {root['name']} does not fit CycloneDX 1.6: {error}")
    return text


def bills(site: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Make all bills, each with its name; `BillError`: one could not be made."""
    licences = read_licences(site)
    release = version_of(read_lock(ROOT, "rollup")["pyspark"])
    if not (site / f"pyspark-{release}.dist-info").is_dir():
        raise BillError(f"{site} has no pyspark {release}, which the lock names: run make setup")
    jars = [
        _part("maven", jar.group, jar.artifact, jar.version, {"type": "jar", "classifier": jar.classifier},
              group=jar.group, hashes=[{"alg": "SHA-256", "content": jar.sha256}],
              licenses=allowed(licences, licences.of_jar(jar), jar.module, is_jar=True))
        for jar in image_jars(ROOT, site, licences)
    ]  # fmt: skip
    for lock in SHIPPED:
        bill = bill_of_lock(lock, licences, environment)
        yield f"statewarden{lock.removeprefix('agent') if lock != 'rollup' else '-rollup'}", render(bill)
        yield f"image-{lock}", render(as_image(bill, lock, jars))


def main(argv: Sequence[str]) -> int:
    """Write all bills; 1 = one could not be made."""
    parser = argparse.ArgumentParser(description="Write bills of materials (CycloneDX 1.6).")
    parser.add_argument("--site", type=Path, required=True, help="site-packages that have pyspark")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build" / "sbom", help="directory (default: build/sbom)"
    )
    chosen = parser.parse_args(argv)
    chosen.output.mkdir(parents=True, exist_ok=True)
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    at_s = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.check_output(command, text=True).strip()
    environment = os.environ | {"SOURCE_DATE_EPOCH": at_s, "PYTHONWARNINGS": "ignore"}
    try:
        for name, text in bills(chosen.site, environment):
            path = chosen.output / f"{name}.cdx.json"
            path.write_text(text, encoding="utf-8")
            print(path)
    except BillError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
