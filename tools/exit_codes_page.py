"""Render docs/exit-codes.md: one table of exit codes, and what each command says with them."""

from __future__ import annotations

from collections.abc import Mapping

from agent.cli.help_pages import PAGES as AGENT
from agent.contract.exit_codes import Exit, codes_of
from agent.contract.help_page import HelpPage
from spark_rollup.help_pages import PAGES as ROLLUP

_HEAD = """\
# Exit codes

<!-- generated from `agent/contract/exit_codes.py` and the help of each command by `make docs`; do not edit -->

One table for every command of `statewarden` and `statewarden-rollup`. A [gate](kubernetes.md#a-gate-before-the-start)
opens on 0 only. 3 is no all-clear and no finding: something is there, and what it holds is not known. What was found
counts, whatever else could not be read: 1 goes before 3.

| code | says |
|---|---|
"""


def render_exit_codes_page() -> str:
    """Render the whole page."""
    table = "".join(f"| {code.value} | {code.meaning} |\n" for code in Exit)
    signals = "| 130, 143 | Ctrl-C, SIGTERM |\n"
    return _HEAD + table + signals + _commands("statewarden", AGENT) + _commands("statewarden-rollup", ROLLUP)


def _commands(program: str, pages: Mapping[str, HelpPage]) -> str:
    own = (Exit.CLEAR, Exit.FOUND, Exit.UNREAD)
    rows = "".join(
        f"| `{name}` | {' | '.join(codes_of(page.codes).get(code, '') for code in own)} |\n"
        for name, page in pages.items()
    )
    head = f"\n## {program}\n\nCodes 2 and 4 are those of the table above.\n\n"
    return f"{head}| command | 0 | 1 | 3 |\n|---|---|---|---|\n{rows}"
