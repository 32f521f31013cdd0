"""Interrupts: the exit code is the signal's, whatever became of the exception."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import main
from agent.errors import UsageError
from agent.interrupt import guarded
from tests.agent.cli.commands import PLAIN, plant

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


class PanicError(BaseException):
    """As a library in Rust raises it: no `except Exception` sees it."""


def interrupt(number: int = signal.SIGINT) -> None:
    """Send the signal to this process; the handler runs before this returns."""
    os.kill(os.getpid(), number)


def ended(work: Callable[[], int]) -> int:
    """Run it and see that each signal has the handler that it had."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    code = guarded(work)
    assert [signal.getsignal(number) for number in numbers] == before
    return code


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_the_code_is_the_signals(number: int, code: int) -> None:
    """128 and its number; what was begun is cleaned up, even if more signals come."""
    cleaned = []

    def work() -> int:
        try:
            interrupt(number)
        finally:
            interrupt(signal.SIGINT)
            interrupt(signal.SIGTERM)
            cleaned.append(True)
        return 1

    assert ended(work) == code
    assert cleaned == [True]


@pytest.mark.parametrize(
    "instead",
    [
        SystemError("returned NULL without setting an exception"),
        PanicError("KeyboardInterrupt"),
        UsageError("no broker answers"),
        SystemExit(1),
        None,
    ],
)
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_the_code_does_not_depend_on_what_a_library_raises(
    number: int, code: int, instead: BaseException | None
) -> None:
    """It drops the interrupt and raises something else, or nothing and the work ends with a verdict."""

    def work() -> int:
        with contextlib.suppress(KeyboardInterrupt):
            interrupt(number)
        if instead is not None:
            raise instead
        return 1

    assert ended(work) == code


def test_what_a_destructor_drops_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that would go on for long ends soon, and without Python's word on what it dropped; others are told."""
    told: list[object] = []
    hook = told.append
    monkeypatch.setattr(sys, "unraisablehook", hook)

    class Reader:
        def __init__(self, close: Callable[[], None]) -> None:
            self.close = close

        def __del__(self) -> None:
            self.close()

    def fail() -> None:
        raise PanicError

    reached = []

    def work() -> int:
        for close in (fail, interrupt):
            reader = Reader(close)
            del reader
        reached.append(True)  # the interrupt was dropped
        while True:
            signal.pause()

    assert ended(work) == 130
    assert reached == [True]
    assert [x.exc_type for x in told] == [PanicError]  # type: ignore[attr-defined]
    assert sys.unraisablehook is hook


def test_a_second_signal_ends_what_swallowed_the_first() -> None:
    """At once: nothing is being handled any more."""

    def work() -> int:
        with contextlib.suppress(KeyboardInterrupt):
            interrupt(signal.SIGTERM)
        interrupt(signal.SIGINT)
        pytest.fail("went on")

    assert ended(work) == 143


def test_what_no_signal_caused_is_as_it_was() -> None:
    """Codes and exceptions of the work itself."""
    assert guarded(lambda: 1) == 1

    def broken() -> int:
        raise SystemError

    with pytest.raises(SystemError):
        guarded(broken)


def test_an_ignored_signal_stays_ignored() -> None:
    """A shell starts what it sends to the background so."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:

        def work() -> int:
            interrupt(signal.SIGINT)
            return 0

        assert ended(work) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_one_guard_in_another_is_the_outer_one() -> None:
    """A signal between the ends of the two is not lost."""

    def outer() -> int:
        assert guarded(lambda: 0) == 0
        interrupt()
        pytest.fail("went on")

    assert ended(outer) == 130


# ------------------------------------------------------------------------------------- the whole command


# a point may lie between the opening of a listing and the `with` that closes it
@pytest.mark.filterwarnings("ignore:unclosed scandir iterator:ResourceWarning")
def test_a_command_that_is_interrupted_says_so_at_any_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never 0, 1 or 2: these speak of stores. `scan` of a damaged directory would end with 1."""
    state = plant(tmp_path / "state")

    def scan(point: int) -> tuple[int, int]:
        seen = 0

        def count(*_: object) -> None:
            nonlocal seen
            seen += 1
            if seen == point:
                interrupt()

        def armed() -> int:
            before = sys.getprofile()
            sys.setprofile(count)
            try:
                return main(["scan", str(state), *PLAIN])
            finally:
                sys.setprofile(before)

        return ended(armed), seen

    code, calls = scan(0)
    assert code == 1
    for point in range(1, calls, calls // 40):
        code, seen = scan(point)  # a later run may do with less, for what it keeps in memory
        assert (point, code) == (point, 130 if seen >= point else 1)
    assert "statewarden:" not in capsys.readouterr().err


STRUCK = """
import os, runpy, signal, sys

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Strike())
sys.argv = ["statewarden", "detectors"]
{before}
runpy.run_module("agent", run_name="__main__")
"""


def started(repository: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("module", ["agent.cli", "argparse", "agent.detectors", "agent.cli.catalogue"])
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_an_interrupt_while_modules_are_loaded(repository: Path, module: str, number: int, code: int) -> None:
    """No trace of a stack, no other code."""
    done = started(repository, STRUCK.format(module=module, number=int(number), before=""))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


LATE = """
import atexit, os, signal
atexit.register(lambda: os.kill(os.getpid(), {number}))
"""


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_an_interrupt_at_the_interpreters_end(repository: Path, number: int, code: int) -> None:
    """After the command's last word the signal itself ends the process, which a shell calls by the same code."""
    late = LATE.format(number=int(number))
    done = started(repository, STRUCK.format(module="", number=0, before=late))
    assert (128 - done.returncode, done.stderr) == (code, "")


def test_the_installed_command_is_guarded_from_its_start(repository: Path) -> None:
    """It begins where `python -m agent` begins."""
    assert 'statewarden = "agent.__main__:main"' in (repository / "pyproject.toml").read_text()


EXECUTED = """
import sys
from agent.interrupt import guarded
sys.exit(guarded(lambda: exec("import os; os.kill(os.getpid(), {number})"), is_all=True))
"""


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_an_interrupt_within_exec(repository: Path, number: int, code: int) -> None:
    """Every dataclass is made by one; Python ends by SIGINT where a KeyboardInterrupt left it."""
    done = started(repository, EXECUTED.format(number=int(number)))
    assert (done.returncode, done.stderr) == (code, "")
