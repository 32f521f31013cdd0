"""Find words that the glossary replaces: in strings, docstrings, comments, pages, and the names that code defines.

The words, what to say instead and the places that are excused are data: `tools/words.toml`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "tools/words.toml"
KINDS = frozenset({"string", "docstring", "comment", "name", "page"})

Find = Callable[[str], list[tuple[int, str, str]]]
"""Gives each use of a word in a text: in which line of it, as it is written, and what to write instead."""


@dataclass(frozen=True)
class Word:
    """Words that are not used.

    Attributes:
        pattern: What matches them, whatever the case.
        instead: What to write.
    """

    pattern: re.Pattern[str]
    instead: str


@dataclass(frozen=True)
class Excuse:
    """Places where words are excused.

    Attributes:
        paths: Globs of files, relative to the repository.
        kinds: Kinds of text that are excused; empty = all.
        text: The excused words, lower case; empty = all.
        reason: Why.
    """

    paths: tuple[str, ...]
    kinds: frozenset[str]
    text: frozenset[str]
    reason: str

    def excuses(self, use: Use) -> bool:
        """Return whether a use is one of these."""
        return (
            any(fnmatch(use.path, glob) for glob in self.paths)
            and (not self.kinds or use.kind in self.kinds)
            and (not self.text or use.found.lower() in self.text)
        )


@dataclass(frozen=True)
class Use:
    """One use of a word: where, in what kind of text, and what to write instead."""

    path: str
    line: int
    kind: str
    found: str
    instead: str

    def __str__(self) -> str:
        """Give one line as compilers do."""
        return f"{self.path}:{self.line}: {self.kind}: '{self.found}': {self.instead}"


@dataclass(frozen=True)
class Rules:
    """What `tools/words.toml` says.

    Attributes:
        words: The words.
        exceptions: Where they are excused.
        files: Globs of the files to read.
        tests: Globs of files of which only the names of tests are read.
    """

    words: tuple[Word, ...]
    exceptions: tuple[Excuse, ...]
    files: tuple[str, ...]
    tests: tuple[str, ...] = ()


def load_rules(path: Path) -> Rules:
    """Read the rules.

    Raises:
        ValueError: an entry has a kind that does not exist, or no reason.
        KeyError: an entry lacks a field.
    """
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    words = tuple(
        Word(re.compile(rf"\b(?:{x['words']})\b", re.IGNORECASE), x["instead"]) for x in data["word"]
    )
    exceptions = tuple(
        Excuse(
            tuple(x["paths"]),
            frozenset(x.get("kinds", ())),
            frozenset(text.lower() for text in x.get("text", ())),
            x["reason"],
        )
        for x in data.get("exception", ())
    )
    for exception in exceptions:
        if not exception.reason or exception.kinds - KINDS:
            raise ValueError(
                f"{path}: the exception for {exception.paths} needs a reason and kinds of {sorted(KINDS)}"
            )
    return Rules(words, exceptions, tuple(data["files"]), tuple(data.get("tests", ())))


def texts(path: str, content: str) -> Iterator[tuple[int, str, str]]:
    """Split a file into line, kind and text; what is not Python is one page."""
    if not path.endswith(".py"):
        yield 1, "page", content
        return
    tree = ast.parse(content)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, "docstring" if id(node) in bare else "string", node.value
        for name, line in _defined(node):
            yield line, "name", re.sub(r"_|(?<=[a-z0-9])(?=[A-Z])", " ", name)
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], "comment", token.string


def _defined(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Give name and line of the function, class, parameter, variable or attribute that a node defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, node.lineno
        case (
            ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store())
        ):
            yield name, node.lineno


def uses(path: str, content: str, find: Find) -> Iterator[Use]:
    """Find the words in a file, excused or not."""
    for line, kind, text in texts(path, content):
        for lines_down, found, instead in find(text):
            yield Use(path, line + lines_down, kind, found, instead)


def finder(words: Sequence[Word]) -> Find:
    """Make what finds the words in a text. Nearly all texts have none, and names come again and again."""
    any_word = re.compile("|".join(word.pattern.pattern for word in words) or r"(?!)", re.IGNORECASE)

    @cache
    def find(text: str) -> list[tuple[int, str, str]]:
        if not any_word.search(text):
            return []
        return [
            (text.count("\n", 0, match.start()), match[0], word.instead)
            for word in words
            for match in word.pattern.finditer(text)
        ]

    return find


def check(root: Path, rules: Rules) -> list[str]:
    """List what is wrong: words that are not excused, and exceptions that excuse nothing."""
    find = finder(rules.words)
    found = [use for path in _files(root, rules.files) for use in uses(path, _read(root, path), find)]
    found += [
        use
        for path in _files(root, rules.tests)
        for use in uses(path, _names_of_tests(_read(root, path)), find)
    ]
    idle = [x for x in rules.exceptions if not any(x.excuses(use) for use in found)]
    return [
        *(str(use) for use in found if not any(x.excuses(use) for x in rules.exceptions)),
        *(f"tools/words.toml: excuses nothing, remove it: {', '.join(x.paths)} ({x.reason})" for x in idle),
    ]


def _files(root: Path, globs: Sequence[str]) -> list[str]:
    found = {path for glob in globs for path in root.glob(glob) if path.is_file()}
    return sorted(path.relative_to(root).as_posix() for path in found)


def _read(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def _names_of_tests(content: str) -> str:
    """Blank all of a module but the heads of its tests, which stay on their lines."""
    heads = (re.match(r"(?:async )?def (test_\w+)", line) for line in content.split("\n"))
    return "\n".join(f"def {head[1]}(): ..." if head else "" for head in heads)


def main() -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    wrong = check(ROOT, load_rules(RULES))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
