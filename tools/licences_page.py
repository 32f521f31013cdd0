"""Render the end of docs/supply-chain.md: the licence of every dependency of the wheel and the images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from tools.sbom.licences import SHIPPED, Jar, Licences, image_jars, read_licences, read_lock, version_of

ROOT = Path(__file__).resolve().parent.parent

MARKER = "### Policy\n"

_COLUMNS = {
    "agent": "agent",
    "agent-sinks": "objectstore, kafka",
    "agent-verify": "verify",
    "rollup": "rollup",
}
"""Lock -> the extras that it serves."""

_MOST_LISTED = 10


def render_licences(page: str) -> str:
    """Keep what people wrote above the marker, and write the lists below it again."""
    site = Path(str(files("pyspark"))).parent
    licences = read_licences(site)
    jars = image_jars(ROOT, site, licences)
    lists = "\n".join([*_policy(licences), *_python(licences), *_java(licences, jars)])
    return f"{page.partition(MARKER)[0]}{lists}"


def _policy(licences: Licences) -> Iterator[str]:
    yield MARKER
    yield f"- Anywhere: {', '.join(sorted(licences.permissive))}."
    yield (
        "- Only as separate, unmodified jars in the rollup's image, because their terms end at their own files: "
        f"{', '.join(sorted(licences.jars_only))}."
    )
    yield ""


def _python(licences: Licences) -> Iterator[str]:
    yield "### From PyPI"
    yield ""
    yield f"| distribution | version | licence | {' | '.join(_COLUMNS.values())} |"
    yield "|---" * (3 + len(_COLUMNS)) + "|"
    locks = {lock: {name: version_of(one) for name, one in read_lock(ROOT, lock).items()} for lock in SHIPPED}
    for name, version in sorted({item for rows in locks.values() for item in rows.items()}):
        marks = " | ".join("x" if name in locks[lock] else "" for lock in _COLUMNS)
        yield f"| {name} | {version} | {licences.python.get(name, 'unknown')} | {marks} |"
    yield ""
    yield "Their licence texts are in the images, in `/opt/statewarden/lib/python*/site-packages/*.dist-info`."
    yield ""


def _java(licences: Licences, jars: Sequence[Jar]) -> Iterator[str]:
    yield "### Jars in the rollup's image"
    yield ""
    yield (
        f"{len(jars)} jars: those inside pyspark, and those for Delta, S3 and Kafka "
        "(`spark_rollup/spark/jars.json`). The texts are in the image, in `pyspark/licenses` and in the jars."
    )
    by_licence: dict[str, set[str]] = {}
    for jar in jars:
        by_licence.setdefault(licences.of_jar(jar) or "unknown", set()).add(f"{jar.artifact} {jar.version}")
    for licence, names in sorted(by_licence.items()):
        yield ""
        counted = f"{len(names)} jars, in the bill of materials"
        yield f"**{licence}**: {counted if len(names) > _MOST_LISTED else ', '.join(sorted(names))}."
    yield ""
