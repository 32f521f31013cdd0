"""Segments as files: in a directory, or as objects in a store that Spark reaches through Hadoop (s3a)."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from agent.contract.reporting import SEGMENT_NAME
from spark_rollup.bronze.load import is_segment, load_files, segments
from spark_rollup.bronze.unpacked import (
    DEADLY,
    UNREAD,
    Checked,
    check_files,
    check_local_files,
    is_suspect,
)
from spark_rollup.errors import SourceError
from spark_rollup.sources.base import Batch, Ends, labelled
from spark_rollup.sources.turns import PATIENCE

FILES_PER_TURN = 5_000
"""Most files that are ingested at once: after each turn what was ingested is written down for good."""

IMPATIENT: Mapping[str, str] = {
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "2",
    "fs.s3a.retry.interval": "250ms",
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "10s",
    "fs.s3a.connection.acquisition.timeout": "10s",
    "fs.s3a.connection.request.timeout": "15s",
}
"""For the first contact: a wrong endpoint is to be reported at once. Reading objects has Hadoop's full patience."""

OWN_BYTES = 256 * 1024
"""No segment of an agent is larger: it seals them at this size, before it packs them."""


class FileSource:
    """Files that only ever are added; one that grew is ingested again."""

    def __init__(
        self, store: Directory | ObjectStore, cluster: str | None = None, *, may_be_empty: bool = False
    ) -> None:
        """Take files from a store, whose events are of a cluster; `may_be_empty`: the first may come later."""
        self._store, self._cluster, self._may_be_empty = store, cluster, may_be_empty

    def fresh(self, spark: SparkSession, known: Ends) -> tuple[dict[str, int], set[str]]:
        """List new files and those of another size, with their sizes, and those that were ingested and are gone.

        Raises:
            SourceError: there is no segment at all, or the store cannot be listed.
        """
        found = self._store.sizes(spark)
        is_new = not any(path.startswith(self._store.root) for path in known)
        if not found and is_new and not self._may_be_empty:
            raise SourceError(f"input {self._store.root} holds no *.jsonl or *.jsonl.gz file")
        fresh = {path: size for path, size in sorted(found.items()) if known.get(path) != size}
        return fresh, gone(self._store.root, found, known)

    def part(self, spark: SparkSession, fresh: Mapping[str, int], lost: Set[str] = frozenset()) -> Batch:
        """Make a batch of some files (path -> bytes); `lost` was ingested once and is gone."""

        def unread(files: Sequence[str]) -> dict[str, str]:
            return barred | {path: why for path in files if (why := self._why_unread(spark, path))}

        checked = self._store.check_files(spark, fresh)
        barred = {path: why for path, (reason, why) in checked.items() if reason == UNREAD}
        told = {path: what for path, what in checked.items() if path not in barred}
        loaded = labelled(
            load_files(spark, [path for path in fresh if path not in barred], told), self._cluster
        )
        return Batch(loaded, sum(fresh.values()), fresh, unread, lost)

    def put_aside(self, spark: SparkSession, path: str, size_bytes: int) -> Batch:
        """Make a batch that only reports a file which must not be opened."""
        why = f"{PATIENCE} runs ran out of memory on this file; it was not read"
        loaded = load_files(spark, [], {path: (DEADLY, why)})
        return Batch(loaded, size_bytes, {path: size_bytes})

    def _why_unread(self, spark: SparkSession, path: str) -> str | None:
        try:
            content = self._store.content(spark, path)
        except OSError as error:
            return str(error)
        return None if is_damaged(path, content) else "Spark read only part of it"


def gone(root: str, found: Collection[str], known: Collection[str]) -> set[str]:
    """List what was ingested from below a directory or URL and is no longer there; an empty place proves nothing."""
    below = f"{root.rstrip('/')}/"
    return {path for path in known if path.startswith(below) and path not in found} if found else set()


