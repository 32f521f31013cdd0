"""What pages show, sorted: lines to type, commands within sentences, output, data, and what holds no command."""

from __future__ import annotations

import re
from functools import cache

from tests.docs import ours, programs
from tests.docs.pages import Block, blocks, inline
from tests.docs.shell import Line, commands, typed
from tests.docs.table import Entry, entries, filled, is_about, marker
from tests.docs.verdicts import VERDICT

DATA = ("yaml", "toml", "python", "json")
"""Languages of blocks that are read, not typed."""

TYPED_LANGUAGES = ("", "bash", "console", "text")
SERVED = "http://localhost:9464"
CODE = "echo $?"
_SETTINGS = re.compile(r"^(?:[A-Z_]+=\S+ )+")
_CUT = re.compile(r"(?:^|\s)\.\.\.(?:\s|$)")


def printed(block: Block) -> Entry | None:
    """Give the entry that says what prints a block; None = it is not output by itself."""
    return next((entry for entry in entries("output") if is_about(entry, block.page, block.text)), None)


def is_verdict(block: Block) -> bool:
    """Return whether a block is what `verify` prints."""
    return VERDICT.match(block.text) is not None


@cache
def lines_of_blocks() -> tuple[Line, ...]:
    """List every line that somebody may type."""
    return tuple(
        line
        for block in blocks()
        if block.language not in DATA and not (marker(block) or printed(block) or is_verdict(block))
        for line in typed(block)
    )


@cache
def lines_of_sentences() -> tuple[Line, ...]:
    """List inline code that is a command, each text once: a program with arguments, none of them cut."""
    found: dict[str, Line] = {}
    for one in inline():
        words = _SETTINGS.sub("", one.text).split()
        is_ours = bool(words) and (words[0] in ours.PROGRAMS or programs.is_known(words[0]))
        if is_ours and len(words) > 1 and not _CUT.search(one.text):
            found.setdefault(one.text, Line(one.place, one.text))
    return tuple(found.values())


@cache
def parts() -> tuple[Line, ...]:
    """List commands of ours within sentences that leave out the program: `compact --retain`."""
    names = {name for program in ours.PROGRAMS for name in ours.names_of(program)}
    found: dict[str, Line] = {}
    for one in inline():
        words = one.text.split()
        if len(words) > 1 and words[0] in names and words[1].startswith("--") and not _CUT.search(one.text):
            found.setdefault(one.text, Line(one.place, one.text))
    return tuple(found.values())


@cache
def addresses() -> tuple[Line, ...]:
    """List the agent's addresses within sentences, each once."""
    found = {one.text: Line(one.place, one.text) for one in inline() if one.text.startswith(SERVED)}
    return tuple(found.values())


@cache
def lines_to_run() -> tuple[Line, ...]:
    """List lines of one command of ours for which the small world suffices."""
    found = []
    for line in (*lines_of_blocks(), *lines_of_sentences()):
        simple = list(commands(line.text))
        if len(simple) == 1 and simple[0].words and simple[0].words[0] in ours.PROGRAMS:
            words = filled(line.page, line.text, simple[0].words, ANYWHERE)
            if ours.is_run(words):
                found.append(line)
    return tuple(found)


def shown_code(line: Line) -> int | None:
    """Give the exit code that a page shows below a command with `echo $?`; None = it shows none."""
    lines = lines_of_blocks()
    if line not in lines:
        return None
    following = lines[lines.index(line) + 1 :][:1]
    return int(following[0].shown[0]) if following and following[0].text == CODE else None


class _Anywhere(dict[str, str]):
    """Any name's value, before there is a small world."""

    def __missing__(self, name: str) -> str:
        return f"/there/{name}"


ANYWHERE = _Anywhere()
