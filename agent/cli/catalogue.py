"""`detectors`, `explain` and `check-config`: what is looked for, and what it means."""

from __future__ import annotations

import json
import re
import shlex
import sys
from argparse import Namespace
from operator import attrgetter
from pathlib import Path

from agent.cli.incident_text import incident_text
from agent.cli.known import RecordedStory, listing
from agent.cli.output import paints, width_of
from agent.cli.page_text import (
    exceptions_of,
    is_issue,
    of_alert,
    page_html,
    page_text,
    section_about,
    section_of,
    sections_of,
    slug_of,
)
from agent.config import Config
from agent.contract.codec import printable
from agent.contract.exit_codes import Exit
from agent.contract.finding import REPAIRED
from agent.contract.names import nearest
from agent.contract.runbooks import BY_PAGE, NAMES, anchor_of, page_of
from agent.detectors import BY_ID, DETECTORS
from agent.errors import UsageError
from agent.inventory.settings import KEYS
from agent.judging.base import DetectorMeta

_AGENT = Path(__file__).resolve().parents[1]
PAGES = next(x for x in (_AGENT / "pages", _AGENT.parent / "docs") if x.is_dir() or x.name == "docs")
"""What is printed: `runbooks`, `alerts.md`, `log-lines.md`, and the pages beside them.

It is in the package of a wheel, or beside the code. The package first: beside an installed one there may be a `docs`
of another project.
"""

ALERTS, LOG_LINES = "alerts.md", "log-lines.md"
PRINTED = (
    "affected", "configuration", "delivery", "digests", "exit-codes", "incidents", "journeys", "kubernetes", "limits",
    "preflight", "stopped-volume", "verify", "watching",
)  # fmt: skip
_BESIDE = {
    "runbooks": "runbooks/README.md",
    **{page: f"runbooks/{page}.md" for page in BY_PAGE},
    **{name: f"{name}.md" for name in PRINTED},
    REPAIRED: "journeys.md",
}
"""Pages that runbooks and `--help` send people to."""

_RULES = sorted(x for x in NAMES if x.startswith("rules/"))
_RECORDED_ID = re.compile(r"i-[0-9a-f]{12}|[0-9a-f]{16}|(?!rules/|detectors/)[^/]+/\d+_\d+")
"""An incident, a finding, or a task of an application."""

_RECORDED = (
    "add --events SOURCE: a running agent (http://localhost:9464), its spool, where agents ship to (a directory,"
    " s3://BUCKET/PREFIX), or an audit's output. Its runbook: `statewarden explain DETECTOR`"
)


def list_detectors(config: Config, *, as_json: bool) -> int:
    """Print all detectors, as a table or as JSON lines; of those that are disabled, why."""
    for detector in DETECTORS:
        meta, reason = detector.meta, config.detectors.disabled.get(detector.meta.id)
        if as_json:
            sys.stdout.write(json.dumps({**_row(meta), "disabled": reason}) + "\n")
            continue
        why = f" (disabled: {printable(reason)})" if reason else ""
        sys.stdout.write(f"{meta.id:<24}{meta.severity.value:<10}{meta.level.value:<10}{meta.title}{why}\n")
    return 0


def explain(chosen: Namespace, config: Config) -> int:
    """Print a runbook, by its id, an alert's name or an issue's key, or the story of a finding or an incident.

    Raises `UsageError`: nothing is known by that name; it says which one is spelt like it.
    """
    asked: str = of_alert(chosen.id) or chosen.id
    page = runbook(asked) or _shown(
        _sections(ALERTS).get(chosen.id) or section_about(_sections(LOG_LINES), chosen.id)
    )
    if page is not None:
        sys.stdout.write(page)
        return 0
    if is_issue(asked):
        return _explain_issue(asked.upper())
    if chosen.events is None:
        raise UsageError(f"{chosen.id}: {_RECORDED if _RECORDED_ID.fullmatch(asked) else _unknown(asked)}")
    return _explain_recorded(chosen, config)


def _explain_recorded(chosen: Namespace, config: Config) -> int:
    """Print an incident: the verdict and its one step first, the evidence where it is asked for.

    What could not be read may say that it is over, or what comes first.
    """
    story = RecordedStory(chosen.events, config)
    incident = story.incident(chosen.id)
    about = [] if incident else story.about(chosen.id)
    story.complain_of_unread(chosen.id, nothing=not incident and not about)
    code = Exit.UNREAD if story.unread else Exit.CLEAR
    if incident is None:
        sys.stdout.write(listing(chosen.id, about))
        return code
    shown = chosen.evidence or len(incident.findings) == 1
    width = width_of(sys.stdout)
    paint = paints(sys.stdout)
    source = shlex.quote(chosen.events)
    sys.stdout.write(incident_text(incident, paint=paint, width=width, verbose=shown, source=source))
    if not shown:
        sys.stdout.write(f"The {len(incident.findings)} findings behind it: use --evidence.\n")
    return code


