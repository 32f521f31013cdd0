"""`scan` and `replay`: one reading of a directory, or a recorded run, through the same rules as live watching."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.cli.arguments import full_path
from agent.cli.first_start import is_before_first_start
from agent.cli.output import Reading, Shown, print_findings
from agent.cli.progress import CountingObserver, progress_line, without_collections
from agent.cli.streams import complain
from agent.clock import SystemClock
from agent.config import Config
from agent.config.facts import PROPERTIES
from agent.contract.codec import Encoder, printable
from agent.contract.digest import hex_digest
from agent.contract.events import Kind, Origin, Record
from agent.contract.exit_codes import Exit
from agent.contract.finding import Finding
from agent.engine.disabled import in_words
from agent.engine.one_reading import (
    SETTLE_S,
    coverage,
    judge_again,
    judge_once,
    needs_second_reading,
    strangers,
)
from agent.engine.pipeline import Pipeline
from agent.engine.unread import unused
from agent.errors import UnreadError, UsageError
from agent.inventory.disk import Disk, EntryKind, Unseen
from agent.inventory.nested import nested
from agent.layout.shape import is_application, is_surely_application, is_task, is_topology
from agent.observe.kernel_disk import KernelDisk
from agent.observe.volume import volume_kind
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from agent.ship.sinks.base import object_name
from agent.ship.sinks.directory import DirectorySink

_DURATION = re.compile(r"(\d+)(s|m|h)", re.ASCII)
_UNITS_US = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
ONE_READING = "a scan can't see past restarts; only a running agent can"


def parse_duration_us(text: str) -> int:
    """Read `90s`, `20m` or `1h`. Raises `UsageError`: anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a time; write for example 90s, 20m or 1h")
    return int(match[1]) * _UNITS_US[match[2]]


def require_state_dir_name(text: str, command: str) -> None:
    """Refuse to run a command without a state directory. Raises `UsageError`: no name was given."""
    if not text:
        raise UsageError(
            f"no state directory given: statewarden {command} STATE_DIR, or state_dir in [agent] of --config"
        )


def scan(
    directory: Path,
    config: Config,
    *,
    shown: Shown,
    fail_on: str,
    may_be_empty: bool = False,
    pause: Callable[[float], object] = time.sleep,
) -> int:
    """Read a state directory once and judge it; twice where a process works and files are missing.

    `shown`: how much is printed, and how. `fail_on`: severity from which an open finding makes the exit code 1.
    `may_be_empty`: a directory before its first start, missing or empty, is no mistake. `pause`: how to wait, in
    seconds. Raises `UsageError`: it is not there, or is not a state directory. Raises `UnreadError`: it may not be
    read.
    """
    pod = config.agent.pod or full_path(directory).rpartition("/")[2]
    if may_be_empty and is_before_first_start(directory):
        closing = f"{directory}: no application has started here yet"
        closing = _and_disabled(closing, config, as_json=shown.as_json)
        return print_findings([], Reading(pod, closing), shown=shown, fail_on=fail_on)
    pipeline, findings, now_us = read_once(directory, config, pause)
    _warn_of_settings(pipeline, config)
    closing = f"read {coverage(pipeline.inventory)}; {ONE_READING}{_from_properties(config)}"
    if left_over := unused(pipeline.inventory, now_us):
        closing += f"\n{printable(left_over)}"
    return _printed(pipeline, findings, pod, shown, fail_on, closing, config)


def read_once(
    directory: Path, config: Config, pause: Callable[[float], object] = time.sleep
) -> tuple[Pipeline, list[Finding], int]:
    """Read a state directory once, twice where a process works and files are missing.

    Gives what was read, what was found, and when (microseconds since the epoch). Raises: see `scan`.
    """
    with reading(directory, config) as (pipeline, now_us, observer):
        pipeline.inventory.volume = volume_kind(directory)
        findings = judge_once(pipeline, now_us)
        if needs_second_reading(pipeline.inventory):
            observer.progress.show_now(
                f"files are missing beside a process: reading again in {SETTLE_S:.0f} s"
            )
            pause(SETTLE_S)
            findings = judge_again(pipeline, SystemClock().now_us())
    return pipeline, findings, now_us


@contextmanager
def reading(directory: Path, config: Config) -> Iterator[tuple[Pipeline, int, CountingObserver]]:
    """Give a pipeline that can read a state directory, the time of the reading, and what shows how far it is.

    Raises: see `scan`.
    """
    disk = KernelDisk(directory)
    with progress_line() as progress, without_collections():
        require_state_directory(disk, directory)
        now_us = SystemClock().now_us()
        pipeline = one_pass(disk, config, now_us)
        pipeline.looker.observer = observer = CountingObserver(disk, progress)
        yield pipeline, now_us, observer


def _printed(
    pipeline: Pipeline,
    findings: list[Finding],
    pod: str,
    shown: Shown,
    fail_on: str,
    closing: str,
    config: Config,
) -> Exit:
    closing = _and_disabled(closing, config, as_json=shown.as_json)
    reading = Reading.of(pipeline, pod, closing)
    return print_findings(
        findings, reading, shown=shown, fail_on=fail_on, accepts=config.applications.accepts
    )


def one_pass(disk: Disk, config: Config, now_us: int) -> Pipeline:
    """Make a pipeline for one reading, of which only the findings are wanted: no record of it goes anywhere."""
    return Pipeline(
        disk, config.applications, now_us, lambda record: None, disabled=config.disabled, wants_summaries=False,
        wants_transitions=False,
    )  # fmt: skip


def _warn_of_settings(pipeline: Pipeline, config: Config) -> None:
    for note in config.notes:
        complain(printable(note))
    unknown = strangers(pipeline.settings, pipeline.inventory)
    if unknown is not None:
        complain(printable(unknown))


