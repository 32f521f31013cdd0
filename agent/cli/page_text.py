"""Pages of the documentation for a terminal, and which page is about what an operator has in hand. Pure."""

from __future__ import annotations

import html
import posixpath
import re
import textwrap
from collections.abc import Iterable, Mapping, Set
from functools import partial
from itertools import zip_longest
from textwrap import dedent, indent

from agent.contract.runbooks import NAMES

WIDTH = 100
_GAP = "  "
_NARROWEST = 12  # below this a column holds one word a line and is no longer read as a sentence
_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_RULE = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")
"""What parts cells; a bar that belongs to a command is written with a stroke before it."""


def tables_as_columns(page: str, width: int = WIDTH) -> str:
    r"""Turn every table of a page, whose lines all begin and end with a bar, into columns.

    Gives the page; in place of a table, its columns: no bars, cells wrapped so that a line has `width` characters
    at most unless its words are longer. Below a header, rows are an empty line apart as soon as one of them is
    wrapped; an empty header is left out.
    """
    return _TABLE.sub(lambda table: _columns([_cells(line) for line in table[0].splitlines()], width), page)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(line)[1:-1]]


def _columns(rows: list[list[str]], width: int) -> str:
    head, body = rows[0], [row for row in rows[1:] if not all(map(_RULE.fullmatch, row))]
    named = any(head)
    shown = [head, *body] if named else body
    widths = _widths([max(map(len, column)) for column in zip_longest(*shown, fillvalue="")], width)
    laid = [_row(row, widths) for row in body]
    apart = "\n\n" if named and any("\n" in row for row in laid) else "\n"
    top = [_row(head, widths), _GAP.join("-" * width for width in widths)] if named else []
    return "".join(f"{line}\n" for line in [*top, apart.join(laid)])


def _widths(natural: list[int], width: int) -> list[int]:
    """Take from the widest column until a line fits."""
    widths = list(natural)
    room = width - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row(cells: list[str], widths: list[int]) -> str:
    wrapped = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
        for cell, width in zip(cells, widths, strict=False)
    ]
    lines = zip_longest(*wrapped, fillvalue="")
    return "\n".join(
        _GAP.join(part.ljust(width) for part, width in zip(line, widths, strict=False)).rstrip()
        for line in lines
    )


_COMMENT = re.compile(r"^(?:<!--.*?-->|<a id=[^>]*></a>)\n\n?", re.MULTILINE | re.DOTALL)
_ANCHOR = "\n<a id="
_DEEPER = re.compile(r"^#(?=#+ )", re.MULTILINE)
_BREAK_AFTER_COLON = re.compile(r"(?<=:)<br>")
_LINK = re.compile(r"\[([^\[\]]+)\]\((?:([\w./-]+)\.md)?(?:#([\w-]+))?\)")
"""A link to a page beside it, or inside it; one to a web address stays as it is."""
_COMMAND = "statewarden explain"


def section_of(page: str, anchor: str) -> str:
    """Cut the runbook with this anchor out of a page, its headings one level higher."""
    _, _, rest = page.partition(f'<a id="{anchor}"></a>\n\n')
    return _DEEPER.sub("", f"{rest.partition(_ANCHOR)[0].rstrip()}\n")


def sections_of(page: str) -> dict[str, str]:
    """Cut a page into its sections: heading -> text, as a page of its own."""
    return {x.partition("\n")[0]: f"# {x.rstrip()}\n" for x in page.split("\n## ")[1:]}


def page_text(page: str, known: Set[str], width: int = WIDTH) -> str:
    """Take out of a page what only a browser can use, and wrap it.

    `known`: what `explain` prints, by the names that it takes. Gives the page without comments, anchors and line
    breaks of HTML, its tables as columns; each link to a runbook, or to another page that is printed, is its text
    and the command.
    """
    text = _BREAK_AFTER_COLON.sub(" ", _COMMENT.sub("", page)).replace("<br>", "; ")
    text = _BOLD.sub(r"\1", _LINK.sub(partial(_link_text, known=known), text))
    text = _SAME_AGAIN.sub("", text)
    parts = _FENCED.split(text)
    parts[::2] = (_PROSE.sub(lambda block: _filled(block[0], width), x) for x in parts[::2])
    return tables_as_columns("".join(parts), width)


