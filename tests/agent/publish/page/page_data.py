"""Made-up and replayed data for the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.config import load_config
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import gather
from agent.engine.pipeline import Pipeline
from agent.engine.rows import StoreRow, TaskRow
from agent.inventory.model import BlindInterval
from agent.judging.base import Evidence
from agent.publish.page_data import ApplicationRow, PageData, make_page
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from deploy.demo.scenarios import load_scenario

NOW_US = 1_700_000_000_000_000
TRACES = Path(__file__).resolve().parents[3] / "data" / "traces"


def finding(text: str = "it is so", severity: Severity = Severity.CRITICAL, **fields: Any) -> Finding:
    names = {"application_id": "orders", "task_id": "0_1", "store": "counts", **fields}
    return Finding(
        id="0123456789abcdef", detector="torn-store", level=Level.DAMAGE, severity=severity,
        confidence=Confidence.CONFIRMED, status=Status.OPEN, identity=None, opened_at_us=NOW_US - 90_000_000,
        resolved_at_us=None, upstream=("KAFKA-8187",), affected=Affected.YES, missing_facts=("delete_retention_ms",),
        summary=text, evidence=(Evidence(NOW_US - 90_000_000, text, text),), next_action=text, **names,
    )  # fmt: skip


def page_data(**fields: object) -> PageData:
    """Make the data of a page on which nothing is wrong."""
    store = StoreRow("counts", True, 1234567, 42, 5_000_000, 3)
    task = TaskRow("orders", "0_1", True, since_us=NOW_US - 3_600_000_000, incarnation=2, stores=(store,),
                   checkpoint_written_at_us=NOW_US - 30_000_000, bytes=5_000_000)  # fmt: skip
    application = ApplicationRow("orders", "3.9.2", "1b2c", ("pid 7 with Kafka Streams 3.9.2",), (task,), 1)
    given: dict[str, object] = {
        "at_us": NOW_US, "agent_version": "1.2.3", "pod": "shop/orders-0", "state_dir": "/state", "volume": "local",
        "ready": True, "started_us": NOW_US - 86_400_000_000 * 3, "watches": 5, "applications": (application,),
        "applications_total": 1, "incidents": (), "counts": tuple((x, 0) for x in Severity), "blind": (),
        "runbooks": "https://example.org/docs",
    }  # fmt: skip
    return PageData(**{**given, **fields})  # type: ignore[arg-type]


def hostile_page(text: str) -> PageData:
    """Put one text wherever the disk or the operator has a say."""
    store = StoreRow(text, None, None, 0, 0, 0)
    task = TaskRow(
        text, text, worst_severity=Severity.WARNING, checkpoint_problem=text, incarnation=1, stores=(store,)
    )
    application = ApplicationRow(text, text, text, (text,), (task,), 3)
    return page_data(
        agent_version=text, pod=text, state_dir=text, volume=text, applications=(application,),
        incidents=tuple(gather([finding(text, application_id=text, task_id=text, store=text)])),
        counts=((Severity.INFO, 0), (Severity.WARNING, 0), (Severity.CRITICAL, 3)),
        blind=(BlindInterval(NOW_US, text, application=text),), runbooks="https://example.org/docs",
    )  # fmt: skip


def replayed_page(scenario_name: str, *told: str, quiet_us: int = 1_000_000) -> PageData:
    """Replay a recorded incident and take the page right after it; `told`: only these settings are given."""
    scenario = load_scenario(TRACES / scenario_name)
    trace = next(iter(scenario.traces.values()))
    config = load_config(
        sets=[f"{key}={value}" for key, value in scenario.settings.items() if not told or key in told],
        flags={"state_dir": "/state", "pod": "orders-0", "namespace": "shop"},
    )
    disk = MemoryDisk()
    pipeline = Pipeline(disk, config.applications, first_time_us(trace), lambda record: None)
    replay(trace, pipeline, disk, quiet_us)
    now_us = max(x.opened_at_us for x in pipeline.ledger.findings()) + 10_000_000
    return make_page(pipeline, config, now_us, watches=9, ready=True)
