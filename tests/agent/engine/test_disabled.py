"""Detectors that the operator disabled: they open nothing, close what was open, and are never silently so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from agent.config import load_config
from agent.contract.events import Kind, Record, Status
from agent.contract.reporting import DISABLED_PREFIX
from agent.detectors import BY_ID
from agent.engine.pipeline import Pipeline
from agent.findings.ledger import Place
from agent.home.baseline import RUNNING, compose, understand
from agent.inventory.settings import Setting
from agent.observe.kernel_disk import KernelDisk
from agent.process.snapshots import take_snapshot
from agent.publish.exposition import Exposition
from agent.publish.page import render
from agent.publish.page_data import make_page
from agent.publish.rows import TaskTable
from tests.agent.cli.commands import FACTS, plant

NOW_US = 1_800_000_000_000_000
LATER_US = NOW_US + 60_000_000
DETECTOR = "resurrected-checkpoint"
WHY = Setting("restored from a backup on purpose", "flag")
CONFIG = load_config(
    sets=[f"{key}={value}" for key, value in FACTS.items()],
    flags={"detectors.disabled": [f"{DETECTOR}={WHY.value}"]},
    detectors=BY_ID,
)


def watch(root: Path, *, disabled: bool, at_us: int = NOW_US) -> tuple[Pipeline, list[Record]]:
    """Make an agent's pipeline on a directory."""
    records: list[Record] = []
    given = CONFIG.disabled if disabled else {}
    return Pipeline(KernelDisk(root), CONFIG.applications, at_us, records.append, disabled=given), records


def restart(root: Path, before: Pipeline, *, disabled: bool) -> tuple[Pipeline, list[Record]]:
    """Go on from the baseline of another agent, through JSON."""
    lines = [json.loads(json.dumps(line)) for line in compose(before, str(root), NOW_US, RUNNING)]
    found = understand(iter(lines), str(root), NOW_US)
    pipeline, records = watch(root, disabled=disabled, at_us=LATER_US)
    pipeline.resume(found.inventory, found.findings, NOW_US, "it was stopped")
    pipeline.scan(LATER_US)
    pipeline.summarise(LATER_US)
    return pipeline, records


def findings(records: list[Record]) -> list[dict[str, object]]:
    return [dict(x.body) for x in records if x.kind is Kind.FINDING and x.body["detector"] == DETECTOR]


def test_a_disabled_detector_is_not_asked_and_others_are(tmp_path: Path) -> None:
    """The same directory: a finding with it, none without; it has no runs, and names no missing fact."""
    plant(tmp_path)
    enabled, records = watch(tmp_path, disabled=False)
    enabled.scan(NOW_US)
    assert [x["status"] for x in findings(records)] == ["open"]
    pipeline, records = watch(tmp_path, disabled=True)
    pipeline.scan(NOW_US)
    assert findings(records) == []
    assert DETECTOR not in pipeline.stats
    assert pipeline.stats.keys() == enabled.stats.keys() - {DETECTOR}


def test_a_disabled_detector_is_never_silently_so(tmp_path: Path) -> None:
    """Record, metrics and page all name it and why, and the page gives no plain all-clear."""
    plant(tmp_path)
    pipeline, records = watch(tmp_path, disabled=True)
    pipeline.scan(NOW_US)
    (configuration,) = [x.body for x in records if x.kind is Kind.CONFIGURATION]
    rows = configuration["settings"]
    assert isinstance(rows, list)
    assert rows[-1] == {"key": f"{DISABLED_PREFIX}{DETECTOR}", "value": WHY.value, "origin": WHY.origin}
    snapshot = take_snapshot(pipeline, NOW_US, TaskTable())
    _, body = Exposition(lambda: snapshot, [x.meta for x in pipeline.detectors]).answer()
    assert f'statewarden_agent_detector_runs_total{{detector="{DETECTOR}"}}' not in body.decode()
    assert f'statewarden_detector_disabled{{detector="{DETECTOR}",reason="{WHY.value}"}} 1.0' in body.decode()
    data = make_page(pipeline, CONFIG, NOW_US, watches=1, ready=True)
    assert data.disabled == ((DETECTOR, WHY.value),)
    page = render(data)
    assert "; 1 detector disabled</h1>" in page
    assert f"<code>{DETECTOR}</code>: {WHY.value}" in page


def test_what_was_open_is_closed_with_the_reason(tmp_path: Path) -> None:
    """The agent that starts without the detector resolves its finding; the last evidence says why."""
    plant(tmp_path)
    before, records = watch(tmp_path, disabled=False)
    before.scan(NOW_US)
    (opened,) = findings(records)
    after, records = restart(tmp_path, before, disabled=True)
    (said,) = findings(records)
    assert (said["finding_id"], said["status"], said["resolved_at_us"]) == (
        opened["finding_id"], "resolved", LATER_US,
    )  # fmt: skip
    evidence = said["evidence"]
    assert isinstance(evidence, list)
    assert evidence[-1]["what"] == f"the detector is disabled: {WHY.value}"
    assert [x for x in after.ledger.findings() if x.detector == DETECTOR] == []


def test_what_a_detector_left_open_that_is_no_more_is_closed(tmp_path: Path) -> None:
    """Of an older version: nothing would ever close it."""
    plant(tmp_path)
    before, records = watch(tmp_path, disabled=False)
    before.scan(NOW_US)
    found = before.ledger.open_findings()[0]
    gone = replace(found, detector="wipe-storm")
    after, records = watch(tmp_path, disabled=False, at_us=LATER_US)
    place = Place(gone.detector, gone.application_id, gone.task_id)
    after.resume(before.inventory, [(place, "storm", gone)], NOW_US, "it was stopped")
    (said,) = [x.body for x in records if x.kind is Kind.FINDING]
    assert (said["detector"], said["status"]) == (gone.detector, "resolved")
    assert after.ledger.findings() == []


def test_enabled_again_it_opens_the_same_finding_again(tmp_path: Path) -> None:
    """Closing was no verdict: damage that is still there comes back under its id."""
    plant(tmp_path)
    before, records = watch(tmp_path, disabled=False)
    before.scan(NOW_US)
    (opened,) = findings(records)
    without, _ = restart(tmp_path, before, disabled=True)
    again, records = restart(tmp_path, without, disabled=False)
    (said,) = findings(records)
    assert (said["finding_id"], said["status"]) == (opened["finding_id"], "open")
    assert [x.status for x in again.ledger.findings() if x.detector == DETECTOR] == [Status.OPEN]


def test_enabled_again_it_knows_damage_of_which_nothing_else_is_left(tmp_path: Path) -> None:
    """The next checkpoint hides it: it is open again as long as the store is there, however often it was disabled."""
    plant(tmp_path)
    before, records = watch(tmp_path, disabled=False)
    before.scan(NOW_US)
    (opened,) = findings(records)
    without, _ = restart(tmp_path, before, disabled=True)
    (tmp_path / "app/0_0/.checkpoint").touch()
    without, records = restart(tmp_path, without, disabled=True)
    assert findings(records) == []
    again, records = restart(tmp_path, without, disabled=False)
    assert [(x["finding_id"], x["status"]) for x in findings(records)] == [(opened["finding_id"], "open")]
    without, _ = restart(tmp_path, again, disabled=True)
    (tmp_path / "app/0_0/rocksdb/s/IDENTITY").write_text("6f5a2f0e-0000-4000-8000-000000000002\n")
    without, _ = restart(tmp_path, without, disabled=True)
    again, records = restart(tmp_path, without, disabled=False)
    assert opened["finding_id"] not in [x["finding_id"] for x in findings(records)]
