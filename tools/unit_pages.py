"""Render docs/runbooks: of each detector and rule what its metadata and docstring say, around what is written by hand.

A page is one mechanism; `agent/contract/runbooks.py` says which runbook is where. The title and each part between the
markers `ID: by hand` and `ID: generated` are kept.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from agent.contract.events import Level
from agent.contract.runbooks import BY_PAGE, address_of, anchor_of
from agent.detectors import BY_ID, DETECTORS
from agent.findings.proof import WHILE_UNUSED, can_be_proved, proof_command
from agent.judging.base import DetectorMeta
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.registry import NAMING, module_of
from tools.affected_page import anchor_of_bug, harmful, name_of

_PROOF = f"""Suspected? [Verify](../verify.md) first; `equal` or `behind` clears it {WHILE_UNUSED}:

    {proof_command("APP", "TASK", "STORE").replace("STATE_DIR", "STATE").replace("HOST:9092", "B")}

"""


def unit_pages() -> dict[str, Callable[[str], str]]:
    """Map each page's path to what renders it from the page as it is."""
    return {f"docs/runbooks/{page}.md": partial(runbook_page, names) for page, names in BY_PAGE.items()}


def runbook_page(names: Sequence[str], page: str) -> str:
    """Render a page, and keep of it what is written by hand."""
    head = page.partition("<a id=")[0].rstrip() or "# Title"
    return "\n\n".join([head, *(_runbook(name, page) for name in names)]) + "\n"


def _runbook(name: str, page: str) -> str:
    by_hand = re.search(rf"<!-- {name}: by hand -->\n(.*?)\n<!-- {name}: generated -->", page, re.DOTALL)
    return (
        f'<a id="{anchor_of(name)}"></a>\n\n## {name}\n\n{_head(name)}\n\n<!-- {name}: by hand -->\n'
        f"{by_hand[1] if by_hand else ''}\n<!-- {name}: generated -->{_signal(name)}"
    )


_REPORTS = {
    Level.DAMAGE: "damage", Level.EXPOSURE: "an exposure", Level.EVENT: "an event", Level.SELF: "what agents missed",
}  # fmt: skip


def _head(name: str) -> str:
    meta = _meta(name)
    what = f"Reports {_REPORTS[meta.level]}, up to {meta.severity.value}: {meta.title[0].lower()}{meta.title[1:]}."
    if isinstance(meta, RuleMeta):
        return what
    proof = _PROOF if can_be_proved(meta) else ""
    return f"{what}\n\n{proof}**Next:** {meta.next_action}"


def _signal(name: str) -> str:
    """Render the first sentence on when it ends, and the bugs; when it fires is written by hand."""
    meta = _meta(name)
    module = module_of(meta) if isinstance(meta, RuleMeta) else f"agent.detectors.{name.replace('-', '_')}"
    said = importlib.import_module(module).__doc__ or ""
    found = re.findall(r"^(Clears when)\b(.*?\.)(?=\s+[A-Z]|\s*\Z)", said, re.MULTILINE | re.DOTALL)
    rows = re.sub(r"\s+(?!- )", " ", "\n".join(f"- **{word}**{text}" for word, text in found))
    keys = list(meta.upstream) if isinstance(meta, RuleMeta) else [x.key for x in meta.upstream]
    rows = f"\n\n### When it ends\n\n{rows}" if rows else ""
    return f"{rows}\n\n### Bugs\n\n{', '.join(map(_bug, keys))}." if keys else rows


def _bug(key: str) -> str:
    """Link a bug to what is known of it."""
    name = name_of(key)
    anchor = anchor_of_bug(name) if key in {bug.issue.key for bug in harmful()} else "what-loses-nothing"
    return f"[{name}](../affected.md#{anchor})"


def _meta(name: str) -> DetectorMeta | RuleMeta:
    if name.startswith("rules/"):
        return next(x for x in NAMING if x.id == name.removeprefix("rules/"))
    return BY_ID[name].meta


LEVELS = {
    Level.DAMAGE: ("Damage", "The bug fired: state is wrong or missing, or was."),
    Level.EXPOSURE: ("Exposure", "The precondition is on disk; nothing need have been lost."),
    Level.EVENT: ("Events", "Worth a report, and over."),
    Level.SELF: ("About statewarden", "What could not be seen."),
}
"""Level -> heading and what it means, the worst first."""

Row = tuple[DetectorMeta | RuleMeta, str]
"""A detector or rule, and the name of its runbook."""

_HEADS = (
    ("Detectors", "What an agent, `scan` or `replay` can report of one pod."),
    (
        "Rules of the fleet audit",
        "What only several pods together show, or a changelog. [The fleet audit](../rollup.md) says how to run it.",
    ),
)
MARKER = "<!-- generated from here (make docs) -->"


def render_runbooks_list(page: str) -> str:
    """Write one list per level, the most severe first; what is before the marker stays."""
    detectors: list[Row] = [(x.meta, x.meta.id) for x in DETECTORS]
    rules: list[Row] = [(meta, f"rules/{meta.id}") for meta in NAMING]
    parts = [page.partition(MARKER)[0], MARKER, "\n"]
    for (title, what), rows in zip(_HEADS, (detectors, rules), strict=True):
        parts += [f"\n## {title}\n\n{what}\n", *_levels(rows)]
    return "".join(parts)


def _levels(rows: Sequence[Row]) -> Iterator[str]:
    for level, (title, what) in LEVELS.items():
        chosen = sorted((x for x in rows if x[0].level is level), key=lambda x: -x[0].severity.rank)
        if chosen:
            yield f"\n### {title}\n\n{what}\n\n{_list(chosen)}"


def _list(rows: Iterable[Row]) -> str:
    return "".join(
        f"- [{name}]({address_of(name, '.md').removeprefix('runbooks/')}): {meta.title} ({meta.severity.value})\n"
        for meta, name in rows
    )
