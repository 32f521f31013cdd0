"""Command line. Arguments are checked before Spark (and its Java) is started."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.contract.codec import printable
from agent.contract.events import Severity
from agent.contract.exit_codes import Exit, answer
from agent.contract.names import not_here
from spark_rollup import clock, screen
from spark_rollup.arguments import decisive, parser
from spark_rollup.config import (
    ALL,
    AuditOptions,
    check_directories,
    check_input,
    is_bronze,
    named_in,
    parse_age,
    parse_as_of,
    parse_conf,
    parse_look_back,
    parse_overrides,
    size_of,
)
from spark_rollup.errors import RollupError, UsageError
from spark_rollup.sources.address import parse_address, parse_brokers, parse_bronze, refuse_address
from spark_rollup.spark import failures, jars
from spark_rollup.spark.outputs import MARKER, VERIFY, check_output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_rollup.bronze.place import Place
    from spark_rollup.intake.opening import Opening
    from spark_rollup.report.page import PageData

WITHOUT_SPARK = (
    "PySpark is not installed here: pip install 'statewarden[rollup]'; it also needs Java 17 or later"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; without arguments, that of the process. Returns the exit code."""
    program = parser()
    parsed = program.parse_args(arguments)
    if parsed.command is None:
        program.print_help(sys.stderr)  # a complaint here, so that no script takes it for an answer
        return Exit.WRONG_USE
    if not parsed.debug:
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # a Java that ended is reported below, once
    try:
        return _COMMANDS[parsed.command](parsed)
    except RollupError as error:
        return _failed(parsed, error, str(error), error.code)
    except Exception as error:  # noqa: BLE001 - the fence of the program: whatever broke, it found nothing
        if isinstance(error, ModuleNotFoundError) and error.name == "pyspark":
            return _failed(parsed, error, WITHOUT_SPARK, Exit.WRONG_USE)
        damage = failures.damage(error)
        if damage:
            return _failed(parsed, error, str(damage), damage.code)
        hint = "" if parsed.debug else " (--debug shows the trace)"
        return _failed(parsed, error, f"{parsed.command} broke: {failures.message(error)}{hint}", Exit.BROKE)


def _failed(parsed: argparse.Namespace, error: Exception, text: str, code: int) -> int:
    if parsed.debug:
        traceback.print_exception(error)
    print(f"statewarden-rollup: {printable(' '.join(text.split()))}", file=sys.stderr)
    return code


def _ingest(parsed: argparse.Namespace) -> int:
    address, opening = parse_address(parsed.input), _opening(parsed, parsed.bronze)
    from spark_rollup.intake import intake

    options = intake.IntakeOptions(
        input=address,
        opening=opening,
        kafka_config=parsed.kafka_config,
        every_s=intake.parse_trigger(parsed.trigger),
        cluster=parsed.cluster,
        again=parsed.again,
    )
    intake.run(options)
    return 0


def _opening(parsed: argparse.Namespace, where: str, option: str = "--bronze") -> Opening:
    from spark_rollup.intake.opening import Opening

    return Opening(
        where=parse_bronze(option, where),
        endpoint=parsed.endpoint,
        region=parsed.region,
        jars=parsed.jars,
        conf=parse_conf(parsed.spark_conf),
        progress=parsed.progress,
        debug=parsed.debug,
    )


@contextmanager
def _bronze(parsed: argparse.Namespace, work: str) -> Iterator[tuple[SparkSession, Place]]:
    """Give a session and bronze, which no other process writes to meanwhile.

    Raises:
        UsageError: it is no bronze, or of another format.
    """
    from spark_rollup.bronze.store import require_bronze

    opening = _opening(parsed, parsed.bronze)
    if "://" not in opening.where:
        require_bronze(Path(opening.where))
    from spark_rollup.bronze.place import size_bytes
    from spark_rollup.intake.claim import claimed
    from spark_rollup.intake.opening import opened
    from spark_rollup.spark import session

    known_bytes = None if "://" in opening.where else size_of(Path(opening.where) / "events")
    with opened(opening, known_bytes) as (spark, bronze):
        require_bronze(bronze)
        session.fit(spark, size_bytes(bronze / "events"), opening.conf)
        with claimed(bronze, work, spark):
            yield spark, bronze