_BOLD = re.compile(r"(?<![*`\w])\*\*(?=\S)(.+?)\*\*", re.DOTALL)
_SAME_AGAIN = re.compile(r" (\(statewarden explain [^)]+\))(?=, [^()]+ \1)")
"""A command that the next part of a list ends with, too."""
_CODE = re.compile(r"`[^`]+`|\(statewarden explain [^)]+\)")
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_PROSE = re.compile(r"^(?![#|]|    ).+(?:\n(?![#|]| *(?:[-*]|\d+\.) ).+)*", re.MULTILINE)
"""A paragraph, or an item of a list: no heading, table, or line of code."""
_BEGIN = re.compile(r" *(?:(?:[-*]|\d+\.) +)?")


def _filled(block: str, width: int) -> str:
    """Wrap a paragraph, or an item below its mark; what can be typed stays in one line."""
    begin = _BEGIN.match(block)[0]  # type: ignore[index] # it matches the empty text
    typed = _CODE.sub(lambda x: re.sub(r"\s*\n\s*", " ", x[0]).replace(" ", "\0"), block.removeprefix(begin))
    words = " ".join(typed.split())
    return textwrap.fill(
        words, width, initial_indent=begin, subsequent_indent=" " * len(begin), break_long_words=False,
        break_on_hyphens=False,
    ).replace("\0", " ")  # fmt: skip


def page_html(page: str, known: Set[str]) -> str:
    """Do the same for a browser, which wraps it: each link leads to what the agent serves."""
    text = _BREAK_AFTER_COLON.sub(" ", _COMMENT.sub("", page)).replace("<br>", "; ")
    text = _FENCED.sub(lambda x: indent("\n".join(dedent(x[0]).splitlines()[1:-1]), "    "), text)
    blocks = re.split(r"\n\n+|\n(?= {0,3}(?:[-*]|\d+\.) )", text)
    made = "".join(_block(x.rstrip(), known) for x in blocks if x.strip())
    return re.sub("--[a-z-]+", r"<span>\g<0></span>", made)  # a line would end after its dashes


def _block(text: str, known: Set[str]) -> str:
    """Turn code, a heading, a table, an item of a list or a paragraph into HTML."""
    if text.startswith("    "):
        return f"<pre>{html.escape(dedent(text))}</pre>"
    if text.startswith("|"):
        rows = ["".join(f"<td>{_inline(x, known)}</td>" for x in _cells(y)) for y in text.splitlines()]
        head, body = rows[0].replace("td>", "th>"), "</tr><tr>".join(rows[2:])
        return f"<table><thead><tr>{head}</tr></thead><tbody><tr>{body}</tr></tbody></table>"
    mark, _, title = text.strip().partition(" ")
    if set(mark) == {"#"}:
        return f"<h{len(mark)}>{_inline(title, known)}</h{len(mark)}>"
    kind = ' class="item"' if re.fullmatch(r"[-*]|[0-9]+[.]", mark) else ""
    return f"<p{kind}>{_inline(text, known)}</p>"


def _inline(text: str, known: Set[str]) -> str:
    link = partial(_link_text, known=known, form='<a href="/runbooks/{name}">{text}</a>')
    text = re.sub(r"\[([^][]+)\]\((?!http)[^()\s]+\)", r"\1", _LINK.sub(link, html.escape(text)))
    text = re.sub(r"\*([^*`\s][^*`]*)\*", r"<i>\1</i>", _BOLD.sub(r"<b>\1</b>", text))
    return re.sub("`([^`]+)`", r"<code>\1</code>", text)


