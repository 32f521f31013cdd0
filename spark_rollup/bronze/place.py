"""A path below bronze: in a directory (`pathlib.Path`) or in an object store that Spark reaches through Hadoop (s3a).

Tables below it are Delta's business. This module is for the small notes beside them: lists of what was taken,
markers, the claim.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_rollup.config import size_of
from spark_rollup.spark.failures import causes

_ONLY_NEW = "fs.option.create.conditional.overwrite"
"""The store itself refuses an object that is there. Source: Hadoop 3.4.2 and later, s3a."""

_ONLY_SAME = "fs.option.create.conditional.overwrite.etag"
"""The store itself refuses unless the object that is there has this ETag."""

_CONFLICT = (
    "FileAlreadyExistsException",
    "RemoteFileChangedException",
    "PreconditionFailed",
    "Status Code: 412",
)
"""Marks of such a refusal."""


class ObjectPath:
    """What bronze needs of `pathlib.Path`, over an object store."""

    def __init__(self, url: str, spark: SparkSession) -> None:
        """Name it: `s3a://bucket/prefix`."""
        self._url, self._spark = url.rstrip("/"), spark

    def __truediv__(self, name: str) -> ObjectPath:
        """Go down."""
        return ObjectPath(f"{self._url}/{name}", self._spark)

    def __str__(self) -> str:
        """Give the URL."""
        return self._url

    @property
    def name(self) -> str:
        """The last part."""
        return self._url.rpartition("/")[2]

    @cached_property
    def _gateway(self) -> Any:
        return self._spark._jvm

    @cached_property
    def _at(self) -> Any:
        return self._gateway.org.apache.hadoop.fs.Path(self._url)

    @property
    def _files(self) -> Any:
        return self._at.getFileSystem(self._spark._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        """Return whether there is an object, or anything below it."""
        return bool(self._files.exists(self._at))

    def iterdir(self) -> Iterator[ObjectPath]:
        """List what is directly below it; nothing if it does not exist."""
        try:
            found = self._files.listStatus(self._at)
        except Py4JJavaError as error:
            if _is_missing(error):
                return
            raise
        for status in found:
            yield self / str(status.getPath().getName())

    def read_text(self, encoding: str = "utf-8") -> str:
        """Read an object.

        Raises:
            FileNotFoundError: it is not there.
        """
        try:
            stream = self._files.open(self._at)
        except Py4JJavaError as error:
            if _is_missing(error):
                raise FileNotFoundError(self._url) from error
            raise
        try:
            return bytes(stream.readAllBytes()).decode(encoding)
        finally:
            stream.close()

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Write an object, all of it or nothing."""
        self._write(self._files.createFile(self._at).overwrite(True).build(), text.encode(encoding))

    def create(self, text: str) -> bool:
        """Write an object if there is none; False = there is one."""
        building = self._files.createFile(self._at).overwrite(True).opt(_ONLY_NEW, "true")
        return self._on_condition(building, text)

    def replace_same(self, text: str, etag: str) -> bool:
        """Write an object if the one that is there has this ETag; False = it has another, or is not there."""
        building = self._files.createFile(self._at).overwrite(True).opt(_ONLY_SAME, etag)
        return self._on_condition(building, text)

    def etag(self) -> str | None:
        """Return the object's ETag; None = it does not exist."""
        try:
            return str(self._files.getFileStatus(self._at).getEtag())
        except Py4JJavaError as error:
            if _is_missing(error):
                return None
            raise

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove an object, or everything below it; that it was not there is fine."""
        self._files.delete(self._at, True)

    def size_bytes(self) -> int:
        """Sum up the sizes of all objects below it."""
        total, found = 0, self._files.listFiles(self._at, True)
        while found.hasNext():
            total += int(found.next().getLen())
        return total

    def _on_condition(self, building: Any, text: str) -> bool:
        try:
            self._write(building.build(), text.encode())
        except Py4JJavaError as error:
            if any(mark in cause for cause in causes(error) for mark in _CONFLICT):
                return False
            raise
        return True

    @staticmethod
    def _write(stream: Any, content: bytes) -> None:
        try:
            stream.write(content)
        finally:
            stream.close()


def _is_missing(error: Py4JJavaError) -> bool:
    return "FileNotFoundException" in str(error.java_exception.getClass().getName())


Place = Path | ObjectPath


def place_of(text: str, spark: SparkSession) -> Place:
    """Name a place: a directory, or a URL of an object store."""
    return ObjectPath(text, spark) if "://" in text else Path(text)


def put(place: Place, text: str) -> None:
    """Write a note, all of it or nothing."""
    if isinstance(place, ObjectPath):
        place.write_text(text)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, place)  # noqa: PTH105 - all of it or nothing


def size_bytes(place: Place) -> int:
    """Sum up the sizes of all files below a place."""
    return place.size_bytes() if isinstance(place, ObjectPath) else size_of(place)


def below(place: Place) -> list[Place]:
    """List what is directly below a place, by name; nothing if it does not exist."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(place.iterdir(), key=lambda path: path.name)
    return []
