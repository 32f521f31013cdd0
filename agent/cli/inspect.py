"""`diff` and `bundle`: compare two state directories, and pack what a bug report needs."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from agent import __version__
from agent.cli.ahead import reading_ahead
from agent.cli.compare import Copy, Difference, Relation, compare
from agent.cli.json_lines import finding_line
from agent.cli.offline import one_pass, require_state_directory
from agent.cli.streams import complain
from agent.clock import SystemClock
from agent.config import Config
from agent.contract.built import COMMIT
from agent.contract.codec import printable
from agent.contract.exit_codes import answer
from agent.engine.pipeline import Pipeline
from agent.engine.unread import how_much, unread, which
from agent.errors import UsageError
from agent.inventory.disk import Disk, EntryKind, FileStat, Unseen
from agent.inventory.model import Inventory
from agent.layout import names
from agent.layout.checkpoint import UNKNOWN_OFFSET
from agent.layout.paths import Role, classify, join

COPIED_ROLES = frozenset(
    {Role.CHECKPOINT, Role.STORE_CHECKPOINT, Role.PROCESS_FILE, Role.IDENTITY, Role.CURRENT, Role.OPTIONS}
)
"""Files without record content. Never MANIFEST and SST (their key ranges are record keys), never LOG."""

MAX_COPIED_BYTES = 1024 * 1024
DEEPEST = 8


def diff(a: Path, b: Path, config: Config, *, as_json: bool) -> int:
    """Compare two state directories, or two snapshots of one.

    Returns:
        Exit code.

    Raises:
        UsageError: one of them is not a readable state directory.
    """
    read = [read_directory(place, config).inventory for place in (a, b)]
    rows = list(compare(*read))
    for row in rows:
        sys.stdout.write(_json(row) if as_json else _line(row))
    if not rows:
        sys.stdout.write("neither has a store\n")
    is_part = [_complain(place, inventory) for place, inventory in zip((a, b), read, strict=True)]
    said = {row.relation for row in rows}
    undecided = any(is_part) or Relation.UNKNOWN in said
    return answer(found=bool(said - {Relation.SAME, Relation.UNKNOWN}), unread=undecided)


def _complain(directory: Path, inventory: Inventory) -> bool:
    """Say on standard error what of a directory could not be read; return whether there is anything."""
    places = unread(inventory)
    if places:
        complain(printable(f"{directory}: {how_much(inventory, places)}; {which(places)}"))
    return bool(places)


def read_directory(directory: Path, config: Config) -> Pipeline:
    """Read a state directory once.

    Raises:
        UsageError: it is not a readable state directory.
    """
    with reading_ahead(directory) as (disk, observer):
        require_state_directory(disk, directory)
        now_us = SystemClock().now_us()
        pipeline = one_pass(disk, config, now_us)
        pipeline.looker.observer = observer
        pipeline.scan(now_us)
        pipeline.confirm(now_us)
        pipeline.summarise(now_us)
    return pipeline


def bundle(directory: Path, target: Path, config: Config) -> int:
    """Pack metadata for a bug report: listing, checkpoints, option files, findings. No record content.

    Returns:
        Exit code.

    Raises:
        UsageError: the directory cannot be read, or the target is inside it or cannot be written.
    """
    if directory.resolve() in target.resolve().parents:
        raise UsageError(
            f"{target} is inside {directory}, where nothing is ever written; choose another place"
        )
    pipeline = read_directory(directory, config)
    listing = list(_walk(pipeline.disk, "", 0))
    findings = [finding_line(x, directory.name) for x in pipeline.ledger.findings()]
    try:
        with tarfile.open(target, "x:gz") as archive:
            _add(archive, "statewarden.json", json.dumps(_about(config, pipeline.inventory), indent=1))
            _add(archive, "listing.jsonl", "".join(json.dumps(row) + "\n" for row in listing))
            _add(archive, "findings.jsonl", "\n".join(findings) + "\n")
            for path in _copied(listing):
                content = pipeline.disk.read_at(path, 0, MAX_COPIED_BYTES)
                if not isinstance(content, Unseen):
                    _add(archive, f"files/{path}", content.decode("utf-8", "surrogateescape"))
    except FileExistsError as error:
        raise UsageError(f"{target} is there already; choose another name") from error
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from error
    sys.stdout.write(f"{target}: {len(listing)} names, {len(findings)} findings; no record content\n")
    return answer(found=False, unread=_complain(directory, pipeline.inventory))


def _about(config: Config, inventory: Inventory) -> dict[str, object]:
    applications = sorted(inventory.applications)
    return {
        "agent_version": __version__,
        "commit": COMMIT,
        "volume": inventory.volume,
        "applications": applications,
        "disabled": dict(config.detectors.disabled),
        "settings": {
            name: {key: setting.value for key, setting in config.applications.of(name).values.items()}
            for name in applications
        },
    }


def _walk(disk: Disk, path: str, depth: int) -> Iterator[dict[str, object]]:
    entries = disk.list(path)
    if isinstance(entries, Unseen) or depth > DEEPEST:
        return
    for entry in sorted(entries, key=lambda x: x.name):
        inner = join(path, entry.name)
        stat = disk.stat(inner)
        row: dict[str, object] = {"path": inner, "kind": entry.kind.value, "role": classify(inner).role.value}
        if isinstance(stat, FileStat):
            row |= {"inode": stat.inode, "size_bytes": stat.size_bytes, "mtime_us": stat.mtime_us}
        else:
            row["unseen"] = stat.value
        if inner.endswith((f"/{names.LOCK_FILE}", f"/{names.STORE_LOCK_FILE}")):
            state = disk.lock_state(inner)
            row["lock"] = state.value
        yield row
        if entry.kind is EntryKind.DIRECTORY:
            yield from _walk(disk, inner, depth + 1)


def _copied(listing: list[dict[str, object]]) -> Iterator[str]:
    for row in listing:
        path = str(row["path"])
        if classify(path).role in COPIED_ROLES:
            yield path


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    _add_bytes(archive, name, text.encode("utf-8", "surrogateescape"))


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(f"statewarden-bundle/{name}")
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def _json(row: Difference) -> str:
    return (
        json.dumps(
            {
                "application_id": row.application,
                "task_id": row.task,
                "store": row.store,
                "relation": row.relation.value,
                "why": row.why,
                "a": _plain(row.a),
                "b": _plain(row.b),
            }
        )
        + "\n"
    )


def _plain(copy: Copy | None) -> dict[str, object] | None:
    if copy is None:
        return None
    return {**dataclasses.asdict(copy), "identities": sorted(copy.identities)}


def _line(row: Difference) -> str:
    place = printable(f"{row.application}/{row.task}/{row.store}")
    indent = " " * 11
    lines = (
        f"{row.relation.value:<11}{place}",
        f"{indent}A {_wording(row.a)}",
        f"{indent}B {_wording(row.b)}",
        indent + row.why,
    )
    return "\n".join(lines) + "\n"


def _wording(copy: Copy | None) -> str:
    if copy is None:
        return "-"
    entries = "?" if copy.entries_low is None else f"{copy.entries_low} to {copy.entries_high}"
    offset = "none" if copy.offset is None else "unknown" if copy.offset == UNKNOWN_OFFSET else copy.offset
    return f"offset {offset}, {copy.puts} puts, {entries} entries, {copy.size_bytes} bytes"
