"""Render the head of a detector's or rule's page from its docstring and metadata.

The head ends with a marker. What is below the marker is written by hand and kept.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable

from agent.detectors import DETECTORS
from agent.findings.proof import WHERE_PROVED, WHILE_UNUSED, can_be_proved, proof_command
from agent.judging.base import Detector
from spark_rollup.judging.base import RuleMeta
from spark_rollup.registry import NAMING, module_of

_FIRST = """## Where to start

1. The finding itself, with evidence, times (UTC), stores and its id, now: `kubectl port-forward POD 9464`, then
   `http://localhost:9464/` in a browser. Namespace, pod, task and the incident's id are in the alert.
2. The same for a pod that is gone, from what it shipped: `statewarden explain INCIDENT_ID --events DIR`, with the id
   from the alert. `DIR` (`EVENTS` below) is where agents ship to, or a copy of the bucket.
3. Since when, and on which pods: `statewarden_task_findings{{detector="{id}"}}`, over the last day; of one incident:
   `statewarden_incident_info{{incident_id="ID"}}`, with the id that the alert carries.
4. Commands on `STATE` that change something need a stopped instance and a place to type them: see
   [a stopped pod's volume](../stopped-volume.md).
"""

MARKER = "<!-- generated up to here (make docs); below, written by hand -->"
_SECTION = re.compile(
    r"(Signal|Fires when|Fires|Clears when|Stays quiet when|Stays quiet|Blind spots|Cost|Source)\b"
)
_TITLE = re.compile(r"^(Detector|Rule) `[^`]+`: ")

_PROOF = f"""If it is suspected only, prove or refute it first, {WHERE_PROVED}
([what it says](../verify.md)):

    {proof_command("APP", "TASK", "STORE")}

`equal` or `behind` refutes it {WHILE_UNUSED}: what the application computes from a wrong value is in store and
changelog alike. If it is not refuted:

"""


def unit_pages() -> dict[str, Callable[[str], str]]:
    """Map each page's path to what renders it from the page as it is."""
    pages: dict[str, Callable[[str], str]] = {}
    for detector in DETECTORS:
        pages[f"docs/detectors/{detector.meta.id}.md"] = _keeping_the_tail(detector_head(detector))
    for meta in NAMING:
        pages[f"docs/rules/{meta.id}.md"] = _keeping_the_tail(rule_head(meta))
    return pages


def detector_head(detector: Detector) -> str:
    """Render what a detector says of itself."""
    meta = detector.meta
    upstream = [
        f"{issue.key}: affects {', '.join(map(str, issue.releases)) or 'no release'}; fixed: {issue.fixed}"
        for issue in meta.upstream
    ]
    facts = [
        ("level", meta.level.value),
        ("severity", f"up to {meta.severity.value}"),
        ("kind", f"{meta.kind.value}, one per {meta.scope.value}"),
        ("upstream", "<br>".join(upstream)),
        ("settings that decide", ", ".join(f"`{key}`" for key in meta.needs)),
        ("about", "no known fault: a [law](../evidence.md#laws), on every release" if meta.is_law else ""),
    ]
    text = _docstring(f"agent.detectors.{_module(meta.id)}")
    page = _page(meta.id, meta.title, facts, text)
    proof = _PROOF if can_be_proved(meta) else ""
    return f"{page}\n## What to do\n\n{proof}{meta.next_action}\n\n{_FIRST.format(id=meta.id)}"


def rule_head(meta: RuleMeta) -> str:
    """Render what a rule of the rollup, or of `verify` on Spark, says of itself."""
    facts = [
        ("level", meta.level.value),
        ("severity", f"up to {meta.severity.value}"),
        ("upstream", ", ".join(meta.upstream)),
        ("settings that decide", ", ".join(f"`{key}`" for key in meta.needs)),
    ]
    return _page(meta.id, meta.title, facts, _docstring(module_of(meta)))


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


def _page(unit: str, title: str, facts: Iterable[tuple[str, str]], docstring: str) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts if value)
    return (
        f"# {unit}\n\n{title}.\n\n| | |\n|---|---|\n{rows}\n\n## What it says\n\n{as_markdown(docstring)}\n"
    )


def _keeping_the_tail(head: str) -> Callable[[str], str]:
    def render(page: str) -> str:
        _, marker, tail = page.partition(MARKER)
        by_hand = tail if marker else f"\n{page}" if page else ""
        return f"{head}\n{MARKER}\n{by_hand.removeprefix(chr(10))}"

    return render


def _docstring(module: str) -> str:
    return importlib.import_module(module).__doc__ or ""


def _module(unit: str) -> str:
    return unit.replace("-", "_")
