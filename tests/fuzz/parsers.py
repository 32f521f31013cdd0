"""Every parser that reads what somebody else wrote, as a table: name -> function of bytes.

A function returns, or raises `StatewardenError` or `ContractError`; anything else is a defect.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent.contract.codec import ContractError, decode
from agent.errors import StatewardenError
from agent.home.baseline import understand
from agent.layout.checkpoint import parse_checkpoint
from agent.layout.paths import classify
from agent.layout.process_file import parse_process_file
from agent.layout.rocksdb_text import old_log_times_us, parse_current, parse_identity, parse_options
from agent.observe.rocksdb.log_records import read_records
from agent.observe.rocksdb.manifest import parse_manifest
from agent.replay.trace import read_trace
from agent.ship.baseline import Line
from agent.watch.inotify import parse_events
from tests.support.rocksdb_writer import frame

DATA = Path(__file__).resolve().parents[1] / "data" / "fuzz"
REFUSALS = (StatewardenError, ContractError)


def _paths(content: bytes) -> None:
    text = content.decode("utf-8", "surrogateescape")
    classify(text)
    old_log_times_us(text.split("/"))


def _rocksdb_text(content: bytes) -> None:
    parse_options(content)
    parse_current(content)
    parse_identity(content)


def _manifest(content: bytes) -> None:
    parse_manifest(content, 5)
    # the checksum keeps a fuzzer out of the edits: frame what it made, too
    parse_manifest(frame([content]), 5)


def _baseline(content: bytes) -> None:
    understand(_lines(content), "/state", 1)


def _lines(content: bytes) -> Iterator[Line]:
    for text in content.splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(line, dict):
            yield line


def _trace(content: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(content)
        file.flush()
        for _ in read_trace(Path(file.name)):
            pass


PARSERS: Mapping[str, Callable[[bytes], object]] = {
    "checkpoint": parse_checkpoint,
    "process-file": parse_process_file,
    "paths": _paths,
    "rocksdb-text": _rocksdb_text,
    "log-records": read_records,
    "manifest": _manifest,
    "inotify": lambda content: list(parse_events(content)),
    "event": decode,
    "baseline": _baseline,
    "trace": _trace,
}


def run_parser(name: str, content: bytes) -> None:
    """Parse once; only a defect is raised."""
    try:
        PARSERS[name](content)
    except REFUSALS:
        return


def seeds(name: str) -> list[Path]:
    """Interesting inputs that earlier runs found."""
    return sorted((DATA / name).glob("*"))
