"""`scan` and `replay`: one look at a directory, or a recorded run, through the same rules as live watching."""

from __future__ import annotations

import re
from pathlib import Path

from agent import __version__
from agent.cli.output import exit_code, print_findings
from agent.clock import SystemClock
from agent.config import Config
from agent.contract.digest import hex_digest
from agent.contract.events import Kind, Origin, Record
from agent.errors import UsageError
from agent.inventory.disk import EntryKind, Unseen
from agent.layout.shape import is_application, is_surely_application
from agent.observe.kernel_disk import KernelDisk
from agent.observe.volume import volume_kind
from agent.replay.memory_disk import MemoryDisk
from agent.runtime.events_directory import EventsDirectory
from agent.runtime.names import make_pseudonyms
from agent.runtime.pipeline import Pipeline
from agent.runtime.replay_run import first_time_us, replay

_DURATION = re.compile(r"(\d+)(s|m|h)", re.ASCII)
_UNITS_US = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
JUDGED_AFTER_US = 3_600_000_000
"""A scan judges as if the disk had been quiet for an hour: rules that wait have waited."""


def parse_duration_us(text: str) -> int:
    """Read `90s`, `20m` or `1h`.

    Raises:
        UsageError: anything else.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a time; write for example 90s, 20m or 1h")
    return int(match[1]) * _UNITS_US[match[2]]


def require_state_dir_name(text: str) -> None:
    """Refuse to run without a state directory.

    Raises:
        UsageError: no name was given.
    """
    if not text:
        raise UsageError(
            "no state directory given: statewarden run STATE_DIR, or state_dir in [agent] of --config"
        )


def scan(directory: Path, config: Config, *, as_json: bool, fail_on: str) -> int:
    """Look at a state directory once and judge it.

    Returns:
        Exit code.

    Raises:
        UsageError: it is not there, cannot be read, or is not a state directory.
    """
    disk = KernelDisk(directory)
    require_state_directory(disk, directory)
    pod = config.agent.pod or directory.resolve().name
    now_us = SystemClock().now_us()
    pipeline = Pipeline(disk, config.applications, now_us, lambda record: None)
    pipeline.inventory.volume = volume_kind(directory)
    pipeline.scan(now_us)
    pipeline.beat(now_us)
    pipeline.summarise(now_us + JUDGED_AFTER_US)
    findings = pipeline.ledger.findings()
    print_findings(findings, pod, as_json=as_json)
    return exit_code(findings, fail_on)


def replay_trace(
    trace: Path,
    config: Config,
    *,
    pod: str,
    events: Path | None,
    quiet_us: int,
    show_process: bool,
    as_json: bool,
    fail_on: str,
) -> int:
    """Replay a trace and judge it.

    Returns:
        Exit code.

    Raises:
        TraceError: the trace is unreadable or truncated.
        UsageError: the events directory cannot be written.
    """
    started_us = first_time_us(trace)
    disk = MemoryDisk()
    origin = Origin(
        pod_uid=config.agent.pod_uid or pod,
        boot_id=hex_digest(f"{pod}/{trace.name}/{started_us}".encode())[:12],
        pod=pod,
        namespace=config.agent.namespace,
        node=config.agent.node,
        agent_version=__version__,
    )
    with EventsDirectory(events, origin) as sink:
        pipeline = Pipeline(disk, config.applications, started_us, sink.append)
        pseudonyms = make_pseudonyms(config, pipeline.inventory)
        if pseudonyms is not None:
            pipeline.emit = lambda record: sink.append(pseudonyms.record(record))
        sink.append(Record(Kind.LIFECYCLE, started_us, {"phase": "started", "reason": "replay"}))
        replay(trace, pipeline, disk, quiet_us, show_process=show_process)
    findings = pipeline.ledger.findings()
    print_findings(findings, pod, as_json=as_json)
    return exit_code(findings, fail_on)


def require_state_directory(disk: KernelDisk, directory: Path) -> None:
    """Refuse what is not a readable state directory.

    Raises:
        UsageError: says what was found and what to give instead.
    """
    entries = disk.list("")
    if entries is Unseen.VANISHED:
        what = "not a directory" if directory.exists() else "no such directory"
        raise UsageError(f"{directory}: {what}; give Kafka Streams' state.dir")
    if entries is Unseen.DENIED:
        raise UsageError(
            f"{directory}: permission denied; Kafka Streams makes its directories 0750, so run with the"
            " application's group (in Kubernetes: the same runAsGroup)"
        )
    if isinstance(entries, Unseen):
        raise UsageError(f"{directory}: cannot be listed ({entries.value}); give Kafka Streams' state.dir")
    found = {entry.name for entry in entries}
    if is_surely_application(found):
        raise UsageError(
            f"{directory}: this is an application directory; give its parent, Kafka Streams' state.dir:"
            f" {directory.resolve().parent}"
        )
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
        raise UsageError(
            f"{directory / denied[0]}: permission denied; Kafka Streams makes its directories 0750, so run with"
            " the application's group (in Kubernetes: the same runAsGroup)"
        )
    raise UsageError(
        f"{directory}: not a Kafka Streams state directory: none of its {len(children)} sub-directories has task"
        " directories (such as 0_0), a .lock or kafka-streams-process-metadata"
    )
