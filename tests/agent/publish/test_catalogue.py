"""The catalogue keeps its own rules, and no agent has more series than it says."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence

import pytest

from agent.contract.events import Severity
from agent.detectors import DETECTORS, auditor_blind, stale_eos_checkpoint, undecided
from agent.engine.rows import StoreRow, TaskRow
from agent.judging.base import Detector
from agent.preflight.checks import CHECKS
from agent.publish.catalogue import CATALOGUE, GROUPS
from agent.publish.exposition import Exposition
from agent.publish.metric import MetricKind
from agent.publish.series_scope import places, severities
from agent.publish.snapshot import MetricsSnapshot
from tools.parts_of_pages import SERIES_BUDGET, SERIES_BUDGET_BY_STORE, render_metrics_page, series_of

ALLOWED_LABELS = frozenset(
    {
        "application_id",
        "task_id",
        "store",
        "detector",
        "severity",
        "cause",
        "outcome",
        "kind",
        "reason",
        "version",
        "incident_id",
        "tasks",
        "confidence",
        "level",
        "configured_exposure",
        "do_first",
        "named_by",
        "summary",
        "next_step",
        "accepted",
        "release",
    }
)
"""Only of incidents, which are bounded: `incident_id`, `tasks`, `do_first`, `named_by`, `summary`, `next_step`.
`release` only of exposures; `store` only where an operator opted in; `reason` only of disabled detectors; `version`
only of the agent itself."""


def test_names_are_unique_and_prefixed() -> None:
    """Each name occurs once, with the product's prefix, and never takes a reserved one."""
    assert [name for name, count in Counter(m.name for m in CATALOGUE).items() if count > 1] == []
    assert all(metric.name.startswith("statewarden_") for metric in CATALOGUE)
    assert all(metric.name.startswith("statewarden_agent_") for metric in GROUPS[-1][1])


def test_labels_are_few_and_known() -> None:
    """No label names a target, a path or an offset; what starts at zero is a label of its family."""
    for metric in CATALOGUE:
        assert set(metric.labels) <= ALLOWED_LABELS, metric.name
        assert set(metric.initial) <= set(metric.labels), metric.name
        bounded = metric.kind is MetricKind.INFO or metric.name == "statewarden_incident_text"
        assert bounded or not {"version", "incident_id"} & set(metric.labels), metric.name


def test_the_page_shows_every_family_once() -> None:
    """The docs page has one row per family, whose name says its kind."""
    page = render_metrics_page().partition("\n## Label values")[0]
    names = [row.split("`")[1] for row in page.splitlines() if row.startswith("| `statewarden_")]
    assert sorted(names) == sorted(metric.name for metric in CATALOGUE)
    kinds = {"total": MetricKind.COUNTER, "info": MetricKind.INFO}
    for metric in CATALOGUE:
        assert metric.kind is kinds.get(metric.name.rpartition("_")[2], MetricKind.GAUGE), metric.name


TASKS, STORES = 20, 3


def lines(by_store: bool, detectors: Sequence[Detector] = DETECTORS) -> list[str]:
    """Scrape one agent with 20 tasks of 3 stores."""
    stores = tuple(StoreRow(f"store-{number}", True, 1, 1, 1) for number in range(STORES))
    tasks = tuple(
        TaskRow("orders", f"0_{number}", True, 1, 1, 1, 1, 1, 1, stores=stores if by_store else ())
        for number in range(TASKS)
    )
    snapshot = MetricsSnapshot(
        agent_version="1", applications=("orders",), tasks=tasks, exactly_once={"orders": True},
        resident_memory_bytes=1, preflight=dict.fromkeys(CHECKS, 0),
    )  # fmt: skip
    text = Exposition(lambda: snapshot, [x.meta for x in detectors]).answer()[1].decode()
    return text.splitlines()


def test_the_series_budget_holds() -> None:
    """20 tasks of 3 stores stay inside the budget that docs/metrics.md states, and stores cost what it says."""
    counted = {by_store: sum(not x.startswith("#") for x in lines(by_store)) for by_store in (False, True)}
    without = sum(not x.startswith("#") for x in lines(by_store=False, detectors=()))
    assert without <= SERIES_BUDGET
    assert counted[False] - without <= sum(sum(series_of(x.meta)) for x in DETECTORS)
    assert counted[True] - counted[False] == TASKS * STORES * SERIES_BUDGET_BY_STORE


@pytest.mark.packages
def test_promtool_finds_nothing() -> None:
    """`promtool check metrics` reads the exposition and complains about no name, type or help."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus (see docs/metrics.md)")
    text = "\n".join(lines(by_store=True)) + "\n"
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_severities_end_with_the_highest() -> None:
    """A remark is never a page."""
    assert severities(undecided.META)[-1] == "warning"
    assert severities(stale_eos_checkpoint.META) == tuple(x.value for x in Severity)


def test_places_are_those_that_it_judges() -> None:
    """Applications of its guarantee, if that is known; the agent itself where it judges that."""
    applications = {"a": True, "b": False, "c": None}
    assert places(stale_eos_checkpoint.META, applications) == ["a"]
    assert places(undecided.META, applications) == ["a", "b", "c"]
    assert places(auditor_blind.META, applications) == [""]
