"""Render docs/runbooks: of each detector and rule what its metadata and docstring say, around what is written by hand.

A page is one mechanism; `agent/contract/runbooks.py` says which runbook is where. The title and each part between the
markers `ID: by hand` and `ID: generated` are kept.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from functools import partial

from agent.contract.runbooks import BY_PAGE, anchor_of
from agent.detectors import BY_ID
from agent.findings.proof import WHERE_PROVED, WHILE_UNUSED, can_be_proved, proof_command
from agent.judging.base import DetectorMeta
from spark_rollup.judging.base import RuleMeta
from spark_rollup.registry import NAMING, module_of

_SECTION = re.compile(
    r"(Signal|Fires when|Fires|Clears when|Stays quiet when|Stays quiet|Blind spots|Cost|Source)\b"
)
_TITLE = re.compile(r"^(Detector|Rule) `[^`]+`: ")
_ELSEWHERE = ("- **Signal", "- **Blind spots", "- **Cost")
"""Parts of a docstring that the page has by hand, or that only the code needs."""

_PROOF = f"""If it is only suspected, prove or refute it first, {WHERE_PROVED} ([what it says](../verify.md)):

    {proof_command("APP", "TASK", "STORE")}

`equal` or `behind` refutes it {WHILE_UNUSED}. If it is not refuted:

"""

_WORDS = (
    "Where to start, and the words in the commands: [runbooks](README.md). Where to type them: [a stopped pod's"
    " volume](../stopped-volume.md)."
)


def unit_pages() -> dict[str, Callable[[str], str]]:
    """Map each page's path to what renders it from the page as it is."""
    return {f"docs/runbooks/{page}.md": partial(runbook_page, names) for page, names in BY_PAGE.items()}


def runbook_page(names: Sequence[str], page: str) -> str:
    """Render a page, and keep of it what is written by hand.

    Args:
        names: Detectors and `rules/ID` on it, in their order.
        page: As it is now.
    """
    head = page.partition("<a id=")[0].rstrip() or "# Title"
    return "\n\n".join([head, *(_runbook(name, page) for name in names)]) + "\n"


def as_markdown(docstring: str) -> str:
    """Turn a module docstring into text with a bullet per section (`Fires when ...`, `Blind spots: ...`)."""
    first, _, rest = docstring.strip().partition("\n")
    lines = [_TITLE.sub("", first)]
    for line in rest.splitlines():
        words = line.strip()
        if found := _SECTION.match(words):
            before = [""] if lines[-1] and not lines[-1].startswith(("- ", "  ")) else []
            lines += [*before, f"- **{found[0]}**{words[found.end() :]}"]
        elif words and lines[-1].startswith(("- ", "  ")):
            lines.append(f"  {words}")
        else:
            lines.append(words)
    text = "\n".join(lines).strip()
    return text[:1].upper() + text[1:]


def _runbook(name: str, page: str) -> str:
    by_hand = re.search(rf"<!-- {name}: by hand -->\n(.*?)\n<!-- {name}: generated -->", page, re.DOTALL)
    return (
        f'<a id="{anchor_of(name)}"></a>\n\n## {name}\n\n{_head(name)}\n\n<!-- {name}: by hand -->\n'
        f"{by_hand[1] if by_hand else ''}\n<!-- {name}: generated -->\n\n### When it fires\n\n{_signal(name)}"
    )


def _head(name: str) -> str:
    meta = _meta(name)
    what = f"{meta.title}. Level {meta.level.value}, severity up to {meta.severity.value}."
    if isinstance(meta, RuleMeta):
        return f"{what}\n\n{_WORDS}"
    proof = _PROOF if can_be_proved(meta) else ""
    return f"{what}\n\n{proof}**Next:** {meta.next_action}\n\n{_WORDS}"


def _signal(name: str) -> str:
    meta = _meta(name)
    if isinstance(meta, RuleMeta):
        module, upstream, law = module_of(meta), ", ".join(meta.upstream), ""
    else:
        module = f"agent.detectors.{name.replace('-', '_')}"
        upstream = "; ".join(
            f"{x.key} (affects {', '.join(map(str, x.releases)) or 'no release'}; fixed: {x.fixed})"
            for x in meta.upstream
        )
        law = "no known fault: a [law](../evidence.md#laws), on every release" if meta.is_law else ""
    facts = {
        "Upstream": upstream,
        "Settings that decide": ", ".join(f"`{key}`" for key in meta.needs),
        "About": law,
    }
    rows = [f"- **{key}**: {value}" for key, value in facts.items() if value]
    said = as_markdown(importlib.import_module(module).__doc__ or "")
    parts = re.split(r"\n(?=- \*\*)", said)
    kept = [x.rstrip() for x in parts if not x.startswith(_ELSEWHERE)]
    gap = "\n" if len(kept) == 1 and rows else ""
    return "\n".join([*kept[:1], *([""] if len(kept) > 1 else [gap] if gap else []), *kept[1:], *rows])


def _meta(name: str) -> DetectorMeta | RuleMeta:
    if name.startswith("rules/"):
        return next(x for x in NAMING if x.id == name.removeprefix("rules/"))
    return BY_ID[name].meta
