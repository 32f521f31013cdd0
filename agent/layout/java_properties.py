"""The syntax of java.util.Properties, and what only looks like it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNICODE = re.compile(r"[0-9a-fA-F]{4}", re.ASCII)
_BLANKS = " \t\f"

_NESTED = re.compile(
    r"""
    \A\s*[{<]                                                   # JSON, XML
    | ^---[ ]*$                                                 # YAML: a document
    | ^[ \t]*\}[ \t,;]*$ | ^[^#!\n]*[^$#%{\s][ \t:=]*\{[ \t]*$   # HOCON, JSON: a block
    | ^\[[^\]=\n]+\][ \t]*$                                    # TOML, INI: a section
    | ^([ ]*)[^\s#!=][^=\n]*:[ \t]*(?:\#.*)?\n                  # YAML: a key without a value,
      (?:[ \t]*(?:\#.*)?\n)*(?:\1[ ]+[^\s#]|\1-[ ])             # and below it a deeper line or a list
    """,
    re.MULTILINE | re.VERBOSE,
)


def is_nested(text: str) -> bool:
    """Whether it is YAML, JSON or another format of blocks: a line of it does not say where it belongs."""
    return _NESTED.search(text.lstrip("\ufeff").replace("\r\n", "\n")) is not None


def rows(text: str) -> Iterator[tuple[str, str]]:
    """Read keys and values in their order; a key that comes twice is given twice.

    Source:
        java.util.Properties.load (Java SE): logical lines, comments, the separators `=`, `:` and blanks, escapes.
    """
    for line in _logical_lines(text):
        key, value = _divided(line)
        yield _unescaped(key), _unescaped(value)


def _logical_lines(text: str) -> Iterator[str]:
    """Join lines that end in an odd number of backslashes; a comment cannot be continued."""
    held: str | None = None
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(_BLANKS)
        if held is None and (not line or line[0] in "#!"):
            continue
        line = (held or "") + line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held = line[:-1]
            continue
        held = None
        if line:
            yield line
    if held:
        yield held


def _divided(line: str) -> tuple[str, str]:
    """Find the first separator that is not escaped: blanks, and among them at most one `=` or `:`."""
    end = 0
    while end < len(line) and line[end] not in f"=:{_BLANKS}":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescaped(text: str) -> str:
    parts, at = [], 0
    while at < len(text):
        if text[at] != "\\":
            parts.append(text[at])
            at += 1
            continue
        code = text[at + 1 : at + 2]
        digits = _UNICODE.match(text, at + 2) if code == "u" else None
        parts.append(chr(int(digits[0], 16)) if digits else _ESCAPES.get(code, code))
        at += 6 if digits else 2
    return "".join(parts)
