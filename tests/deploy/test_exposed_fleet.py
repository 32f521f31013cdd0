"""Notifications of a fleet on a release that exposes it: the figures of the docs, and how groups are sent."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.prove.exposed_fleet import KILLED, ROUTES, measure, render
from tests.support.notified import Route, notified

HERE = {"alertname": "A", "application_id": "orders"}
ROUTE = Route("tickets", {}, ("application_id",), repeat_m=60, interval_m=5)


@pytest.mark.packages
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_docs_show_what_the_rules_make_of_the_fleet(repository: Path, tmp_path: Path) -> None:
    """One notification to read per application, and tickets of the kills only."""
    if shutil.which("promtool") is None:
        pytest.skip("no promtool: apt-get install prometheus")
    rows = measure(tmp_path)
    by_day = {x.receiver: x.by_day for x in rows}
    assert by_day["pages"] == (0, 0, 0)
    assert by_day["for reading"] == (20, 0, 0)
    assert max(by_day["tickets"]) <= 2 * len(KILLED)
    page = (repository / "docs/monitoring.md").read_text(encoding="utf-8")
    assert f"<!-- exposed fleet -->\n{render(rows)}<!-- /exposed fleet -->" in page


def test_the_routes_are_those_of_the_example(repository: Path) -> None:
    """What the proof sends by is what the committed routes say."""
    text = (repository / "deploy/alerts/alertmanager.yaml").read_text(encoding="utf-8")
    groups = {re.sub(r"cluster, ", "", x) for x in re.findall(r"group_by: \[(.*)\]", text)}
    assert {", ".join(route.group_by) for route in ROUTES} == groups
    assert [f"{route.repeat_m // 60}h" for route in ROUTES[:2]] == ["12h", "168h"]
    assert {"repeat_interval: 12h", "repeat_interval: 168h"} <= set(
        re.findall(r"repeat_interval: \d+h", text)
    )


def test_a_group_is_sent_when_it_appears_and_when_it_goes_on_for_long() -> None:
    """Once, then after the repeat interval; what went and came is another one."""
    assert notified([ROUTE], [[HERE]] * 6, 30) == [(0, "tickets"), (2, "tickets"), (4, "tickets")]
    assert notified([ROUTE], [[HERE], [], [HERE]], 5) == [(0, "tickets"), (2, "tickets")]


def test_an_alert_that_joins_a_group_is_sent_after_its_interval() -> None:
    """One notification for all that came meanwhile; one that leaves sends nothing."""
    second = {**HERE, "pod": "orders-1"}
    assert notified([ROUTE], [[HERE], [HERE, second], [HERE, second], [HERE]], 4) == [
        (0, "tickets"),
        (2, "tickets"),
    ]


def test_the_first_route_that_matches_takes_an_alert() -> None:
    """The others do not see it."""
    pages = Route("pages", {"severity": "critical"}, (), repeat_m=60, interval_m=5)
    sent = notified([pages, ROUTE], [[HERE, {**HERE, "severity": "critical"}]], 5)
    assert sorted(sent) == [(0, "pages"), (0, "tickets")]
