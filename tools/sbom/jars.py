"""Which jars the rollup's image carries: those inside pyspark, and those pinned in `jars.json`.

Spark's distribution names the licence of each jar that it bundles in its LICENSE, one section per licence.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PINS = "spark_rollup/spark/jars.json"

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
    """One jar: its coordinate at Maven Central, and the file or the pin that gives its checksum."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    pin: str = ""
    file: Path | None = None

    @property
    def module(self) -> str:
        """Group and artifact, as licences are listed."""
        return f"{self.group}:{self.artifact}"

    def sha256(self) -> str:
        """Give the checksum: the pin, or that of the file."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest() if self.file else self.pin


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


def pinned_jars(root: Path, release: str) -> list[Jar]:
    """List the jars for Delta, S3 and Kafka that belong to a release of Spark, each once.

    Args:
        root: The checkout.
        release: As the lock has it, such as 4.2.1.
    """
    kinds = json.loads((root / PINS).read_text(encoding="utf-8"))[".".join(release.split(".")[:2])]
    rows = {row["jar"]: row["sha256"] for rows in kinds.values() for row in rows}
    coordinates = ((coordinate.split(":"), sha256) for coordinate, sha256 in sorted(rows.items()))
    return [Jar(group, artifact, version, pin=sha256) for (group, artifact, version), sha256 in coordinates]


def bundled_jars(pyspark: Path, modules: Iterable[str]) -> list[Jar]:
    """List the jars inside an installed pyspark.

    Args:
        pyspark: The package's directory.
        modules: `group:artifact` of every jar that a source names.

    Raises:
        ValueError: A jar names no group, and neither does a source.
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
    for known in _in_turn(path, groups):
        # the longest name wins: both `hive-shims-0.23` and `hive-shims` begin `hive-shims-0.23-2.3.10`
        for artifact in sorted(known, key=len, reverse=True):
            if re.match(rf"{re.escape(artifact)}-\d", stem):
                version = stem.removeprefix(f"{artifact}-")
                return Jar(known[artifact], artifact, version, classifier, file=path)
    raise ValueError(
        f"{path.name}: its group at Maven Central is not known; add it to tools/sbom/licences.toml"
    )


def _in_turn(path: Path, groups: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    yield groups
    yield _poms(path)


def _poms(path: Path) -> dict[str, str]:
    """Artifact -> group, of what a jar says it was made from."""
    with zipfile.ZipFile(path) as archive:
        matches = [match for name in archive.namelist() if (match := _POM.fullmatch(name))]
    return {match[2]: match[1] for match in matches}
