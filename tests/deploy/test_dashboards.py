"""Boards: stable addresses, variables and links, and queries that Prometheus understands and the agents can answer."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.publish.catalogue import CATALOGUE
from spark_rollup.report.metrics import CATALOGUE as ROLLUP_CATALOGUE
from tests.support.boards import boards, filled, queries
from tests.support.every import every
from tools.alerts.files import RECORDED

BOARDS = boards()
UIDS = (
    "statewarden-agent",
    "statewarden-application",
    "statewarden-fleet",
    "statewarden-pod",
    "statewarden-task",
)
NAMES = {x.name for x in CATALOGUE} | {x.name for x in ROLLUP_CATALOGUE} | set(RECORDED)


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    """List the panels that show data."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def test_the_five_boards_keep_their_addresses() -> None:
    """Links from alerts and bookmarks depend on these uids."""
    assert tuple(BOARDS) == UIDS
    assert {uid: board["uid"] for uid, board in BOARDS.items()} == {uid: uid for uid in UIDS}
    assert not [uid for uid, board in BOARDS.items() if board.get("id")]


@every("uid", UIDS)
def test_variables_are_chained(uid: str) -> None:
    """The data source is a variable, and each variable is narrowed by those before it."""
    first, *others = BOARDS[uid]["templating"]["list"]
    assert (first["name"], first["type"]) == ("datasource", "datasource")
    assert [variable["name"] for variable in others[:2]] == ["cluster", "namespace"]
    for number, variable in enumerate(others):
        assert variable["query"].startswith("label_values(statewarden_")
        assert all(f"${before['name']}" in variable["query"] for before in others[: min(number, 2)])
        assert (variable["includeAll"], variable["allValue"]) == (True, ".*")


@every("uid", UIDS)
def test_every_variable_is_used_and_every_used_one_is_there(uid: str) -> None:
    """A variable without effect misleads; one that is missing breaks the query."""
    board = BOARDS[uid]
    named = {variable["name"] for variable in board["templating"]["list"]} - {"datasource"}
    used = set(re.findall(r"\$(?!__)([a-z]\w*)", json.dumps([panel["targets"] for panel in panels(board)])))
    assert used == named


@every("uid", UIDS)
def test_panels_explain_themselves(uid: str) -> None:
    """Each panel says what it means, has a unit, thresholds, and words for having no data."""
    for panel in panels(BOARDS[uid]):
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["description"].endswith("."), panel["title"]
        assert defaults["unit"]
        assert defaults["noValue"]
        assert defaults["thresholds"]["steps"][0]["value"] is None
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        if panel["type"] in ("timeseries", "state-timeline"):
            assert all(
                "{{" in target["legendFormat"] for target in panel["targets"] if "sum(" not in target["expr"]
            )


@every("uid", UIDS)
def test_panels_do_not_overlap(uid: str) -> None:
    """The grid is 24 wide, and no two panels take the same place."""
    taken: set[tuple[int, int]] = set()
    for panel in BOARDS[uid]["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells


def test_every_query_keeps_to_its_cluster() -> None:
    """Two clusters with the same names in them stay apart: each query selects, each sum keeps the label."""
    for asked in queries():
        selected = re.findall(r"(?:statewarden_\w+|:max|:sum)\{([^}]*)\}", asked.expr)
        assert selected, asked
        assert all('cluster=~"$cluster"' in selector for selector in selected), asked
        assert not re.search(r"(?:by|on) \(namespace", asked.expr), asked


def test_boards_lead_to_each_other() -> None:
    """Every board lists the others, and tables lead to application, task and pod."""
    for board in BOARDS.values():
        (link,) = board["links"]
        assert (link["type"], link["tags"], link["includeVars"], link["keepTime"]) == (
            "dashboards", ["statewarden"], True, True)  # fmt: skip
        assert board["tags"] == ["statewarden"]
    addresses = set(re.findall(r"/d/([a-z-]+)\?", json.dumps(BOARDS)))
    assert set(re.findall(r"/d/[a-z-]+\?(.{25})", json.dumps(BOARDS))) == {"${cluster:queryparam}&var-"[:25]}
    assert addresses == {"statewarden-application", "statewarden-task", "statewarden-pod"}


def test_a_table_begins_with_what_matters_and_leads_where_it_can() -> None:
    """Grafana's own order is alphabetical. A link is on a column that is there, and takes its values from such."""
    linked = set()
    for uid, board in BOARDS.items():
        for panel in panels(board):
            if panel["type"] != "table":
                continue
            order = panel["transformations"][0]["options"]["indexByName"]
            expr = panel["targets"][0]["expr"]
            recorded = expr.removeprefix("sort_desc(").partition("{")[0]
            labels = re.search(r"by \(([^)]*)\)", RECORDED.get(recorded, expr))
            assert labels is not None
            assert sorted(order) == sorted(["Value", *labels[1].split(", ")]), panel["title"]
            assert sorted(order.values()) == list(range(len(order)))
            assert order["severity" if "severity" in order else "Value"] == 0
            overrides = {
                x["matcher"]["options"]: x["properties"][0]["value"][0]["url"]
                for x in panel["fieldConfig"]["overrides"] if x["properties"][0]["id"] == "links"
            }  # fmt: skip
            assert set(overrides) == set(order) & {"application_id", "task_id", "pod"}, (uid, panel["title"])
            for url in overrides.values():
                leads = BOARDS[re.findall(r"/d/([a-z-]+)\?", url)[0]]
                wanted = {x["name"] for x in leads["templating"]["list"]}
                assert set(re.findall(r"__data\.fields\.(\w+)", url)) <= set(order), url
                assert set(re.findall(r"var-(\w+)=", url)) <= wanted, url
            linked |= set(overrides)
    assert linked == {"application_id", "task_id", "pod"}


def test_queries_ask_for_series_that_exist() -> None:
    """Every name in a query is in a catalogue or is recorded by a rule."""
    for asked in queries():
        found = set(re.findall(r"[a-z_:]*statewarden_[a-z_:]+", asked.expr))
        assert found, asked
        assert found <= NAMES, asked


@pytest.mark.packages
def test_prometheus_parses_every_query(tmp_path: Path) -> None:
    """Each query, its variables filled in, is a rule that `promtool check rules` accepts."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus")
    rules = [{"record": f"query:{index}", "expr": filled(x.expr)} for index, x in enumerate(queries())]
    rules += [
        {"record": f"annotation:{index}", "expr": filled(note["expr"])}
        for index, note in enumerate(x for board in BOARDS.values() for x in board["annotations"]["list"])
    ]
    (tmp_path / "queries.yaml").write_text(json.dumps({"groups": [{"name": "boards", "rules": rules}]}))
    checked = subprocess.run(
        [promtool, "check", "rules", str(tmp_path / "queries.yaml")], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_boards_agree_with_grafanas_types(repository: Path) -> None:
    """TypeScript accepts every committed board as Grafana's own `Dashboard` (npm package @grafana/schema)."""
    if shutil.which("npm") is None:
        pytest.skip("no npm: apt-get install npm")
    checked = subprocess.run([repository / "tools/dashboards/typecheck.sh"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(UIDS)} boards agree" in checked.stdout