def _link_text(link: re.Match[str], *, known: Set[str], form: str = f"{{text}} ({_COMMAND} {{name}})") -> str:
    text, page, anchor = link[1], posixpath.basename(link[2] or ""), link[3] or ""
    if "/runbooks/README" in f"/{link[2]}" or (page == "README" and "/" not in link[2]):
        page = "runbooks"
    rule = f"rules/{anchor.removeprefix('rules-')}" if anchor.startswith("rules-") else anchor
    page = "" if "found/" in (link[2] or "") else page  # a report of a bug may be called as its detector is
    name = next((x for x in (rule if rule in NAMES else "", page) if x in known), None)
    return text if name is None or _COMMAND in text else form.format(text=text, name=name)


_SAMPLE = re.compile(r"^- `(.+)`$", re.MULTILINE)
_CAUSES = re.compile(r"^\| (`.+?) \|", re.MULTILINE)
_QUOTED = re.compile(r"`(.+?)`")
_SHORTEST = 12  # letters of a message that a person gives: fewer are in too many


def section_about(sections: Mapping[str, str], asked: str) -> str | None:
    """Find the section about an exception, by its name with or without a package, or about a line of a log.

    `asked`: a name, a line, or a part of one. Gives the section; None = none is about it.
    """
    words = {word.lower() for word in re.findall(r"\w+", asked, re.ASCII)}
    said = _plain(asked)
    by_message = (text for text in sections.values() if any(_is_it(x, said) for x in _SAMPLE.findall(text)))
    by_cause = (text for text in sections.values() if any(_is_it(x, said) for x in _causes(text)))
    by_name = (text for name, text in sections.items() if _plain(name) == said or name.lower() in words)
    exception = asked.rpartition(".")[2]
    mentioned = (text for text in sections.values() if re.search(rf"\b{re.escape(exception)}\b", text))
    rest = mentioned if exception.endswith("Exception") else iter(())
    return next(by_message, None) or next(by_cause, None) or next(by_name, None) or next(rest, None)


def exceptions_of(sections: Iterable[str]) -> list[str]:
    """List the exceptions among the headings of sections."""
    return [name for name in sections if " " not in name]


def _causes(section: str) -> list[str]:
    """List what the exception below it says, from the table of its causes."""
    return [quoted for cell in _CAUSES.findall(section) for quoted in _QUOTED.findall(cell)]


def _is_it(sample: str, said: str) -> bool:
    """Whether a line has the parts of a message in their order, or is a part of it."""
    parts = [re.escape(x) for x in map(_plain, sample.split("...")) if x]
    return re.search(".*".join(parts), said) is not None or (
        len(said) >= _SHORTEST and said in _plain(sample)
    )


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


_ALERT = re.compile(r"Statewarden(Fleet)?([A-Z]\w*?)(?:Suspected|Exposed)?", re.ASCII)
_ISSUE = re.compile(r"(?:KAFKA|KIP)-\d+", re.ASCII | re.IGNORECASE)
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def of_alert(asked: str) -> str | None:
    """Give the runbook of an alert, as `detectors/ID` or `rules/ID`; None = it is no alert's name.

    `StatewardenSkippedEosWipeSuspected` is `detectors/skipped-eos-wipe`.
    """
    found = _ALERT.fullmatch(asked)
    if found is None:
        return None
    return f"{'rules' if found[1] else 'detectors'}/{_HUMP.sub('-', found[2]).lower()}"


def is_issue(asked: str) -> bool:
    """Return whether it is the key of an issue, `KAFKA-20685` or `KIP-1035`."""
    return _ISSUE.fullmatch(asked) is not None


def slug_of(asked: str) -> str:
    """Give the bare word, as detectors and rules are called: of `StatewardenRollupStale` that is `rollup-stale`."""
    word = (of_alert(asked) or asked).removeprefix("detectors/").lower()
    return word.removeprefix("statewarden")
