"""Jars that bronze or a source needs beside Spark's own: which, where they are, how they are fetched. No Spark here.

`jars.json` holds Maven coordinates and checksums for each minor release of Spark that this program works with. What
Spark has itself (netty, slf4j, httpclient, commons-codec) is left out: two versions of a class side by side end badly.

Source: for s3a, hadoop-aws of the release of Hadoop that pyspark carries, the parts of the AWS SDK that it needs
instead of the SDK's bundle of 500 MB, and the stream reader that Hadoop 3.5 made its default. For Kafka, Spark's
connector, with the token provider of 4.0.0: that of 4.2.0 is not on Maven Central. For Delta, the
release that is built for each of these minor releases of Spark.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from spark_rollup.errors import JarError

KINDS = ("delta", "s3a", "kafka")
"""What needs jars: bronze, and two sources."""

TIMEOUT_S = 60
"""Longest wait for one jar to begin, seconds."""

MAVEN_TIMEOUT_S = 900
"""Longest time for Maven to bring all, seconds."""

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.statewarden</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""

_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""


@dataclass(frozen=True, slots=True)
class Pin:
    """One jar: Maven coordinate `group:artifact:version` and SHA-256 of its content."""

    coordinate: str
    sha256: str

    @property
    def name(self) -> str:
        """File name."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def path(self) -> str:
        """Path below the root of a Maven repository."""
        group, folders = self.coordinate.split(":", 1)
        return f"{group.replace('.', '/')}/{folders.replace(':', '/')}/{self.name}"


def installed_spark() -> str:
    """Return the release of the installed Spark."""
    from pyspark.version import __version__ as release

    return str(release)


def pins(release: str, kind: str) -> tuple[Pin, ...]:
    """List the jars that bronze or a source needs.

    Raises:
        JarError: no set is known for this release of Spark.
    """
    known = json.loads(files("spark_rollup.spark").joinpath("jars.json").read_text(encoding="utf-8"))
    minor = ".".join(release.split(".")[:2])
    if kind not in known.get(minor, {}):
        fit = ", ".join(sorted(name for name, sets in known.items() if kind in sets))
        raise JarError(
            f"no tested set of {kind} jars is known for Spark {release} (known: {fit}): give your vendor's jars "
            f"with --jars DIR, or install one of these releases"
        )
    return tuple(Pin(row["jar"], row["sha256"]) for row in known[minor][kind])


def default_directory(environment: Mapping[str, str], release: str, kind: str) -> Path:
    """Return where jars are kept unless configured otherwise: below the user's cache directory, by release of Spark."""
    return cache_directory(environment) / f"jars-spark-{release}" / kind


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory of what can be made again."""
    cache = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME') or Path.home()}/.cache"
    return Path(cache) / "statewarden"


def jars_in(directory: Path) -> list[Path]:
    """List the jars in a directory, in the order of their names."""
    return sorted(directory.glob("*.jar"))


def missing(wanted: Sequence[Pin], directory: Path) -> list[Pin]:
    """List the jars that are not in a directory, or are there with another content."""
    return [pin for pin in wanted if _checksum(directory / pin.name) != pin.sha256]


def fetch(
    wanted: Sequence[Pin],
    directory: Path,
    repository: str | None,
    environment: Mapping[str, str],
    report: Callable[[str], None] = lambda _: None,
) -> int:
    """Bring the jars that are missing into a directory, each checked against its pin first.

    Args:
        wanted: All that should be there.
        directory: Made if missing.
        repository: URL of a Maven repository; None = Maven with the user's settings.
        environment: Where PATH is.
        report: Called with the name of each jar that is there now.

    Returns:
        How many were fetched.

    Raises:
        JarError: says which jar, why, and what to do; what was fetched before stays.
    """
    absent = missing(wanted, directory)
    if not absent:
        return 0
    maven = shutil.which("mvn", path=environment.get("PATH"))
    if not repository and not maven:
        raise JarError(
            "no way to fetch jars: install Maven, or name a Maven repository with --repository URL"
        )
    directory.mkdir(parents=True, exist_ok=True)
    # resolved: Maven takes a relative path for one below its pom
    with tempfile.TemporaryDirectory(dir=directory.resolve(), prefix=".fetch-") as aside:
        if repository:
            _download(absent, Path(aside), repository)
        else:
            _by_maven(str(maven), absent, Path(aside))
        for pin in absent:
            found = _checksum(Path(aside) / pin.name)
            if found != pin.sha256:
                raise JarError(
                    f"{pin.coordinate} is not the jar that was tested: its SHA-256 is {found or 'missing'}, known is "
                    f"{pin.sha256}; it was not kept. Does the repository serve the original?"
                )
            os.replace(Path(aside) / pin.name, directory / pin.name)  # noqa: PTH105 - all of it or nothing
            report(pin.name)
    return len(absent)


def _by_maven(maven: str, absent: Sequence[Pin], aside: Path) -> None:
    pom = aside / "pom.xml"
    pom.write_text(_POM.format("".join(_DEPENDENCY.format(*pin.coordinate.split(":")) for pin in absent)))
    command = [
        maven,
        "-q",
        "-B",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={aside}",
    ]
    try:
        done = subprocess.run(  # noqa: S603 - found on PATH, nothing of it is input
            command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise JarError(f"Maven did not end within {MAVEN_TIMEOUT_S} s: {' '.join(command)}") from error
    if done.returncode:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "[ERROR]" in line]
        why = errors[0].partition("[ERROR]")[2].strip() if errors else "it did not say why"
        raise JarError(f"Maven could not fetch the jars: {why}")


def _download(absent: Sequence[Pin], aside: Path, repository: str) -> None:
    for pin in absent:
        url = f"{repository.rstrip('/')}/{pin.path}"
        if not url.startswith(("http://", "https://", "file://")):
            raise JarError(f"--repository {repository!r} is not the URL of a Maven repository")
        try:
            with (
                urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer,  # noqa: S310 - checked above
                (aside / pin.name).open("wb") as out,
            ):
                shutil.copyfileobj(answer, out)
        except (urllib.error.URLError, OSError) as error:
            raise JarError(f"{pin.coordinate} could not be fetched from {url}: {error}") from error


def _checksum(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
