"""HTML of the agent's page and the fleet's report: any text made safe, and the look that both have. Values only."""

from __future__ import annotations

import html
import re
import unicodedata

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Control, formatting (right-to-left overrides), surrogate, private and line-separating characters."""


def escape(value: object) -> str:
    """Make any value safe inside an element or a quoted attribute; hidden characters become visible escapes."""
    text = "" if value is None else str(value)
    if not (text.isascii() and text.isprintable()):  # few texts, of many thousands
        text = "".join(f"\\u{ord(x):04x}" if unicodedata.category(x) in _HIDDEN else x for x in text)
    return html.escape(text, quote=True)


def coded(value: object) -> str:
    """Escape a text for people; what stands between backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(value))


def number(value: int | None) -> str:
    """Write a whole number in groups of three; a dash for an unknown one."""
    return "-" if value is None else f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def plural(count: int, word: str) -> str:
    """Write a number with its word: `1 task`, `2 tasks`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"


LOOK = """
:root {
  color-scheme: light dark;
  --paper: light-dark(#f7f6f3, #14171b); --card: light-dark(#ffffff, #1c2025); --ink: light-dark(#1d2126, #e6e4df);
  --soft: light-dark(#5b6470, #a0a8b2); --line: light-dark(#dedbd3, #333a42); --wash: light-dark(#efede7, #23282e);
  --critical: light-dark(#b3261e, #ff8a80); --critical-wash: light-dark(#fbe9e7, #3a1f1e);
  --warning: light-dark(#855600, #f0c063); --warning-wash: light-dark(#fdf3dc, #352a15);
  --info: light-dark(#2b5f8a, #8fc1ea); --info-wash: light-dark(#e8f1f8, #1b2b38);
  --good: light-dark(#2e6b46, #8fd1a8); --good-wash: light-dark(#e6f2ea, #1b3024);
}
.chip { --tone: var(--soft); --tone-wash: var(--wash); }
.critical { --tone: var(--critical); --tone-wash: var(--critical-wash); }
.warning, .undecided { --tone: var(--warning); --tone-wash: var(--warning-wash); }
.info { --tone: var(--info); --tone-wash: var(--info-wash); }
.good { --tone: var(--good); --tone-wash: var(--good-wash); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif; }
.skip { position: absolute; left: -9999px; }
.skip:focus { left: 12px; top: 12px; background: var(--card); padding: 8px 14px; z-index: 2; }
a { color: inherit; text-decoration-color: var(--soft); text-underline-offset: 3px; }
:focus-visible { outline: 2px solid var(--info); outline-offset: 2px; border-radius: 4px; }
.brand { letter-spacing: .09em; text-transform: uppercase; font-size: 12px; color: var(--soft); margin: 0; }
h1, h2, h3 { font-weight: 640; } h1 { line-height: 1.22; letter-spacing: -.012em; } h2 { font-size: 19px; }
.facts { color: var(--soft); margin: 0; }
nav { display: flex; flex-wrap: wrap; font-size: 14px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.chip { display: inline-block; border-radius: 999px; padding: 1px 9px; font-size: 12px; font-weight: 600;
  color: var(--tone); background: var(--tone-wash); }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 560; font-size: 12.5px; color: var(--soft); white-space: nowrap; }
footer { color: var(--soft); font-size: 13px; }
"""
"""Style of both: light and dark from one set of colour names; `--tone` is the colour of a severity."""
