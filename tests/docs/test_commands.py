"""Every command that a page shows works: parsed, compared with what it names, and run where a small world suffices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import machine, ours, programs
from tests.docs.fixture import World, world
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.shapes import missing
from tests.docs.shell import Command, Line, commands
from tests.docs.shown import (
    addresses,
    is_verdict,
    lines_of_blocks,
    lines_of_sentences,
    lines_to_run,
    parts,
    printed,
    shown_code,
)
from tests.docs.table import filled
from tests.docs.verdicts import VERDICT, printed_again
from tests.support.every import every

SESSIONS = [line for line in lines_of_blocks() if VERDICT.match("\n".join(line.shown))]
OUTPUT = [block for block in blocks() if printed(block)]
VERDICTS = [block for block in blocks() if is_verdict(block)]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give the small world."""
    with world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting comes from the environment, and what is written by the way is written away."""
    for name in set(os.environ) - set(ours.without_settings()):
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def faults(line: Line, small: World, *, in_a_sentence: bool) -> list[str]:
    """Say what is wrong with each command of a line."""
    found = [fault(line, command, small, in_a_sentence=in_a_sentence) for command in commands(line.text)]
    assert found, "no command"
    return list(filter(None, found))


def fault(line: Line, command: Command, small: World, *, in_a_sentence: bool) -> str:
    """Say what is wrong with one command; empty = nothing."""
    if not command.words:
        return ours.check_environment(command.settings)
    words = filled(line.page, line.text, command.words, small)
    if words[0] == "export":
        return ours.check_environment(dict(word.split("=", 1) for word in words[1:]))
    if words[0] in ours.PROGRAMS:
        return ours.check(words, in_a_sentence=in_a_sentence)
    return programs.check(words)


@every("line", lines_of_blocks(), ids=lambda line: line.place)
def test_a_line_of_a_block(line: Line, small: World) -> None:
    """It can be typed as it is, but for its placeholders."""
    assert faults(line, small, in_a_sentence=False) == []


@every("line", lines_of_sentences(), ids=lambda line: line.place)
def test_a_command_in_a_sentence(line: Line, small: World) -> None:
    """It may be the name of a command or leave out what is required; what is there is right."""
    assert faults(line, small, in_a_sentence=True) == []


@every("line", parts(), ids=lambda line: line.place)
def test_a_command_without_its_program(line: Line, small: World) -> None:
    """It is right for one of our programs."""
    (command,) = commands(line.text)
    named = [program for program in ours.PROGRAMS if command.words[0] in ours.names_of(program)]
    said = [fault(line, Command({}, (x, *command.words)), small, in_a_sentence=True) for x in named]
    assert "" in said


@every("line", addresses(), ids=lambda line: line.place)
def test_an_address_is_served(line: Line) -> None:
    """The agent answers there."""
    assert programs.check_address(line.text) == ""


@pytest.mark.parametrize("line", lines_to_run(), ids=lambda line: line.place)
def test_a_command_of_ours_ends_as_expected(line: Line, small: World) -> None:
    """On real files: the exit code is the expected one, and the output is what the page shows below the command."""
    (command,) = commands(line.text)
    words = filled(line.page, line.text, command.words, small)
    code, said = ours.run(words)
    assert code == ours.expected_code(words), said
    assert shown_code(line) in (None, code)
    assert missing(line.shown, said) == []


@pytest.mark.parametrize("line", machine.lines(), ids=lambda line: line.place)
def test_a_command_of_every_machine_is_run(line: Line, small: World, tmp_path: Path) -> None:
    """`cp`, `ls`, `grep` and the like, on a copy of the directory: nothing that a page names is missing there."""
    done = machine.run(line, small, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@every("block", OUTPUT, ids=lambda block: block.place)
def test_output_by_itself_is_what_is_printed(block: Block, small: World) -> None:
    """Piece by piece, in this order."""
    entry = printed(block)
    assert entry is not None
    if "file" in entry:
        head, *shown = block.text.splitlines()
        said = (ROOT / entry["file"]).read_text("utf-8")
        assert f"alertname: {head.split()[0]}\n" in said
    else:
        shown = block.text.splitlines()
        said = ours.run([word.format(**small) for word in entry["command"].split()])[1]
    assert missing(shown, said) == []


@every("text", [x.text for x in VERDICTS] + ["\n".join(x.shown) + "\n" for x in SESSIONS])
def test_verdicts_are_in_the_words_of_today(text: str) -> None:
    """What `verify` would print of the same numbers, to the letter."""
    assert printed_again(text) == text