class Directory:
    """A directory in the file system."""

    def __init__(self, path: Path) -> None:
        """Name it."""
        self.root = os.path.abspath(path)  # noqa: PTH100 - Spark takes `..` out of paths

    def sizes(self, spark: SparkSession) -> Mapping[str, int]:
        """List segments."""
        return segments(Path(self.root))

    def check_files(self, spark: SparkSession, files: Mapping[str, int]) -> Checked:
        """Check files."""
        return check_local_files(files)

    def content(self, spark: SparkSession, path: str) -> bytes:
        """Read a file."""
        return Path(path).read_bytes()


class ObjectStore:
    """A prefix of a bucket, through Hadoop's s3a file system and its chain of credentials."""

    def __init__(self, url: str) -> None:
        """Name it: `s3a://bucket/prefix`."""
        self.root = url

    def sizes(self, spark: SparkSession) -> Mapping[str, int]:
        """List segments, in one flat listing of the store.

        Raises:
            SourceError: the endpoint does not answer, or refuses.
        """
        gateway: Any = spark._jvm
        where = gateway.org.apache.hadoop.fs.Path(self.root)
        patience = gateway.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
        for key, value in IMPATIENT.items():
            patience.set(key, value)
        try:
            files = gateway.org.apache.hadoop.fs.FileSystem.newInstance(where.toUri(), patience)
            try:
                return dict(_listed(files, where, self.root))
            finally:
                files.close()
        except Py4JJavaError as error:
            raise SourceError(_explained(self.root, error)) from error

    def check_files(self, spark: SparkSession, files: Mapping[str, int]) -> Checked:
        """Check objects that are not an agent's own, or that are larger than those are."""

        def suspect(path: str, size_bytes: int) -> bool:
            is_own = re.search(SEGMENT_NAME, path) is not None and size_bytes <= OWN_BYTES
            return not is_own and is_suspect(path, size_bytes)

        return check_files(files, lambda path: io.BytesIO(self.content(spark, path)), suspect)

    def content(self, spark: SparkSession, path: str) -> bytes:
        """Read an object.

        Raises:
            OSError: the store does not give it.
        """
        gateway: Any = spark._jvm
        where = gateway.org.apache.hadoop.fs.Path(path)
        try:
            stream = where.getFileSystem(spark._jsc.hadoopConfiguration()).open(where)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise OSError(_reason(error)) from error


def is_damaged(path: str, content: bytes) -> bool:
    """Return whether a segment's own bytes explain that it gave fewer records than its name announces."""
    named = re.search(SEGMENT_NAME, path)
    try:
        lines = (gzip.decompress(content) if path.endswith(".gz") else content).splitlines()
    except (OSError, EOFError, zlib.error):
        return True
    if named is None:  # only its trailer showed that it was torn
        return False
    found = [number for number in map(_sequence, lines) if number]
    if named[3]:  # thinned by its agent: the name counts what is left
        return len(found) < int(named[3])
    return max(found, default=0) < int(named[2])


def _sequence(line: bytes) -> int | None:
    try:
        number = json.loads(line)["data"]["sequence"]
    except (ValueError, KeyError, TypeError):
        return None
    return number if isinstance(number, int) else None


def _listed(files: Any, where: Any, root: str) -> list[tuple[str, int]]:
    found, listing = [], files.listFiles(where, True)
    while listing.hasNext():
        status = listing.next()
        path = status.getPath().toString()
        if is_segment(path.removeprefix(root)):
            found.append((path, int(status.getLen())))
    return found


def _explained(root: str, error: Py4JJavaError) -> str:
    name, why = str(error.java_exception.getClass().getSimpleName()), _reason(error)
    match name:
        case "FileNotFoundException" | "UnknownStoreException":
            return f"input {root} does not exist, or holds nothing: {why}"
        case "AccessDeniedException" | "NoAuthWithAWSException" | "NoAwsCredentialsException":
            return (
                f"input {root}: the store refuses these credentials ({why}); they come from the environment "
                f"(AWS_ACCESS_KEY_ID ...), the pod's or machine's role, or --spark-conf spark.hadoop.fs.s3a.*"
            )
    return (
        f"input {root} cannot be listed ({name}: {why}); is --endpoint right, and is it reachable from here?"
    )


def _reason(error: Py4JJavaError) -> str:
    return " ".join(str(error.java_exception.getMessage()).split())[:300]
