"""Compare two published jars of Kafka Streams: for a release whose source is not at hand."""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from tools.upstream.classfile import Class, changed_members
from tools.upstream.data import Classes

_SOURCE = PurePosixPath("streams/src/main/java")
_CONFIG = "org/apache/kafka/streams/StreamsConfig.class"
_VERSION = "kafka/kafka-streams-version.properties"
_LAMBDA = "lambda$"


@dataclass(frozen=True, slots=True)
class Jar:
    """A published jar.

    Args of the dataclass:
        path: Where it is; `mvn` keeps its pom beside it.
        classes: Name within the jar -> the compiled class.
        release: That it says it is.
    """

    path: Path
    classes: dict[str, bytes]
    release: str

    @property
    def settings(self) -> frozenset[str]:
        """Settings that `StreamsConfig` names; none where it has no such class."""
        data = self.classes.get(_CONFIG)
        constants = Class(data).constants if data else {}
        return frozenset(value for name, value in constants.items() if name.endswith("_CONFIG"))

    def rocksdb(self) -> str | None:
        """Return the version of RocksDB in the pom beside it; None where there is no pom, or none is in it."""
        pom = self.path.with_suffix(".pom")
        if not pom.is_file():
            return None
        for dependency in ElementTree.parse(pom).iter():
            fields = {part.tag.rpartition("}")[2]: part.text for part in dependency}
            if fields.get("artifactId") == "rocksdbjni":
                return fields.get("version")
        return None


def read_jar(path: Path) -> Jar:
    """Read a jar.

    Raises:
        OSError: it cannot be read.
        zipfile.BadZipFile: it is none.
        ValueError: it does not say its release.
    """
    with zipfile.ZipFile(path) as archive:
        classes = {name: archive.read(name) for name in archive.namelist() if name.endswith(".class")}
        properties = archive.read(_VERSION).decode() if _VERSION in archive.namelist() else ""
    found = re.search(r"^version=(\S+)", properties, re.MULTILINE)
    if found is None:
        raise ValueError(f"{path}: no release in {_VERSION}")
    return Jar(path, classes, found[1])


def changed_classes(old: Jar, new: Jar, classes: Classes) -> dict[str, str]:
    """Map each class of the list that differs to the members that do, or to `new` or `gone`; imports do not count.

    Nested classes, and classes beside those of the list, that only one of the jars has, are listed, too.

    Raises:
        ValueError: a class cannot be read.
    """
    one, other = old.classes, new.classes
    listed = {_outer(path): name for name, path in classes.paths.items()}
    packages = {str(PurePosixPath(path).parent) for path in listed}
    members: dict[str, set[str]] = defaultdict(set)
    found: dict[str, str] = {}
    for path in sorted(one.keys() | other.keys()):
        outer, _, inner = path.removesuffix(".class").partition("$")
        is_listed, is_here = outer in listed, str(PurePosixPath(path).parent) in packages
        is_anonymous = inner[-1:].isdigit()
        if (path in one) != (path in other):
            if is_listed and is_anonymous:
                members[listed[outer]].add("an anonymous class")
            elif is_listed or (is_here and not inner):
                name = listed.get(outer, PurePosixPath(outer).name)
                found[".".join(filter(None, (name, inner)))] = "gone" if path in one else "new"
        elif is_listed and one[path] != other[path]:
            for member in changed_members(one[path], other[path]):
                name = member.removeprefix(_LAMBDA)
                members[listed[outer]].add(".".join(filter(None, (inner, name))))
    found |= {name: f"changed: {', '.join(sorted(x))}" for name, x in members.items() if x}
    return dict(sorted(found.items()))


def _outer(path: str) -> str:
    return str(PurePosixPath(path).relative_to(_SOURCE).with_suffix(""))