def _jars(parsed: argparse.Namespace) -> int:
    release = jars.installed_spark()
    wanted = jars.pins(release, parsed.source)
    if parsed.names:
        _print([pin.coordinate for pin in wanted])
        return 0
    folder = parsed.jars or jars.default_directory(os.environ, release, parsed.source)
    fetched = jars.fetch(wanted, folder, parsed.repository, os.environ)
    print(f"{fetched} of {len(wanted)} jars fetched for Spark {release}, all in {folder}", file=sys.stderr)
    _print([str(folder / pin.name) for pin in wanted])
    return 0


def _warm_up(parsed: argparse.Namespace) -> int:
    from spark_rollup import warm_up

    print(warm_up.run())
    return 0


def _compact(parsed: argparse.Namespace) -> int:
    from spark_rollup.intake import closed, compact

    parts = []
    with _bronze(parsed, "compact") as (spark, bronze):
        parts.append(f"{compact.run(spark, bronze)} days compacted")
        dropped = compact.tidy(spark, bronze, clock.now_us())
        if parsed.snapshots:
            parts.append(f"{len(closed.run(spark, bronze))} summed up")
        if parsed.retain is not None:
            gone = compact.retain(spark, bronze, parsed.retain)
            parts.append(f"days up to {gone} removed" if gone else "no day removed")
        compact.clean(spark, bronze)
    old = f"; {dropped} lines older than {compact.KEEP_DAYS} days left the quarantine" if dropped else ""
    print(f"{', '.join(parts)} in {bronze}{old}")
    return 0


def _forget(parsed: argparse.Namespace) -> int:
    if not parsed.ids and not parsed.pods and not parsed.files:
        raise UsageError("say what to forget: --id ID, --pod POD or --file FILE")
    if parsed.files and (parsed.ids or parsed.pods):
        raise UsageError(
            "--file cannot be combined with --id or --pod: those read the file, and it is damaged"
        )
    since, until = (
        parse_as_of(text, option) if text else None
        for text, option in ((parsed.since, "--since"), (parsed.until, "--until"))
    )
    from spark_rollup.intake import forget

    with _bronze(parsed, "forget") as (spark, bronze):
        if parsed.files:
            for path in parsed.files:
                beside = forget.remove_file(spark, bronze, path)
                print(f"{path} taken out of {bronze}; {beside} files beside it stay")
            return 0
        chosen = (parsed.ids, parsed.pods, parsed.namespace, since, until)
        number = forget.run(spark, bronze, clock.now_us(), *chosen)
    print(f"{number} events moved from {bronze} to its quarantine")
    return 0


def _audit(parsed: argparse.Namespace) -> int:
    refuse_address("--output", parsed.output)
    opening = _opening(parsed, parsed.input, "--input")
    if "://" not in opening.where:
        check_directories(Path(opening.where), parsed.output)
    check_output(parsed.output)
    from spark_rollup import audit
    from spark_rollup.judging import verified

    if parsed.verified:
        verified.check(parsed.verified)
    with _reading(parsed, parsed.output) as (spark, options):
        found = audit.run(spark, options)
    _report_metrics(found, options, parsed)
    for line in [json.dumps(row) for row in found.findings] if parsed.json else _readable(found, parsed):
        print(line)
    unused = not_here("--set", named_in(options.overrides), found.applications())
    if unused:
        print(f"statewarden-rollup: {printable(unused)}", file=sys.stderr)
    missing = found.lacking()
    if missing and parsed.json:
        print(f"statewarden-rollup: {printable(missing)}: see {options.output / MARKER}", file=sys.stderr)
    return exit_code(found, parsed.fail_on)


def exit_code(found: PageData, fail_on: str) -> Exit:
    """Give the exit code: what an agent cannot tell without a setting is no all-clear."""
    worst = found.worst_open()
    is_bad = worst is not None and worst.rank >= Severity(fail_on).rank
    return answer(found=is_bad, unread=bool(found.lacking() or found.undecided()))


def _readable(found: PageData, parsed: argparse.Namespace) -> list[str]:
    from spark_rollup.report import terminal

    shown = terminal.Shown(parsed.verbose, max(parsed.top, 0), screen.width(), screen.paint())
    return terminal.readable(found, parsed.output / "report.html", shown)


@contextmanager
def _reading(
    parsed: argparse.Namespace, output: Path | None = None
) -> Iterator[tuple[SparkSession, AuditOptions]]:
    """Give a session that fits what is read of the input; say what no snapshot spares."""
    opening = _opening(parsed, parsed.input, "--input")
    make = _options(parsed, output)
    from spark_rollup.bronze.place import ObjectPath
    from spark_rollup.bronze.store import check_format, require_bronze
    from spark_rollup.intake.opening import opened
    from spark_rollup.spark import session

    known_bytes, local = None, Path(opening.where)
    options = make(local)
    if "://" not in opening.where:
        check_input(local)
        if is_bronze(local):
            check_format(local)
        known_bytes = _read_bytes(options)
    delta = known_bytes is None or is_bronze(local)
    with opened(opening, known_bytes, delta=delta, audits=True) as (spark, place):
        if isinstance(place, ObjectPath):
            require_bronze(place)
            options = make(place)
            session.fit(spark, _read_bytes(options), opening.conf)
        yield spark, options


