"""What agents recorded, read back for `explain`: a running agent, a spool, a directory, an object store."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from agent.config import Config
from agent.contract.reporting import SEGMENT_NAME
from agent.delivery import OBJECT_STORE, parse_target
from agent.errors import RetryableShipError, UnreadError, UsageError
from agent.ship.database import DATABASE_NAME, StoreError
from agent.ship.queue import spooled_lines

ANSWERS_WITHIN_S = 10.0
MOST_BYTES = 256 * 1024 * 1024
"""Of a whole answer: a hundred thousand findings."""


def _whole(answer: HTTPResponse) -> bytes:
    """Read an agent's answer to its end. Raises `OSError`: it is somebody else's, too long, or was cut off."""
    if answer.headers.get_content_type() != "application/jsonl":
        raise OSError("the answer is not an agent's")
    content = bytearray()
    while part := answer.read1():
        content += part
        if len(content) > MOST_BYTES:
            raise OSError(f"no end after {len(content):,} bytes")
    if answer.length:
        raise OSError("the answer was cut off")
    return bytes(content)


class Recorded:
    """Event lines of one source. What cannot be read is counted and passed over."""

    def __init__(self, source: str, config: Config) -> None:
        """Read from `source`: `http://HOST:PORT` of an agent, `s3://BUCKET/PREFIX`, or a directory."""
        self._source, self._config = source, config
        self.unread: dict[str, str] = {}  # segment -> why it was passed over
        self.segments = 0
        self.is_spool = False  # a part of the source at least

    def lines(self) -> Iterator[bytes]:
        """Give all lines.

        Raises `UsageError`: there is no such source. Raises `UnreadError`: it does not answer.
        """
        scheme = self._source.partition("://")[0] if "://" in self._source else ""
        if scheme in ("http", "https"):
            yield from self._of_an_agent()
        elif scheme in OBJECT_STORE.schemes:
            yield from self._unpacked(self._of_an_object_store())
        elif scheme:
            raise UsageError(
                f"{self._source}: events are read from a directory, s3://, gs://, az:// or an agent's http://"
            )
        else:
            yield from self._of_a_directory(Path(self._source))

    def _of_an_agent(self) -> Iterator[bytes]:
        address = f"{self._source.rstrip('/')}/findings"
        try:
            with urlopen(address, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310 - the scheme was looked at
                yield from _whole(answer).splitlines()
        except (URLError, OSError, HTTPException) as error:
            why = error.reason if isinstance(error, URLError) else error
            said = str(getattr(why, "strerror", None) or why).partition("\n")[0]
            raise UnreadError(f"can't read {address}: {said}; is it the agent's --listen address?") from error

    def _of_an_object_store(self) -> Iterator[tuple[str, bytes]]:
        from agent.ship.sinks.object_store import ObjectStoreSink

        try:
            yield from ObjectStoreSink(parse_target(self._source), self._config.ship).segments()
        except RetryableShipError as error:
            raise UnreadError(str(error)) from error

    def _of_a_directory(self, directory: Path) -> Iterator[bytes]:
        if not directory.is_dir():
            raise UsageError(f"{directory}: no such directory of events")
        files = sorted(self._files_below(directory))
        yield from self._unpacked(
            (str(path), path)
            for path in files
            if ".jsonl" in path.name and (path.is_file() or path.is_symlink())
        )
        for path in (path for path in files if path.name == DATABASE_NAME):
            self.segments += 1
            self.is_spool = True
            try:
                yield from spooled_lines(path)
            except (StoreError, OSError) as error:
                self.unread[str(path)] = (
                    f"{error}; of a running agent ask its port: --events http://HOST:9464"
                )
        if not self.segments:
            raise UsageError(f"{directory}: no events: no *.jsonl, *.jsonl.gz or {DATABASE_NAME} below it")

    def _files_below(self, directory: Path) -> Iterator[Path]:
        """Give the files below, links followed; a folder that may not be listed is told."""
        seen: set[str] = set()

        def refuse(error: OSError) -> None:
            self.segments += 1
            self.unread[str(error.filename)] = str(error.strerror)

        for folder, folders, names in os.walk(directory, onerror=refuse, followlinks=True):
            real = str(Path(folder).resolve())
            folders[:] = [] if real in seen else [x for x in folders if x != "lost+found"]
            if real in seen:
                continue
            seen.add(real)
            yield from (Path(folder, name) for name in names)

    def _unpacked(self, segments: Iterator[tuple[str, bytes | Path]]) -> Iterator[bytes]:
        for name, held in segments:
            self.segments += 1
            try:
                content = held.read_bytes() if isinstance(held, Path) else held
                lines = (gzip.decompress(content) if name.endswith(".gz") else content).splitlines()
            except (OSError, EOFError, zlib.error) as error:
                self.unread[name] = str(error)
            else:
                if _is_short(name, lines):
                    self.unread[name] = "it holds less than its name announces"
                yield from lines


def _is_short(name: str, lines: Sequence[bytes]) -> bool:
    found = re.search(SEGMENT_NAME, name)
    if found is None or found[3]:
        return found is not None and len(lines) < int(found[3])
    reached = re.search(rb'"sequence":\s*(\d+)', lines[-1]) if lines else None
    return reached is None or int(reached[1]) < int(found[2])
