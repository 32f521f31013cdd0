"""What the lab needs and nobody commits: Kafka's jars, the compiled application, libraries that change a process.

Everything is kept in `.cache/live` of the checkout (ignored by git); what is there is not fetched again. Jars come
from Maven's default repository by way of `mvn`, which checks their checksums.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "application"
CACHE = HERE.parents[1] / ".cache" / "live"
BROKER_RELEASE = "3.9.1"
"""The broker that still talks to clients of every release since 2.0."""

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_POM = """<project>
<modelVersion>4.0.0</modelVersion><groupId>live</groupId><artifactId>live</artifactId><version>1</version>
<dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{release}</version>
</dependency></dependencies></project>
"""


class MissingToolError(Exception):
    """Something that this machine does not have, named so that somebody can install it."""


def tool(name: str) -> str:
    """Find a program, or raise `MissingToolError`."""
    found = shutil.which(name)
    if found is None:
        raise MissingToolError(name)
    return found


def broker_classes(release: str) -> str:
    """Give the class path of the broker; fetches and compiles the first time."""
    return _classes("Broker.java", "kafka_2.13", release)


def application_classes(release: str) -> str:
    """Give the class path of the application with one release of Kafka Streams; fetches and compiles the first time."""
    return _classes("App.java", "kafka-streams", release)


def reproduction_classes(name: str, release: str) -> str:
    """Give the class path of a program of `repro` with one release; fetches and compiles the first time."""
    return _classes(f"../repro/{name}.java", "kafka-streams", release)


def preloaded(name: str) -> Path:
    """Give a library to be preloaded, `slow_volume` or `set_clock`; compiles the first time."""
    source = SOURCES / f"{name}.c"
    library = CACHE / f"{name}-{_digest(source)}.so"
    if not library.is_file():
        prepare_cache()
        run([tool("gcc"), "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], timeout_s=60)
    return library


def _classes(source: str, artifact: str, release: str) -> str:
    found = jars(artifact, release)
    path = SOURCES / source
    # the digest in the name: classes of an older source are never run
    classes = CACHE / "classes" / f"{path.stem}-{release}-{_digest(path, *sorted(SOURCES.glob('*.java')))}"
    if not (classes / f"{path.stem}.class").is_file():
        classes.mkdir(parents=True, exist_ok=True)
        command = [
            tool("javac"),
            "-nowarn",
            "-Xlint:-options",
            "-cp",
            f"{found}/*",
            "-d",
            str(classes),
            "-sourcepath",
            str(SOURCES),
            str(path),
        ]
        run(command, timeout_s=120)
    return f"{classes}:{found}/*"


def jars(artifact: str, release: str) -> Path:
    """Give the directory with an artifact of Kafka and what it needs at run time; fetches the first time."""
    home = CACHE / "jars" / f"{artifact}-{release}"
    if (home / "complete").is_file():
        return home / "jars"
    prepare_cache()
    home.mkdir(parents=True, exist_ok=True)
    (home / "pom.xml").write_text(_POM.format(artifact=artifact, release=release))
    options = ("-f", str(home / "pom.xml"), "-DincludeScope=runtime", f"-DoutputDirectory={home / 'jars'}")
    maven("copy-dependencies", f"{artifact} {release}", *options)
    (home / "complete").touch()
    return home / "jars"


def maven(goal: str, what: str, *options: str) -> None:
    """Let Maven copy something; `MissingToolError`: there is no such thing, or no way to get it."""
    try:
        run([tool("mvn"), "-q", "-B", *options, f"{_PLUGIN}:{goal}"], timeout_s=300)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"{what}: {str(error).strip().splitlines()[-1][:300]}") from error


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def prepare_cache() -> None:
    """Make the directory for what is fetched, which git is to ignore."""
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE.parent / ".gitignore").write_text("*\n")


def run(command: list[str], *, timeout_s: float) -> str:
    """Run a program and give what it printed; a failure is a `RuntimeError` with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