def replay_trace(
    trace: Path,
    config: Config,
    *,
    pod: str,
    events: Path | None,
    quiet_us: int,
    show_process: bool,
    shown: Shown,
    fail_on: str,
) -> int:
    """Replay a trace and judge it.

    Raises `TraceError`: the trace is unreadable or truncated. Raises `UsageError`: the trace is not there, or the
    events directory cannot be written.
    """
    if not trace.exists():
        raise UsageError(f"{trace}: no such file")
    started_us = first_time_us(trace)
    disk = MemoryDisk()
    origin = config.agent.origin(hex_digest(f"{pod}/{trace.name}/{started_us}".encode())[:12], pod)
    with events_directory(events, origin) as emit:
        pipeline = Pipeline(disk, config.applications, started_us, emit, disabled=config.disabled)
        emit(Record(Kind.LIFECYCLE, started_us, {"phase": "started", "reason": "replay"}))
        count = replay(trace, pipeline, disk, quiet_us, show_process=show_process)
    findings = pipeline.ledger.findings()
    _warn_of_settings(pipeline, config)
    closing = (
        f"read {coverage(pipeline.inventory)} at the end of {count} recorded operations;"
        f" anything before the first one is unknown{_from_properties(config)}"
    )
    return _printed(pipeline, findings, pod, shown, fail_on, closing, config)


def _from_properties(config: Config) -> str:
    """Name the facts that an application's own file gave, and the file."""
    groups = {"": config.applications.common, **config.applications.own}
    lines = []
    for application, group in groups.items():
        facts = [f"{name}={x.value}" for name, x in group.items() if x.origin == PROPERTIES]
        if facts:
            whom = f" for {application}" if application else ""
            lines.append("\n" + printable(f"from {config.agent.properties}{whom}: {', '.join(facts)}"))
    return "".join(lines)


def _and_disabled(closing: str, config: Config, *, as_json: bool) -> str:
    """Add what was not looked for; where only findings go to the output, it goes to standard error."""
    line = printable(in_words(config.disabled))
    if line and as_json:
        complain(line)
    return f"{closing}\n{line}" if line else closing


def require_state_directory(disk: KernelDisk, directory: Path) -> None:
    """Refuse what is not a readable state directory.

    Raises `UsageError`: says what was found and what to give instead. Raises `UnreadError`: it may not be read.
    """
    entries = disk.list("")
    if entries is Unseen.VANISHED:
        what = "not a directory" if directory.exists() else "no such directory"
        raise UsageError(f"{directory}: {what}; give Kafka Streams' state.dir")
    if entries is Unseen.DENIED:
        raise _denied(directory)
    if isinstance(entries, Unseen):
        raise UnreadError(f"{directory}: cannot be listed ({entries.value}); give Kafka Streams' state.dir")
    found = {entry.name for entry in entries}
    place = directory.resolve()
    if is_task(place.name, found):
        application = place.parents[1] if is_topology(place.parent.name) else place.parent
        raise UsageError(
            f"{directory}: this is a task directory; give Kafka Streams' state.dir, above its application:"
            f" {application.parent}"
        )
    if is_surely_application(found):
        raise UsageError(
            f"{directory}: this is an application directory; give its parent, Kafka Streams' state.dir:"
            f" {place.parent}"
        )
    if not any(entry.kind is EntryKind.SYMLINK for entry in entries):  # which may be one
        _require_application(disk, directory, [e.name for e in entries if e.kind is EntryKind.DIRECTORY])


def _require_application(disk: KernelDisk, directory: Path, children: list[str]) -> None:
    denied = []
    for name in children:
        inner = disk.list(name)
        if inner is Unseen.DENIED:
            denied.append(name)
        elif not isinstance(inner, Unseen) and is_application({entry.name for entry in inner}):
            return
    if denied:
        raise _denied(directory / denied[0])
    if not children:
        raise UsageError(
            f"{directory}: no directory of an application is here; give Kafka Streams' state.dir"
            " (`statewarden scan --may-be-empty` accepts one before its first start)"
        )
    below = nested(disk, children)
    hint = (
        f"; possible state directories below it: {', '.join(str(directory / name) for name in below[:3])}"
        if below
        else ""
    )
    raise UsageError(
        f"{directory}: not a Kafka Streams state directory: none of its {len(children)} sub-directories has task"
        f" directories (such as 0_0), a .lock or kafka-streams-process-metadata{hint}"
    )


def _denied(place: Path) -> UnreadError:
    return UnreadError(
        f"{place}: permission denied; Kafka Streams makes its directories 0750, so run with the application's group"
        " (in Kubernetes: the same runAsGroup)"
    )


SEGMENT_RECORDS = 5_000


@contextmanager
def events_directory(directory: Path | None, origin: Origin) -> Iterator[Callable[[Record], None]]:
    """Give what takes records and writes segments; without a directory it takes them and writes nothing.

    Raises `UsageError`: the directory cannot be written.
    """
    sink = DirectorySink(directory) if directory is not None else None
    encoder, lines, count = Encoder(origin), list[str](), 0

    def write() -> None:
        if sink is None or not lines:
            return
        first = count - len(lines) + 1
        name = object_name(origin.pod_uid, f"{origin.boot_id}-{first:012d}-{count:012d}")
        try:
            sink.put(name, "".join(f"{line}\n" for line in lines).encode("ascii"))
        except Exception as error:
            raise UsageError(f"{directory}: events cannot be written: {error}") from error
        lines.clear()

    def take(record: Record) -> None:
        nonlocal count
        if sink is None:
            return
        count += 1
        lines.append(encoder.encode(record, count))
        if len(lines) >= SEGMENT_RECORDS:
            write()

    try:
        yield take
    finally:
        write()
