"""What is shipped, and under which licence: the locks, the jars of the rollup's image, the table and its policy.

Spark's distribution names the licence of each jar that it bundles in its LICENSE, one section per licence.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TABLE = Path(__file__).with_name("licences.toml")
LOCKS = "deploy/locks"
PINS = "spark_rollup/spark/jars.json"

SHIPPED = ("agent", "agent-sinks", "agent-verify", "rollup")
"""Locks of what users install; the others serve builds and tests."""

_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+)(?::jar)?(?: +\S+)?")
_CLASSIFIER = re.compile(r"-(core|shaded-protobuf|jdk8|(?:linux|osx|windows)-\w+)$")
_POM = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")

SECTIONS = {
    "licensed under the Apache": "Apache-2.0",
    "BSD 0-Clause": "0BSD",
    "BSD 2-Clause": "BSD-2-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "MIT License": "MIT",
    "Common Development and Distribution License (CDDL) 1.0": "CDDL-1.0",
    "Common Development and Distribution License (CDDL) 1.1": "CDDL-1.1",
    # the text is that of the three-clause BSD licence
    "Eclipse Distribution License (EDL) 1.0": "BSD-3-Clause",
    "Eclipse Public License (EPL) 2.0": "EPL-2.0",
    "Unicode/ICU License": "Unicode-3.0",
}
"""How a heading in Spark's LICENSE ends -> SPDX identifier."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar: its coordinate at Maven Central, and its checksum."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def module(self) -> str:
        """Group and artifact, as licences are listed."""
        return f"{self.group}:{self.artifact}"


@dataclass(frozen=True, slots=True)
class Licences:
    """The table `licences.toml`, with what Spark's LICENSE adds.

    `permissive` are allowed anywhere, those of `jars_only` for a jar only.
    """

    permissive: frozenset[str]
    jars_only: frozenset[str]
    python: Mapping[str, str]
    maven: Mapping[str, str]
    of_spark: Mapping[str, str]

    def of_jar(self, jar: Jar) -> str:
        """Give a jar's licence; empty = not known."""
        return self.of_spark.get(jar.module) or self.maven.get(jar.module) or self.maven.get(jar.group, "")

    def allows(self, expression: str, is_jar: bool) -> bool:
        """Check an expression: of alternatives (OR) one has to fit, of parts (AND) each.

        Parentheses may hold alternatives, not parts: that is as much as the table needs.
        """
        allowed = self.permissive | self.jars_only if is_jar else self.permissive
        parts = (part.strip().removeprefix("(").removesuffix(")") for part in expression.split(" AND "))
        return all(any(one.strip() in allowed for one in part.split(" OR ")) for part in parts)


def read_lock(root: Path, name: str) -> dict[str, Requirement]:
    """Read a hash-locked set: name -> requirement, with its environment marker."""
    text = (root / LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    lines = re.findall(r"^\S[^\\\n]*", text, re.MULTILINE)
    return {canonicalize_name(one.name): one for one in map(Requirement, lines)}


def version_of(requirement: Requirement) -> str:
    """Give the version that a locked requirement pins."""
    return str(requirement.specifier).removeprefix("==")


def read_licences(site: Path) -> Licences:
    """Read the table, and the LICENSE of the pyspark in site-packages, which is with its metadata."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    (text,) = site.glob("pyspark-*.dist-info/licenses/LICENSE")
    permissive, jars_only = (frozenset(rows["policy"][key]) for key in ("permissive", "jars_only"))
    of_spark = spark_licences(text.read_text(encoding="utf-8"))
    return Licences(permissive, jars_only, rows["python"], rows["maven"], of_spark)


def spark_licences(text: str) -> dict[str, str]:
    """Read Spark's LICENSE: `group:artifact` -> SPDX identifier of its section."""
    found: dict[str, str] = {}
    licence = ""
    for line in text.splitlines():
        heading = next((spdx for start, spdx in SECTIONS.items() if start in line), None)
        if heading is not None:
            licence = heading
        elif licence and (coordinate := _COORDINATE.fullmatch(line.strip())):
            found[f"{coordinate[1]}:{coordinate[2]}"] = licence
    return found


def image_jars(root: Path, site: Path, licences: Licences) -> list[Jar]:
    """List all jars of the rollup's image: those inside pyspark, then those that are pinned for Delta, S3 and Kafka."""
    release = version_of(read_lock(root, "rollup")["pyspark"])
    kinds = json.loads((root / PINS).read_text(encoding="utf-8"))[".".join(release.split(".")[:2])]
    rows = {row["jar"]: row["sha256"] for rows in kinds.values() for row in rows}
    coordinates = ((coordinate.split(":"), sha256) for coordinate, sha256 in sorted(rows.items()))
    pinned = [Jar(group, artifact, version, sha256) for (group, artifact, version), sha256 in coordinates]
    modules = [*licences.of_spark, *(module for module in licences.maven if ":" in module)]
    return bundled_jars(site / "pyspark", modules) + pinned


def bundled_jars(pyspark: Path, modules: Iterable[str]) -> list[Jar]:
    """List the jars inside an installed pyspark; `modules` name group and artifact of every jar that a source knows.

    A jar that names no group, and that no source knows, is a `ValueError`.
    """
    groups: dict[str, set[str]] = {}
    for module in modules:
        group, artifact = module.split(":")
        groups.setdefault(artifact, set()).add(group)
    certain = {artifact: next(iter(names)) for artifact, names in groups.items() if len(names) == 1}
    return [_read_jar(path, certain) for path in sorted((pyspark / "jars").glob("*.jar"))]


def _read_jar(path: Path, groups: Mapping[str, str]) -> Jar:
    classifier = match[1] if (match := _CLASSIFIER.search(path.stem)) else ""
    stem = _CLASSIFIER.sub("", path.stem)
    # what a source says comes first: opening every jar takes long
    known = groups if _artifact(stem, groups) else _poms(path)
    if not (artifact := _artifact(stem, known)):
        raise ValueError(f"{path.name}: its group at Maven Central is not known; add it to {TABLE.name}")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return Jar(known[artifact], artifact, stem.removeprefix(f"{artifact}-"), sha256, classifier)


def _artifact(stem: str, names: Iterable[str]) -> str:
    """Find a jar's name; the longest wins: `hive-shims-0.23` and `hive-shims` begin `hive-shims-0.23-2.3.10`."""
    return max((name for name in names if re.match(rf"{re.escape(name)}-\d", stem)), key=len, default="")


def _poms(path: Path) -> dict[str, str]:
    """Artifact -> group, of what a jar says it was made from."""
    with zipfile.ZipFile(path) as archive:
        matches = [match for name in archive.namelist() if (match := _POM.fullmatch(name))]
    return {match[2]: match[1] for match in matches}
