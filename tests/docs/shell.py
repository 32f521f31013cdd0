"""Text of a block -> the commands that somebody would type, and what the page shows below them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.docs.pages import Block

PROMPT = "$ "
SEPARATORS = frozenset({"|", "||", "&&", ";", "(", ")"})
_COMMENT = re.compile(r"(?:^|\s)#\s.*$")
_ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=")


@dataclass(frozen=True)
class Line:
    """A line to type, continuations joined, and what is shown below it."""

    place: str  # page and line
    text: str  # without prompt and comment
    shown: Sequence[str] = ()  # lines of output

    @property
    def page(self) -> str:
        """Give the page alone."""
        return self.place.rpartition(":")[0]


@dataclass(frozen=True)
class Command:
    """One program with its arguments, as the shell would start it."""

    settings: dict[str, str]  # variables set in front of it
    words: tuple[str, ...]  # program and arguments; empty = only variables


def is_session(block: Block) -> bool:
    """Return whether commands have a prompt and the rest is output."""
    return any(line.startswith(PROMPT) for line in block.text.splitlines())


def typed(block: Block) -> Iterator[Line]:
    """Give the lines to type: all of a plain block, those with a prompt of a session."""
    lines = list(enumerate(block.text.splitlines(), start=block.line))
    session = is_session(block)
    while lines:
        number, text = lines.pop(0)
        if session and not text.startswith(PROMPT):
            continue
        parts = [text.removeprefix(PROMPT)]
        while parts[-1].endswith("\\") and lines:
            parts[-1] = parts[-1][:-1].rstrip()
            parts.append(lines.pop(0)[1].strip())
        shown = []
        while session and lines and not lines[0][1].startswith(PROMPT):
            shown.append(lines.pop(0)[1])
        whole = _COMMENT.sub("", " ".join(parts)).strip()
        if whole:
            yield Line(f"{block.page}:{number}", whole, tuple(shown))


def commands(text: str) -> Iterator[Command]:
    """Split a line where the shell would; what `$(...)` starts comes first, what `kubectl exec` starts last.

    Raises:
        ValueError: a quotation is open.
    """
    for inner in substitutions(text):
        yield from commands(inner)
    words = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    words.whitespace_split = True
    words.commenters = ""
    simple: list[str] = []
    skip = False
    for word in words:
        if word in SEPARATORS:
            yield from _command(simple)
            simple = []
        elif set(word) <= set("<>&"):
            skip = True
            if simple and simple[-1].isdecimal():
                simple.pop()  # the descriptor of `2>`
        elif skip:
            skip = False
        else:
            simple.append(word)
    yield from _command(simple)


def substitutions(text: str) -> Iterator[str]:
    """Give what is between `$(` and its closing bracket."""
    start = text.find("$(")
    while start >= 0:
        depth, end = 1, start + 2
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[start + 2 : end - 1]
        start = text.find("$(", end)


def _command(words: list[str]) -> Iterator[Command]:
    settings = {}
    while words and _ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        settings[name] = value
    if words[:1] == ["kubectl"] and "--" in words:
        inside = words.index("--")
        yield Command(settings, tuple(words[:inside]))
        yield from _command(words[inside + 1 :])
    elif words or settings:
        yield Command(settings, tuple(words))
