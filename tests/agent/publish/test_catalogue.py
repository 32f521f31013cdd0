"""The catalogue keeps its own rules."""

from __future__ import annotations

from collections import Counter

from agent.publish.catalogue import ALLOWED_LABELS, CATALOGUE, GROUPS
from agent.publish.metric import MetricKind
from agent.publish.metrics_doc import render_metrics_doc


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
        assert not {"version", "incident_id"} & set(metric.labels) or metric.kind is MetricKind.INFO, (
            metric.name
        )


def test_the_page_shows_every_family_once() -> None:
    """The docs page has one row per family."""
    rows = [line for line in render_metrics_doc().splitlines() if line.startswith("| `statewarden_")]
    names = Counter(row.split("`")[1] for row in rows)
    with_values = sum(len(metric.initial) for metric in CATALOGUE)
    assert set(names) == {metric.name for metric in CATALOGUE}
    assert sum(names.values()) == len(CATALOGUE) + with_values
