"""`spool inspect | verify | export | repair`: what waits on the agent's own volume, and how to rescue it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter
from pathlib import Path

from agent.contract.codec import printable, rfc3339
from agent.errors import UsageError
from agent.ship.repair import repair
from agent.ship.segments import RangeName, range_stem
from agent.ship.sinks.base import object_name
from agent.ship.sinks.directory import DirectorySink
from agent.ship.survey import FileReport, Survey, holes, survey, whole_lines_of


def add_spool(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its four parts."""
    spool = commands.add_parser("spool", help="look into a spool directory, check it, rescue what is in it")
    parts = spool.add_subparsers(title="parts", required=True, metavar="PART")
    for name, text, command in (
        ("inspect", "list its files (reads only, also beside a running agent)", inspect),
        ("verify", "check every record; exit 1 if a file is damaged (reads only)", verify),
        (
            "export",
            "write every whole record as JSON lines, or as segments for the rollup (reads only)",
            export,
        ),
        (
            "repair",
            "cut torn tails, quarantine damage, take whole records out of it (no agent may run)",
            mend,
        ),
    ):
        part = parts.add_parser(name, help=text, description=text)
        part.add_argument("directory", type=Path, metavar="SPOOL_DIR", help="the agent's --spool")
        part.set_defaults(command=command)
        if name == "export":
            part.add_argument("--to", type=Path, metavar="DIR", help="write segments here instead of stdout")
            continue
        part.add_argument("--json", action="store_true", help="one file (repair: one result) per line")
        if name == "repair":
            part.add_argument(
                "--retry-rejected", action="store_true", help="let what the sink rejected be shipped again"
            )


def inspect(chosen: argparse.Namespace) -> int:
    """List files, then totals.

    Raises:
        SpoolError: it cannot be read as a spool.
    """
    found = survey(chosen.directory)
    if chosen.json:
        _print_json(found.files)
        return 0
    head = ("state", "boot", "sequences", "records", "bytes", "oldest", "kinds")
    rows = [_row(x) for x in found.files]
    _print_table([head, *rows] if rows else [])
    _print_totals(found)
    return 0


def verify(chosen: argparse.Namespace) -> int:
    """Check all files.

    Returns:
        0 = all is whole (a torn tail is normal), 1 = a file is damaged.

    Raises:
        SpoolError: it cannot be read as a spool.
    """
    found = survey(chosen.directory)
    if chosen.json:
        _print_json(found.faulty)
        return int(bool(found.faulty))
    for report in found.faulty:
        sys.stdout.write(f"damaged   {printable(report.name)}: {report.fault}\n")
    for report in found.files:
        if report.torn_bytes:
            sys.stdout.write(
                f"torn      {printable(report.name)}: {report.torn_bytes} bytes; the next start cuts them\n"
            )
    for boot_id, first, last in holes(found.files):
        sys.stdout.write(f"not here  {boot_id} {first} to {last}: shipped before, or given up\n")
    records = sum(x.records for x in found.files)
    sys.stdout.write(
        f"{len(found.files)} files, {records} whole records, {len(found.faulty)} files damaged\n"
    )
    return int(bool(found.faulty))


def export(chosen: argparse.Namespace) -> int:
    """Copy every whole record out, quarantined and rejected files included.

    Raises:
        SpoolError: it cannot be read as a spool.
        UsageError: the target cannot be written.
    """
    found = survey(chosen.directory)
    sink = DirectorySink(chosen.to) if chosen.to is not None else None
    count = 0
    for report in found.files:
        lines = whole_lines_of(chosen.directory, report)
        count += len(lines)
        payload = b"".join(line + b"\n" for line in lines)
        if sink is None:
            sys.stdout.write(payload.decode("ascii"))
        elif lines:
            try:
                sink.put(_object_name(lines, report), payload)
            except Exception as error:
                raise UsageError(f"{chosen.to}: cannot be written: {error}") from error
    if sink is not None:
        sys.stdout.write(f"{chosen.to}: {count} records of {len(found.files)} files\n")
    return 0


def mend(chosen: argparse.Namespace) -> int:
    """Repair.

    Raises:
        SpoolError: it is in use, or its volume refuses.
    """
    survey(chosen.directory)  # says so if it is no spool, before a lock is made in it
    done = repair(chosen.directory, retry_rejected=chosen.retry_rejected)
    if chosen.json:
        sys.stdout.write(json.dumps(dataclasses.asdict(done)) + "\n")
        return 0
    for name, value in dataclasses.asdict(done).items():
        sys.stdout.write(f"{name.replace('_', ' '):<18}{value}\n")
    return 0


def _object_name(lines: tuple[bytes, ...], report: FileReport) -> str:
    """Name what is whole of a file as the shipper would, so that exporting and shipping meet in one name."""
    events = [json.loads(line)["data"] for line in lines]
    first, last = (report.first, report.last) if report.fault is None else _ends(events)
    stem = range_stem(RangeName(report.boot_id, first, last, len(lines)))
    return object_name(str(events[0]["pod_uid"]), stem)


def _ends(events: list[dict[str, int]]) -> tuple[int, int]:
    return events[0]["sequence"], events[-1]["sequence"]


def _row(report: FileReport) -> tuple[str, ...]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.kinds.items()))
    if report.torn_bytes:
        kinds += f"; {report.torn_bytes} bytes half-written"
    return (
        "damaged" if report.fault and report.state != "bad" else report.state,
        printable(report.boot_id),
        f"{report.first}-{report.last}" if report.last >= report.first else "-",
        str(report.records),
        f"{report.size_bytes:,}",
        rfc3339(report.oldest_at_us)[:19] + "Z" if report.oldest_at_us else "-",
        printable(kinds) or "-",
    )


def _print_totals(found: Survey) -> None:
    states = Counter(x.state for x in found.files)
    told = ", ".join(
        f"{states[name]} {name}" for name in ("open", "sealed", "rejected", "bad") if states[name]
    )
    size, records = sum(x.size_bytes for x in found.files), sum(x.records for x in found.files)
    written = f"format {found.position.format}" if found.position.format else "no position file"
    sys.stdout.write(f"{told or 'no segments'}; {records} records, {size:,} bytes; {written}\n")


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    for row in rows:
        cells = [
            cell.rjust(width) if i in (3, 4) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _print_json(reports: tuple[FileReport, ...]) -> None:
    for report in reports:
        sys.stdout.write(json.dumps(dataclasses.asdict(report)) + "\n")
