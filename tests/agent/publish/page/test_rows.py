"""What the page is told is bounded, the worst first, and made only when somebody asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.config import load_config
from agent.contract.codec import decode
from agent.contract.events import Confidence, Origin, Severity
from agent.contract.finding import read_back
from agent.detectors import stale_eos_checkpoint
from agent.engine.pipeline import Pipeline
from agent.findings.ledger import Place
from agent.inventory.model import Application, Task
from agent.judging.base import Verdict
from agent.publish.page import render
from agent.publish.page_data import (
    APPLICATIONS_SHOWN,
    INCIDENTS_SHOWN,
    TASKS_SHOWN,
    PageCache,
    PageData,
    make_page,
)
from agent.replay.memory_disk import MemoryDisk
from tests.agent.publish.page.page_data import NOW_US, finding, page_data

META = stale_eos_checkpoint.META


def big_pipeline(tasks: int, applications: int = 1) -> Pipeline:
    """Make a pipeline that knows many empty tasks."""
    pipeline = Pipeline(MemoryDisk(), load_config().applications, NOW_US, lambda record: None)
    for index in range(applications):
        name = f"app-{index:03d}"
        rows = {
            f"0_{n}": Task(name, f"0_{n}", f"{name}/0_{n}", exists=True, incarnation=1) for n in range(tasks)
        }
        pipeline.inventory.applications[name] = Application(name, exists=True, tasks=rows)
    return pipeline


def tell(pipeline: Pipeline, task: str, severity: Severity, ended_us: int = 0) -> None:
    """Have a finding on a task of the first application, after a process had ended at a time."""
    verdict = Verdict("now", NOW_US, "it is so", (), severity, Confidence.CONFIRMED)
    place = Place(META.id, "app-000", task)
    pipeline.ledger.settle(META, place, [verdict], NOW_US, ended_us=(ended_us,) if ended_us else ())


def page_of(pipeline: Pipeline) -> PageData:
    return make_page(pipeline, load_config(), NOW_US, watches=0, ready=True)


def test_ten_thousand_tasks_make_a_short_page() -> None:
    """Two hundred tasks are listed, the troubled ones first, the rest is a number; the page stays small."""
    pipeline = big_pipeline(10_000)
    for number in range(300):
        tell(pipeline, f"0_{9_000 + number}", Severity.WARNING)
    tell(pipeline, "0_9999", Severity.CRITICAL)
    for number in range(120):
        tell(pipeline, f"0_{number}", Severity.WARNING, ended_us=number + 1)
    data = page_of(pipeline)
    (application,) = data.applications
    assert (len(application.tasks), application.tasks_total) == (TASKS_SHOWN, 10_000)
    assert (application.tasks[0].task_id, application.tasks[1].task_id) == ("0_9999", "0_0")
    assert (len(data.incidents), data.incidents[0].lead.task_id) == (INCIDENTS_SHOWN, "0_9999")
    assert len(data.incidents[0].findings) == 301
    assert dict(data.counts) == {Severity.INFO: 0, Severity.WARNING: 120, Severity.CRITICAL: 1}
    document = render(data)
    assert "9\u202f800 tasks more" in document
    assert "289 findings more" in document
    assert "21 incidents more" in document
    assert len(document) < 400_000


def test_many_applications_are_bounded_and_troubled_ones_come_first() -> None:
    """An application with a finding is on the page however many others there are."""
    pipeline = big_pipeline(1, APPLICATIONS_SHOWN + 5)
    verdict = Verdict("now", NOW_US, "it is so", (), Severity.WARNING, Confidence.CONFIRMED)
    pipeline.ledger.settle(META, Place(META.id, "app-054", None), [verdict], NOW_US)
    data = page_of(pipeline)
    assert (len(data.applications), data.applications_total) == (APPLICATIONS_SHOWN, APPLICATIONS_SHOWN + 5)
    assert data.applications[0].id == "app-054"


def test_a_remark_of_an_incident_that_is_over_stays_on_the_page() -> None:
    """What was severe is gone from it; what is open is not."""
    pipeline = big_pipeline(2)
    tell(pipeline, "0_0", Severity.WARNING)
    tell(pipeline, "0_1", Severity.INFO)
    pipeline.ledger.settle(META, Place(META.id, "app-000", "0_0"), [], NOW_US + 1)
    data = page_of(pipeline)
    assert [(x.severity, x.tasks) for x in data.incidents] == [(Severity.INFO, ("0_1",))]
    assert dict(data.counts)[Severity.INFO] == 1


def test_the_worker_answers_who_asked(eventually: Callable[..., object]) -> None:
    """A reader waits for the worker; without a reader the worker makes nothing."""
    desk = PageCache(lambda: None)
    made: list[int] = []

    def make() -> PageData:
        made.append(1)
        return page_data()

    desk.serve(make)
    assert made == []
    pages: list[str] = []
    reader = threading.Thread(target=lambda: pages.append(render(*desk.fetch())))
    reader.start()

    def is_answered() -> bool:
        desk.serve(make)
        return bool(made)

    eventually(is_answered)
    reader.join()
    assert "Nothing found" in pages[0]
    assert "may be old" not in pages[0]
    desk.serve(make)
    assert len(made) == 1


def test_a_worker_that_hangs_does_not_hang_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader gets what there is, with the reason."""
    monkeypatch.setattr("agent.publish.page_data.WAIT_S", 0.01)
    assert "the worker has not started" in render(*PageCache(lambda: "the worker has not started").fetch())


def test_findings_are_lines_of_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `explain` reads of a running agent: each finding as the agent ships it."""
    monkeypatch.setattr("agent.publish.page_data.WAIT_S", 0.01)
    desk, origin = PageCache(lambda: None), Origin("uid", "boot", "pod-a")
    assert desk.findings(origin) is None
    known = finding("0123456789abcdef", application_id="orders", task_id="0_1")
    data = page_data(findings=(known,))
    desk.serve(lambda: data)
    assert desk.findings(origin) is None  # what was so before is no answer
    monkeypatch.setattr(desk, "fetch", lambda: (data, None))
    (line,) = (desk.findings(origin) or "").splitlines()
    assert read_back(decode(line)) == replace(known, evidence=(), mechanism=known.detector)
