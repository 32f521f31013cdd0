"""What an oracle says of a database, and how it differs from what the agent's reader says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.observe.rocksdb.store import StoreFacts
from tests.oracle.toolbox import Writer

_FILE_FIELDS = ("level", "bytes", "entries", "deletions", "lowest sequence", "highest sequence")
_TABLE_FIELDS = ("entries", "deletions", "", "", "", "family")
_TOTALS = {"# entries": "entries"}
_UNKNOWN = "-"
_POSITION = b"position".hex()


@dataclass(slots=True)
class Answer:
    """What an oracle says; a field that it does not know is not there.

    Args of the dataclass:
        families: Family -> number of live entries, by iterating over them.
        files: File number -> named numbers.
        totals: Family -> named sums over its files.
        offsets: Key -> value of the `offsets` family, both hexadecimal.
        knows_files: Whether `files` is the whole file set.
    """

    families: dict[str, int] = field(default_factory=dict)
    files: dict[int, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    offsets: dict[str, str] = field(default_factory=dict)
    knows_files: bool = False


def copy_of(database: Path, target: Path) -> Path:
    """Make a directory of symbolic links: an oracle opens that and never the original."""
    target.mkdir(parents=True)
    for one in database.iterdir():
        if one.name != "LOCK" and not one.name.startswith("LOG"):
            (target / one.name).symlink_to(one.resolve())
    return target


def ask_rocksdict(copy: Path) -> Answer:
    """Ask rocksdict, which writes into what it opens."""
    from rocksdict import AccessType, Options, Rdict  # not where `make test` was all that was ever run

    names = Rdict.list_cf(str(copy), Options(raw_mode=True))
    families = {name: Options(raw_mode=True) for name in names}
    database = Rdict(
        str(copy), Options(raw_mode=True), column_families=families, access_type=AccessType.read_only()
    )
    entries = {name: dict(database.get_column_family(name).items()) for name in names}
    files = {
        int(Path(one["name"]).stem): {
            "level": one["level"], "bytes": one["size"], "entries": one["num_entries"],
            "deletions": one["num_deletions"],
        }
        for one in database.live_files()
    }  # fmt: skip
    offsets = {key.hex(): value.hex() for key, value in entries.get("offsets", {}).items()}
    counts = {name: len(items) for name, items in entries.items()}
    return Answer(counts, files, offsets=offsets, knows_files=True)


def ask_writer(writer: Writer, copy: Path, scratch: Path) -> Answer:
    """Ask the RocksDB release that wrote the database; old ones know less."""
    answer = Answer()
    for line in writer.run(scratch, "dump", str(copy)).splitlines():
        kind, name, *cells = line.split("\t")
        if kind == "family":
            answer.families[name] = int(cells[0])
        elif kind == "entry":
            answer.offsets[name] = cells[0]
        elif kind == "total":
            answer.totals[name] = _totals(cells[0])
        elif kind == "file":
            answer.knows_files = True
            _add(answer, name, _FILE_FIELDS, cells)
        elif kind == "table":
            _add(answer, name, _TABLE_FIELDS, cells)
    return answer


def _add(answer: Answer, name: str, fields: tuple[str, ...], cells: list[str]) -> None:
    known = {key: int(cell) for key, cell in zip(fields, cells, strict=True) if key and cell != _UNKNOWN}
    answer.files.setdefault(int(Path(name).stem), {}).update(known)


def _totals(text: str) -> dict[str, int]:
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {_TOTALS[name]: int(value) for name, _, value in pairs if name in _TOTALS}


def differences(facts: StoreFacts, answer: Answer) -> list[str]:
    """List, in words, where the reader and the oracle disagree; empty if nowhere."""
    mine = _files(facts)
    found = [f"problem: {problem}" for problem in facts.problems]
    found += [f"missing: {number}" for number in facts.missing_files]
    if facts.manifest.torn:
        found.append("manifest torn")
    names = dict(facts.manifest.families)
    if set(names.values()) != set(answer.families):
        found.append(f"families: {sorted(names.values())}, oracle {sorted(answer.families)}")
    if (answer.knows_files or answer.files) and set(mine) != set(answer.files):
        found.append(f"files: {sorted(mine)}, oracle {sorted(answer.files)}")
    for number, fields in answer.files.items():
        found += _unequal(f"file {number}", mine.get(number, {}), fields)
    for name, fields in answer.totals.items():
        ids = {family_id for family_id, one in names.items() if one == name}
        inside = [one for one in mine.values() if one["family"] in ids]
        sums = {key: sum(one.get(key, 0) for one in inside) for key in fields}
        found += _unequal(f"family {name}", sums, fields)
    found += _unequal(
        "offsets", _offsets(facts), {**answer.offsets, _POSITION: _offsets(facts).get(_POSITION)}
    )
    if set(_offsets(facts)) != set(answer.offsets):
        found.append(f"keys of offsets: {sorted(_offsets(facts))}, oracle {sorted(answer.offsets)}")
    live = sum(count for name, count in answer.families.items() if name != "offsets")
    if facts.live is None or not facts.live.low <= live <= facts.live.high:
        found.append(f"live entries: {facts.live}, oracle {live}")
    return found


def _unequal(what: str, mine: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    return [
        f"{what}, {key}: {mine.get(key)}, oracle {value}"
        for key, value in theirs.items()
        if mine.get(key) != value
    ]


def _files(facts: StoreFacts) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for one in facts.files:
        found[one.file.number] = {
            "level": one.file.level,
            "bytes": one.file.size_bytes,
            "family": one.file.family_id,
            "lowest sequence": one.file.smallest_sequence,
            "highest sequence": one.file.largest_sequence,
        }
        if one.properties is not None:
            found[one.file.number] |= {
                "entries": one.properties.entries,
                "deletions": one.properties.deletions,
            }
    return found


def _offsets(facts: StoreFacts) -> dict[str, str]:
    """Encode what the reader decoded, so that it can be compared byte by byte."""
    told = facts.offsets
    if told is None:
        return {}
    found = {name.encode().hex(): one.value.to_bytes(8, "big", signed=True) for name, one in told.offsets}
    if told.status is not None:
        found[b"status".hex()] = told.status.value.to_bytes(8, "big")
    if told.position_sequence is not None:
        found[_POSITION] = b""  # what it says is not read
    return {key: value.hex() for key, value in found.items()}