def _explain_issue(key: str) -> int:
    concerned = [(x.meta, issue) for x in DETECTORS for issue in x.meta.upstream if issue.key == key]
    if not concerned:
        raise UsageError(
            f"{key}: no detector reports it; `statewarden explain affected` lists the issues that disk can show"
        )
    for meta, issue in concerned:
        affected = " and ".join(str(r) for r in issue.releases)
        sys.stdout.write(
            f"{meta.id:<24}{meta.severity.value:<10}{meta.title}\n{'':<24}affects {affected}; fixed: {issue.fixed}\n"
        )
    sys.stdout.write("\nstatewarden explain ID prints a runbook\n")
    return 0


def _sections(name: str) -> dict[str, str]:
    """Read the sections of a page: alerts that are about no detector or rule, or lines of the application's log."""
    return sections_of((PAGES / name).read_text("utf-8"))


def _shown(section: str | None) -> str | None:
    return None if section is None else page_text(section, {*names_to_explain()}, width_of(sys.stdout))


def names_to_explain() -> list[str]:
    """List what has a page: detectors, rules, alerts about neither, exceptions, and what runbooks send to."""
    return [*BY_ID, *_RULES, *_sections(ALERTS), *exceptions_of(_sections(LOG_LINES)), *_BESIDE]


def _unknown(asked: str) -> str:
    """Say what is spelt like it, the alerts by their own names."""
    alerts = {slug_of(name): name for name in (*_sections(ALERTS), *exceptions_of(_sections(LOG_LINES)))}
    near = [alerts.get(x, x) for x in nearest(slug_of(asked), {*BY_ID, *_RULES, *_BESIDE, *alerts})]
    hint = (
        f"; did you mean {' or '.join(near)}?" if near else "; `statewarden detectors` lists the detectors."
    )
    return (
        f"unknown name{hint} Rules of the fleet audit are called rules/ID. Pages: {', '.join(sorted(PRINTED))}."
        " For a finding, an incident or APPLICATION/TASK add --events SOURCE"
    )


def print_config(config: Config) -> int:
    """Print the effective settings, each with where it came from."""
    for name, origin in config.origins.items():
        full = name if "." in name else f"agent.{name}"
        value = attrgetter(full)(config)
        sys.stdout.write(_setting(full, str(value), origin))
    groups = [("*", config.applications.common), *sorted(config.applications.own.items())]
    for name, group in groups:
        for key in KEYS:
            setting = group.get(key.name)
            if setting is not None:
                sys.stdout.write(_setting(f"{name}:{key.name}", setting.value, setting.origin))
    for note in config.notes:
        sys.stdout.write(f"note: {printable(note)}\n")
    unknown = [key.name for key in KEYS if key.name not in config.applications.common]
    if unknown:
        sys.stdout.write(f"not given for all applications: {', '.join(unknown)}\n")
    return 0


def _setting(name: str, value: str, origin: str) -> str:
    return printable(f"{name:<38} {value or 'empty':<28} {origin}") + "\n"


def _row(meta: DetectorMeta) -> dict[str, object]:
    return {
        "id": meta.id, "title": meta.title, "level": meta.level.value, "severity": meta.severity.value,
        "kind": meta.kind.value, "scope": meta.scope.value, "needs": list(meta.needs),
        "upstream": [
            {"key": x.key, "affected": [str(r) for r in x.releases], "fixed": x.fixed} for x in meta.upstream
        ],
        "next_action": meta.next_action,
    }  # fmt: skip


def runbook(asked: str, as_html: bool = False) -> str | None:
    """Give a runbook as alerts call it (`rules/unaudited`), or by a detector's bare id; None = there is none."""
    name = asked.removeprefix("detectors/")
    if asked in _BESIDE:
        page = (PAGES / _BESIDE[asked]).read_text("utf-8")
    elif name in NAMES:
        page = section_of((PAGES / f"{page_of(name)}.md").read_text("utf-8"), anchor_of(name))
    else:
        return None
    if not as_html:
        return _shown(page)
    from agent.publish.page import document

    return document(asked, page_html(page, {*names_to_explain()}))
