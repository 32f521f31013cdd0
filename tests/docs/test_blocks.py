"""Every block is something that a test checks, or the table says why none does; and the table has nothing idle."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.config import load_config
from agent.detectors import ACCEPTABLE, BY_ID
from tests.docs import machine, ours, programs
from tests.docs.pages import Block, blocks
from tests.docs.shell import Command, commands, typed
from tests.docs.shown import (
    ANYWHERE,
    DATA,
    TYPED_LANGUAGES,
    is_verdict,
    lines_of_blocks,
    lines_of_sentences,
    printed,
)
from tests.docs.table import Entry, entries, filled, is_about, marker, table, value_of
from tests.support.every import every

OWNERS = (
    "# the application\n",
    "# the audit\n",
    "# both\n",
    "# Chart.yaml of the application\n",
    "apiVersion: ",
)
"""How a block of YAML says what it is for, so that tests/charts/test_pages.py knows how to try it."""


def read_toml(block: Block, place: Path) -> None:
    file = place / "statewarden.toml"
    file.write_text(block.text)
    load_config(file=file, environment={}, detectors=BY_ID, acceptable=ACCEPTABLE)


READ: dict[str, Callable[[Block, Path], object]] = {
    "python": lambda block, _: compile(block.text, block.place, "exec"),
    "json": lambda block, _: json.loads(block.text),
    "toml": read_toml,
    "yaml": lambda block, _: block.text.startswith(OWNERS) or pytest.fail(f"begin with one of {OWNERS}"),
}


@pytest.mark.parametrize("block", [x for x in blocks() if x.language in DATA], ids=lambda x: x.place)
def test_data_can_be_read(block: Block, tmp_path: Path) -> None:
    """Python compiles, the agent takes TOML as its configuration, YAML says whose it is."""
    READ[block.language](block, tmp_path)


@every("block", list(blocks()), ids=lambda x: x.place)
def test_a_block_is_checked_or_says_why_not(block: Block) -> None:
    """What is none of ours to check has an entry in the table; all else begins with a program that is known."""
    if block.language in DATA or marker(block) or printed(block) or is_verdict(block):
        return
    assert block.language in TYPED_LANGUAGES, f"no test reads {block.language}"
    lines = list(typed(block))
    assert lines, "an empty block"
    for command in (command for line in lines for command in commands(line.text)):
        assert not command.words or is_program(command.words[0]), (
            f"{command.words[0]}: no program that is known; if this is no command, say in table.toml why not"
        )


def is_program(word: str) -> bool:
    return word in ours.PROGRAMS or programs.is_known(word)


# -- the table ------------------------------------------------------------------------------------------


def simple() -> Iterator[tuple[str, str, Command]]:
    """Give every simple command with its page and line."""
    for line in (*lines_of_blocks(), *lines_of_sentences()):
        for command in commands(line.text):
            yield line.page, line.text, command


@pytest.mark.parametrize("kind", ["marked", "output"])
def test_every_entry_about_a_block_is_needed(kind: str) -> None:
    """An entry goes with the block that it was about."""
    idle = [
        entry
        for entry in entries(kind)
        if not any(is_about(entry, x.page, x.text, x.language) for x in blocks())
    ]
    assert idle == []
    assert all(entry.get("why") or entry.get("command") or entry.get("file") for entry in entries(kind))


def test_every_value_is_needed() -> None:
    """A placeholder that no page uses has no value."""
    used: list[Entry] = []
    for page, line, command in simple():
        for before, word in zip(("", *command.words), command.words, strict=False):
            used += filter(None, [value_of(page, line, before, word)])
    assert [entry for entry in entries("value") if entry not in used] == []


def test_every_path_is_needed() -> None:
    """The same of paths in commands that bash runs."""
    texts = [line.text for line in machine.lines()]
    assert [x for x in entries("path") if not any(re.search(x["word"], text) for text in texts)] == []


def test_every_run_is_needed() -> None:
    """The same of what is run."""
    lines = [" ".join(filled(page, line, command.words, ANYWHERE)) for page, line, command in simple()]
    assert [x for x in entries("run") if not any(re.match(x["line"], line) for line in lines)] == []


def test_every_program_and_option_is_needed() -> None:
    """The same of programs, their sub-commands and their options."""
    words: dict[str, set[str]] = {}
    for _, _, command in simple():
        if command.words:
            found = (programs.option_of(word) for word in command.words[1:])
            words.setdefault(command.words[0], set()).update(found)
    idle = []
    for name, known in table()["tools"].items():
        verbs = known.get("verbs", {})
        wanted = {*known.get("options", ()), *verbs, *(option for verb in verbs.values() for option in verb)}
        idle += [f"{name} {word}" for word in wanted - words.get(name, set())]
        idle += [] if name in words else [name]
    assert idle == []
    assert set(table()["machine"]["programs"]) <= words.keys()
