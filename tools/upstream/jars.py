"""Compare two published jars of Kafka Streams: for a release whose source is not at hand."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath

from tools.upstream.data import Classes

_SOURCE = PurePosixPath("streams/src/main/java")


def changed_classes(old: Path, new: Path, classes: Classes) -> dict[str, str]:
    """Map each class of the list that differs, its inner ones included, to `changed`, `new` or `gone`.

    Classes beside them that only one of the jars has are listed, too. One that was merely compiled again by another
    compiler differs as well; `javap -p -c` on both shows what it is.

    Raises:
        OSError: a jar cannot be read.
        zipfile.BadZipFile: it is none.
    """
    one, other = _read(old), _read(new)
    listed = {_outer(path): name for name, path in classes.paths.items()}
    packages = {str(PurePosixPath(path).parent) for path in listed}
    found: dict[str, str] = {}
    for path in sorted(one.keys() | other.keys()):
        outer = path.partition("$")[0].removesuffix(".class")
        if outer in listed and one.get(path) != other.get(path):
            is_there = f"{outer}.class" in one, f"{outer}.class" in other
            found[listed[outer]] = {(True, False): "gone", (False, True): "new"}.get(is_there, "changed")
        elif (
            str(PurePosixPath(path).parent) in packages
            and "$" not in path
            and (path in one) != (path in other)
        ):
            found[PurePosixPath(path).stem] = "gone" if path in one else "new"
    return found


def _read(jar: Path) -> dict[str, int]:
    with zipfile.ZipFile(jar) as archive:
        return {x.filename: x.CRC for x in archive.infolist() if x.filename.endswith(".class")}


def _outer(path: str) -> str:
    return str(PurePosixPath(path).relative_to(_SOURCE).with_suffix(""))
