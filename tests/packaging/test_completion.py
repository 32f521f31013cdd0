"""Completion scripts in the shells that they are for."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.completion import SHELLS
from agent.cli.main import main as agent_main
from agent.detectors import BY_ID
from spark_rollup.cli import main as rollup_main
from tools.completion.files import programs
from tools.completion.words import Kind, Program

MAINS = {"statewarden": agent_main, "statewarden-rollup": rollup_main}


@pytest.fixture(params=programs(), ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    """Give one of the two programs."""
    found: Program = request.param
    return found


def script_of(program: str, shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Ask a program for its script."""
    capsys.readouterr()
    assert MAINS[program](["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Path]:
    """Give `scripts(shell)`: a directory with the scripts, as a user has them, and some files to complete."""

    def save(shell: str) -> Path:
        for name in MAINS:
            file = f"_{name}" if shell == "zsh" else f"{name}.{shell}"
            (tmp_path / file).write_text(script_of(name, shell, capsys), encoding="utf-8")
        (tmp_path / "work" / "a state").mkdir(parents=True)
        (tmp_path / "work" / "a file").touch()
        return tmp_path

    return save


@pytest.fixture
def bash(scripts: Callable[[str], Path]) -> Callable[[str], list[str]]:
    """Give `bash(line)`: what Tab offers at the end of a line, asked of the function that the script registers."""
    folder = scripts("bash")

    def complete(line: str) -> list[str]:
        words = line.replace("=", " = ").split(" ") if line.endswith("=") else line.split(" ")
        words = [x for x in words[:-1] if x] + [words[-1]]
        program = f"""
            source ./{words[0]}.bash; cd work
            compopt() {{ :; }}   # works only where bash itself calls the function
            COMP_WORDS=({" ".join(f"'{x}'" for x in words)}); COMP_CWORD={len(words) - 1}
            function=$(complete -p {words[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
            $function; for word in "${{COMPREPLY[@]}}"; do echo "$word"; done"""
        done = subprocess.run(
            ["bash", "--norc", "-euc", program],
            cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.splitlines()

    return complete


def test_bash_completes_commands(bash: Callable[[str], list[str]], program: Program) -> None:
    """All of them, or those that begin so."""
    assert bash(f"{program.name} ") == [x.name for x in program.commands]
    assert bash(f"{program.name} --v") == ["--version"]
    assert bash(f"{program.name} ver") == ["verify"]


def test_bash_completes_the_options_of_each_command(
    bash: Callable[[str], list[str]], program: Program
) -> None:
    """Those of this command and no other."""
    for command in program.commands[:3]:
        assert bash(f"{program.name} {command.name} --") == [x.name for x in command.options]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("statewarden scan --fail-on ", ["info", "warning", "critical"]),
        ("statewarden scan --fail-on=", ["info", "warning", "critical"]),
        ("statewarden scan --json --fail-on c", ["critical"]),
        ("statewarden scan ", ["a state"]),
        ("statewarden scan --top ", []),
        ("statewarden run --watch-mode ", ["auto", "inotify", "poll"]),
        ("statewarden explain skipped", ["skipped-eos-wipe", "skipped-record"]),
        ("statewarden explain rules/una", ["rules/unaudited"]),
        ("statewarden explain StatewardenAgentDow", ["StatewardenAgentDown"]),
        ("statewarden completion ", list(SHELLS)),
        ("statewarden-rollup audit --input ", ["a state"]),
        ("statewarden-rollup jars ", ["delta", "s3a", "kafka"]),
    ],
)
def test_bash_completes_values(bash: Callable[[str], list[str]], line: str, offered: list[str]) -> None:
    """What a value can be: words, files, directories, or nothing that is known."""
    assert bash(line) == offered


def test_bash_completes_files(bash: Callable[[str], list[str]]) -> None:
    """Names with blanks stay whole; a directory may lead to a file."""
    assert sorted(bash("statewarden scan --config a")) == ["a file", "a state"]


def test_every_detector_can_be_completed(bash: Callable[[str], list[str]]) -> None:
    """The registry is what is offered."""
    assert set(BY_ID) <= set(bash("statewarden explain "))


def test_every_path_is_known_to_be_one(program: Program) -> None:
    """A value that is called a file or directory is completed as one, wherever it is."""
    for command in program.commands:
        values = [*command.values, *(x.value for x in command.options if x.value is not None)]
        for value in values:
            if value.kind is Kind.OTHER:
                assert not any(part in value.name for part in ("DIR", "FILE", "PATH", ".gz", "WHERE"))


@pytest.mark.parametrize("shell", ["powershell", ""])
def test_another_shell_is_wrong_use(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which ones there are."""
    assert agent_main(["completion", shell]) == 2
    assert "bash" in capsys.readouterr().err


@pytest.fixture
def fish(scripts: Callable[[str], Path]) -> Callable[[str], list[str]]:
    """Give `fish(line)`: what Tab offers at the end of a line, without the descriptions."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed: make packages")
    folder = scripts("fish")

    def complete(line: str) -> list[str]:
        loads = "; ".join(f"source {folder / name}.fish" for name in MAINS)
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"{loads}; complete -C '{line}'"],
            cwd=folder / "work", capture_output=True, text=True, timeout=60, check=False,
            env=os.environ | {"HOME": str(folder)},
        )  # fmt: skip
        assert done.stderr == ""
        return [x.partition("\t")[0] for x in done.stdout.splitlines()]

    return complete


@pytest.mark.packages
def test_fish_completes(fish: Callable[[str], list[str]]) -> None:
    """Commands, options, words, files."""
    for program in programs():
        assert set(fish(f"{program.name} ")) == {x.name for x in program.commands}
    assert fish("statewarden scan --fail") == ["--fail-on"]
    assert fish("statewarden scan --fail-on ") == ["critical", "info", "warning"]
    assert fish("statewarden explain skipped-r") == ["skipped-record"]
    assert fish("statewarden scan ") == ["a state/"]
    assert set(fish("statewarden scan --config ")) == {"a file", "a state/"}


@pytest.mark.packages
def test_zsh_completes(scripts: Callable[[str], Path]) -> None:
    """Typed into a real one: commands, options, words."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed: make packages")
    folder = scripts("zsh")
    set_up = f"PS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep list_beep"
    for typed, whole in (
        ("statewarden detec", "statewarden detectors "),
        ("statewarden scan --fail-", "statewarden scan --fail-on "),
        ("statewarden scan --fail-on crit", "statewarden scan --fail-on critical "),
        ("statewarden explain skipped-r", "statewarden explain skipped-record "),
        ("statewarden-rollup cov", "statewarden-rollup coverage "),
    ):
        assert whole in typed_into_zsh(folder / "work", set_up, typed)


def typed_into_zsh(folder: Path, set_up: str, typed: str) -> str:
    """Type a line and Tab; give the line as it is then, which the shell is made to print."""
    ours, theirs = pty.openpty()
    show = "show() { print -r -- \"<$BUFFER>\"; exit }; zle -N show; bindkey '^X' show"
    process = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, close_fds=True,
        start_new_session=True, env={"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, f"{set_up}; {show}\n{typed}\t\x18".encode())
    said = b""
    try:
        while chunk := os.read(ours, 4096):
            said += chunk
    except OSError:
        pass  # the shell has gone, and the terminal with it
    finally:
        os.close(ours)
        process.wait(timeout=60)
    return said.decode(errors="replace")
