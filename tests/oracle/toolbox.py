"""The tools of the oracle: rocksdbjni jars, the compiled writer.

Everything is kept in `.cache/` of the checkout (ignored by git); what is there is not fetched again. The agent never
sees any of it.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.lab.toolbox import MissingToolError, maven, prepare_cache, run, tool

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache"
WRITER = HERE / "StoreWriter.java"

JARS = {
    "5.7.3": "88504e09ee828350ae1ea3adaac7d28852d54a188ef97bc3e77675bfec9ae404",
    "5.18.4": "6dd10cd1535c9e78157a081bb75734c95483a3fdbe193bae2ecee73020ec1fa2",
    "6.19.3": "d7a4f63c72565f35306f8172d1c2d46de914d369a78693f31c0679cbc36870ae",
    "6.22.1.1": "03886220f917bc0f7351facffdf67c9051b3e6ea06302a0c666dea2b094bb191",
    "6.29.4.1": "c2f971245d6d0cc17a5b59d3fdf82d8b6611edc1d403df60e81559685758017e",
    "7.9.2": "0e0e886c44ef1a04104116a05c7e03e9b24069d7fbc6a0fb2cde2032fa92cb20",
    "9.7.3": "5ca63e0e955f101f7af1c1fb8ce260b5d3a5701cea7d8c2852b9d56031a57221",
    "10.1.3": "e7f925287d9fe2574fb7c7a86f7facaa9b8ab602a2eed0e598bf633528121498",
}
"""SHA-256 of each rocksdbjni release that a Kafka Streams release brings along."""

WITH_OFFSETS = frozenset({"10.1.3"})
"""Those of Kafka Streams 4.3, which keeps offsets in the store."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The compiled writer with one rocksdbjni.

    Args of the dataclass:
        version: Its RocksDB.
        java: The interpreter.
        class_path: Jar and classes.
    """

    version: str
    java: str
    class_path: str

    @property
    def has_offsets(self) -> bool:
        """Whether Kafka Streams with this RocksDB keeps offsets in the store."""
        return self.version in WITH_OFFSETS

    def command(self, scratch: Path, *arguments: str) -> list[str]:
        """Spell a call; the native library is unpacked below `scratch`."""
        scratch.mkdir(parents=True, exist_ok=True)
        # niced: beside other work the writer is not what matters
        prefix = [found, "-n", "5"] if (found := shutil.which("nice")) else []
        flags = ["-Xmx256m", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={scratch}"]
        return [*prefix, self.java, *flags, "-cp", self.class_path, "StoreWriter", *arguments]

    def run(self, scratch: Path, *arguments: str) -> str:
        """Run to the end and give what it printed.

        Raises:
            RuntimeError: it failed; with what it said.
        """
        return run(self.command(scratch, *arguments), timeout_s=300)


def make_writer(version: str) -> Writer:
    """Fetch the jar and compile the writer, unless that was done before.

    Raises:
        MissingToolError: no Java, no compiler, or no way to get the jar.
    """
    java, javac = tool("java"), tool("javac")
    jar = _jar(version)
    # the digest in the name: classes of an older writer are never run
    digest = hashlib.sha256(WRITER.read_bytes()).hexdigest()[:12]
    classes = CACHE / "classes" / f"{version}-{digest}"
    if not (classes / "StoreWriter.class").is_file():
        run([javac, "-nowarn", "-cp", str(jar), "-d", str(classes), str(WRITER)], timeout_s=120)
    return Writer(version, java, f"{jar}:{classes}")


def _jar(version: str) -> Path:
    jar = CACHE / "jars" / f"rocksdbjni-{version}.jar"
    if not jar.is_file():
        prepare_cache()
        options = [f"-Dartifact=org.rocksdb:rocksdbjni:{version}", f"-DoutputDirectory={jar.parent}"]
        maven("copy", f"rocksdbjni {version}", *options)
    if hashlib.sha256(jar.read_bytes()).hexdigest() != JARS[version]:
        raise MissingToolError(f"rocksdbjni {version}: {jar.name} is not the file that was pinned")
    return jar
