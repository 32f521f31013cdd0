"""Arguments, exit codes and complaints of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import catalogue, main
from agent.cli.version import version_text
from tests.agent.cli.commands import PLAIN, Said

UNSURE = [
    "--set", "processing_guarantee=exactly_once", "--set", "kafka_streams_version=2.1.1", "--set", "upgrade_from=2.1.1",
]  # fmt: skip
"""With these the planted damage is a suspicion: an owner of that release may have wiped the store."""


def test_version_and_help_are_said_on_standard_output(statewarden: Callable) -> None:
    """Both exit with 0, however they are asked for."""
    for words in (("--version",), ("-V",)):
        assert statewarden(*words) == Said(0, version_text(), "")
    assert statewarden("help", "scan") == statewarden("scan", "--help")
    assert statewarden("help").out.startswith("usage: statewarden COMMAND")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "usage: statewarden COMMAND"),
        (("--loud",), "unrecognized arguments: --loud"),
        (("audit",), "invalid choice: 'audit'"),
        (("scan",), "the following arguments are required: STATE_DIR"),
        (("replay",), "the following arguments are required: TRACE"),
        (("scan", "x", "--fail-on", "fatal"), "invalid choice: 'fatal'"),
        (("scan", "x", "--loud"), "unrecognized arguments: --loud"),
        (
            ("scan", "x", "--disable-detector", "torn-store"),
            "--disable-detector: torn-store: expected ID=REASON",
        ),
        *((("scan", "x", f"--top={n}"), ": must be 1 or more") for n in ("0", "-1", "many")),
    ],
)
def test_wrong_use_is_exit_code_2(statewarden: Callable, arguments: tuple[str, ...], words: str) -> None:
    """What the parser refuses is told on stderr, with 2."""
    said = statewarden(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert words in said.err


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("processing_guarantee=exactly_twice", "must be one of at_least_once, exactly_once, "),
        ("num_standby_replicas=-1", "must be a whole number, 0 or more"),
        ("commit_interval_ms=1s", "must be a whole number of milliseconds"),
        ("state_cleanup_delay_ms=-1", "1 or more: with less KafkaStreams.start throws"),
        ("app:kafka_streams_version=new", "kafka_streams_version=new: "),
        ("num_standby_replicas", "expected KEY=VALUE or APPLICATION:KEY=VALUE"),
    ],
)
def test_a_bad_value_is_named_with_the_reason(statewarden: Callable, pair: str, words: str) -> None:
    """A value that Kafka would refuse is refused here, with what it must be."""
    said = statewarden("check-config", "--set", pair)
    assert said.code == 2
    assert said.complaint.startswith("statewarden: --set")
    assert words in said.complaint


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 1),
        (["--fail-on", "critical"], 1),
        (["--fail-on", "info"], 1),
        (UNSURE, 0),
        ([*UNSURE, "--fail-on", "warning"], 1),
    ],
)
def test_the_exit_code_follows_fail_on(
    statewarden: Callable, damaged: Path, arguments: list[str], code: int
) -> None:
    """1 as soon as an open finding is as loud as asked for, else 0; later settings win."""
    said = statewarden("scan", damaged, *PLAIN, *arguments)
    assert said.code == code
    assert said.err == ""


def test_run_needs_a_state_directory(statewarden: Callable) -> None:
    """The sidecar does not guess what to watch."""
    said = statewarden("run", "--listen", "")
    assert said.code == 2
    assert said.complaint == (
        "statewarden: no state directory given: statewarden run STATE_DIR, or state_dir in [agent] of --config\n"
    )


def test_an_interrupt_is_130(statewarden: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends without a traceback, with the shell's code for it."""

    def interrupt(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "list_detectors", interrupt)
    assert main(["detectors"]) == 130


def test_a_reader_that_has_enough_changes_no_verdict(repository: Path, damaged: Path) -> None:
    """`statewarden scan | head -1` under `pipefail` is a gate, too: the exit code is the one that was computed."""
    assert without_reader(repository, "scan", damaged, *PLAIN) == (1, "")
    assert without_reader(repository, "scan", damaged, "--json", *PLAIN, *UNSURE) == (0, "")


OUTPUTS = {
    "full": ("> /dev/full", "can't write standard output: No space left on device"),
    "closed": (">&-", "standard output is closed; nothing was written"),
}


@pytest.mark.parametrize(
    ("arguments", "output"),
    [(x, "full") for x in ("scan DIR --json", "explain torn-store", "--help")]
    + [(x, "closed") for x in ("scan DIR", "--version")],
)
def test_output_that_cannot_be_written_is_exit_code_4(
    repository: Path, damaged: Path, arguments: str, output: str
) -> None:
    """A full disk is no finding, and no all-clear: one line says what it is."""
    words = arguments.replace("DIR", str(damaged))
    redirection, complaint = OUTPUTS[output]
    done = shell(repository, f"exec {sys.executable} -m agent {words} {redirection}")
    assert (done.returncode, done.stderr) == (4, f"statewarden: {complaint}\n")


def test_without_any_stream_the_exit_code_is_left(repository: Path, damaged: Path) -> None:
    """Nobody can be told, but 4 it is, and 2."""
    done = shell(repository, f"exec {sys.executable} -m agent scan {damaged} >&- 2>&-")
    assert (done.returncode, done.stderr) == (4, "")
    done = shell(repository, f"exec {sys.executable} -m agent scan nowhere 2>&-")
    assert done.returncode == 2


def test_a_log_without_standard_output_goes_to_the_other_stream(repository: Path, damaged: Path) -> None:
    """The sidecar's log is no command's output: whoever closes it gets it where complaints go."""
    done = shell(repository, f"exec {sys.executable} -m agent run {damaged} --listen 1.2.3.4:1 >&-")
    assert done.returncode == 2
    assert "cannot listen on 1.2.3.4:1" in done.stderr
    assert "Traceback" not in done.stderr


def shell(repository: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script], cwd=repository, capture_output=True, text=True, timeout=240, check=False
    )


def without_reader(repository: Path, *arguments: object) -> tuple[int, str]:
    """Run a command into a pipe that nobody reads; give exit code and complaints."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "agent", *map(str, arguments)],
            cwd=repository, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=240, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["scna", "x"], "did you mean scan?"),
        (["scan", "x", "--fial-on", "critical"], "did you mean --fail-on?"),
        (["scan", "x", "--fail-on", "critcal"], "did you mean critical?"),
    ],
)
def test_what_is_spelt_like_it_is_offered(
    statewarden: Callable[..., Said], words: list[str], near: str
) -> None:
    """Commands, options and choices."""
    said = statewarden(*words)
    assert (said.code, near in said.err) == (2, True)