def _read_bytes(options: AuditOptions) -> int:
    """Sum up what is read (bytes), and say what no snapshot spares."""
    from spark_rollup import audit
    from spark_rollup.bronze.place import size_bytes

    what = audit.reading(options)
    if what.missing and options.look_back_days is not None:
        print(
            f"statewarden-rollup: no snapshots of {len(what.missing)} days before the look-back ({what.missing[0]} to "
            f"{what.missing[-1]}), so all of their events are read: `statewarden-rollup compact --snapshots --bronze "
            f"{options.input}` once a day makes them",
            file=sys.stderr,
        )
    return sum(map(size_bytes, what.places(audit.source(options))))


def _report_metrics(found: PageData, options: AuditOptions, parsed: argparse.Namespace) -> None:
    from spark_rollup.registry import severities
    from spark_rollup.report import metrics

    rules = severities(verified=options.verified is not None)
    facts = metrics.Facts(found, rules, time.time_ns() // 1000)
    metrics.write(facts, options.output / metrics.FILE)
    if parsed.textfile:
        metrics.write(facts, parsed.textfile)
    if parsed.pushgateway:
        metrics.push(facts, parsed.pushgateway)


def _verify(parsed: argparse.Namespace) -> int:
    refuse_address("--output", parsed.output)
    brokers = parse_brokers("--kafka", parsed.kafka) if parsed.kafka else None
    opening = _opening(parsed, parsed.digests, "--digests")
    events = parse_bronze("--events", parsed.events) if parsed.events else None
    check_output(parsed.output, VERIFY)
    from spark_rollup.intake.intake import read_properties
    from spark_rollup.verify import run

    client = read_properties(parsed.kafka_config) if parsed.kafka_config else {}
    options = run.VerifyOptions(opening, parsed.output, clock.now_us(), brokers, client, events)
    outcome = run.run(options)
    _print([json.dumps(row) for row in outcome.findings] if parsed.json else run.readable(outcome))
    return answer(found=outcome.worst_rank() >= Severity(parsed.fail_on).rank, unread=outcome.unread > 0)


def _safe_to_restart(parsed: argparse.Namespace) -> int:
    from spark_rollup.report.restart_answer import Question

    question = Question(clock.now_us(), parsed.pod, parsed.namespace, parse_age(parsed.max_age))
    if parsed.source is not None:
        from spark_rollup.report import last_audit

        lines, code = last_audit.safe_to_restart(parsed.source, question, decisive(parsed))
    else:
        from spark_rollup import gate
        from spark_rollup.judging import verified

        if parsed.verified:
            verified.check(parsed.verified)
        with _reading(parsed) as (spark, options):
            lines, code = gate.safe_to_restart(spark, options, question)
    _print([part for line in lines for part in screen.wrapped(line)])
    return code


def _asked(parsed: argparse.Namespace) -> int:
    from spark_rollup import answers

    with _reading(parsed) as (spark, options):
        if parsed.command == "why":
            lines, code = answers.why(spark, options, parsed.task, parsed.application, parsed.namespace)
        else:
            lines, code = answers.covered(spark, options, parsed.namespace)
    _print(lines)
    return code


def _options(parsed: argparse.Namespace, output: Path | None = None) -> Callable[[Place], AuditOptions]:
    """Check what is asked for; what is read is put in later."""
    from spark_rollup.report import expected

    return partial(
        AuditOptions,
        output=output or Path(),
        as_of_us=parse_as_of(parsed.as_of) if parsed.as_of else None,
        overrides=parse_overrides(parsed.settings),
        look_back_days=parse_look_back(parsed.look_back),
        every_event=parsed.look_back == ALL,
        verified=parsed.verified,
        expect=expected.read(parsed.expect) if parsed.expect else None,
    )


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "ingest": _ingest,
    "jars": _jars,
    "warm-up": _warm_up,
    "compact": _compact,
    "forget": _forget,
    "audit": _audit,
    "safe-to-restart": _safe_to_restart,
    "verify": _verify,
    "why": _asked,
    "coverage": _asked,
}


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(printable(line))
