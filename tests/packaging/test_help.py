"""`--help` of every command of both programs is enough for a tired reader: purpose, exit codes, examples that parse."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent.cli.help_pages import PAGES
from agent.cli.main import main as agent_main
from agent.cli.main import make_parser
from spark_rollup import help_pages as rollup_pages
from spark_rollup.arguments import parser as rollup_parser
from spark_rollup.cli import main as rollup_main
from tests.support.every import every

PARSERS: Mapping[str, Callable[[], argparse.ArgumentParser]] = {
    "statewarden": make_parser,
    "statewarden-rollup": rollup_parser,
}
COMMANDS = [("statewarden", name) for name in PAGES] + [
    ("statewarden-rollup", name) for name in rollup_pages.PAGES
]
WIDTH = 80


def parser_of(program: str, command: str = "") -> argparse.ArgumentParser:
    """Give the parser of a program, or of one of its commands."""
    parser = PARSERS[program]()
    if not command:
        return parser
    choices = next(x for x in parser._actions if isinstance(x, argparse._SubParsersAction)).choices
    found = choices[command]
    assert isinstance(found, argparse.ArgumentParser)
    return found


def section(help_text: str, title: str) -> str:
    """Give the lines below a title, up to the next empty one."""
    return help_text.partition(f"\n{title}:\n")[2].partition("\n\n")[0]


def examples(help_text: str) -> list[list[str]]:
    """Read the examples: words of each command, continued lines joined, redirections left out."""
    joined = section(help_text, "examples").replace("\\\n", " ")
    return [shlex.split(line.partition(" > ")[0]) for line in joined.splitlines()]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the terminal as wide as the narrowest that people have, and plain."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")


@every("program, command", [*COMMANDS, ("statewarden", ""), ("statewarden-rollup", "")])
def test_help_says_what_for_exit_codes_and_where_to_read_on(
    program: str, command: str, repository: Path
) -> None:
    """No line is wider than the terminal; pages that are named exist."""
    text = parser_of(program, command).format_help()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.startswith(f"usage: {program} {command or 'COMMAND'}")
    about = text.split("\n\n")[1]
    assert about[0].isupper(), about
    assert about.rstrip().endswith((".", "'")), about
    codes = re.findall(r"^  (\d+)  +\S", section(text, "exit codes"), re.MULTILINE)
    assert codes[0] == "0"
    assert "2" in codes
    assert section(text, "examples")
    for page in re.findall(r"docs/[\w/-]+\.md", text):
        assert (repository / page).is_file(), page


@every("program, command", COMMANDS)
def test_examples_parse(program: str, command: str) -> None:
    """Each example is one of this command, and its own parser takes it."""
    found = examples(parser_of(program, command).format_help())
    assert found
    for name, *words in found:
        assert (name, words[0]) == (program, command)
        PARSERS[program]().parse_args(words)


@pytest.mark.parametrize("program", PARSERS)
def test_examples_of_the_program_parse(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the first page, too; one of them asks for help."""
    for name, *words in examples(parser_of(program).format_help()):
        assert name == program
        if "--help" in words:
            with pytest.raises(SystemExit, match=r"^0$"):
                PARSERS[program]().parse_args(words)
        else:
            PARSERS[program]().parse_args(words)
    capsys.readouterr()


@every("program, command", COMMANDS)
def test_the_synopsis_names_what_has_to_be_given(program: str, command: str) -> None:
    """The synopsis is written by hand: all that is required, and the value of nothing that is not there."""
    parser = parser_of(program, command)
    usage = parser.format_usage()
    for action in parser._actions:
        name = action.option_strings[-1] if action.option_strings else str(action.metavar)
        if action.required and not action.option_strings:
            assert name in usage.split()
        elif action.required:
            assert f"{name} {action.metavar}" in usage
        elif not action.option_strings:
            assert f"[{name}]" in usage
    known = {name for action in parser._actions for name in action.option_strings}
    assert set(re.findall(r"--[\w-]+", usage)) <= known
    assert ("[OPTION ...]" in usage) == (
        len(known - set(re.findall(r"--[\w-]+", usage))) > len({"-h", "--help"})
    )


@every("program, command", COMMANDS)
def test_every_option_says_what_it_does(program: str, command: str) -> None:
    """Each has a sentence, and a name for its value that is not the option's own name."""
    for action in parser_of(program, command)._actions:
        assert action.help, action
        assert action.nargs == 0 or action.metavar, action


@pytest.mark.parametrize(
    ("main", "program"), [(agent_main, "statewarden"), (rollup_main, "statewarden-rollup")]
)
def test_the_name_alone_prints_the_help(
    main: Callable[[list[str]], int], program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a complaint, with 2: a script whose command is empty must not go on."""
    assert main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == parser_of(program).format_help()
