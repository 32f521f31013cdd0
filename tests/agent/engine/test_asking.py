"""Asking only those whose verdict can have changed finds the same, at the same times, as asking everyone always."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from agent.config import load_config
from agent.contract.events import Kind
from agent.detectors import DETECTORS
from agent.engine.one_reading import judge_once
from agent.engine.pipeline import Pipeline
from agent.findings.finding import Finding
from agent.judging.base import Detector
from agent.replay.memory_disk import MemoryDisk
from tests.agent.engine.playing import (
    TRACES,
    Run,
    operations_of,
    sets_of,
)

EVERYONE = tuple(
    replace(
        x, meta=replace(x.meta, exactly_once=None, silent_where=(), waits_us=None, unmoved_by=frozenset())
    )
    for x in DETECTORS
)
"""The same detectors, of which none says when it need not be asked."""

RECORDED = sorted((path.parent.name, path.name[6:-9]) for path in TRACES.glob("*/trace-*.jsonl.gz"))
FEW = (
    "kafka-8187-stage2-2.0.1",
    "torn-clean-3.9.2",
    "lost-segment-4.3.1",
    "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2",
    "changelog-truncated-3.9.2",
)
QUIET_US = 400_000_000

Said = list[tuple[int, tuple[tuple[str, str], ...]]]


def said(run: Run) -> Said:
    """List what was found, in order: when, and all that is reported of it."""
    return [
        (x.observed_at_us, tuple(sorted((name, repr(value)) for name, value in x.body.items())))
        for x in run.records
        if x.kind is Kind.FINDING
    ]


def played(
    scenario: str, pod: str, detectors: tuple[Detector, ...], seed: int | None, more: list[str] | None = None
) -> Run:
    """Play a recording, each operation for itself, or (with a seed) in batches as a busy agent hears of them."""
    choose = random.Random(seed)
    operations = operations_of(scenario, pod)
    run = Run(operations[0].at_us, sets_of(scenario) if more is None else more, detectors=detectors)
    first = 0
    while first < len(operations):
        last = first + (1 if seed is None else choose.choice((1, 1, 2, 5, 20)))
        batch = operations[first:last]
        while batch[-1].at_us - batch[0].at_us > 100_000:
            batch.pop()
        if seed is not None and choose.random() < 0.01:
            run.unseen(*batch)
        else:
            run.play(*batch)
        first += len(batch)
    run.rest(QUIET_US)
    return run


def assert_same(scenario: str, pod: str, seed: int | None, more: list[str] | None = None) -> None:
    assert said(played(scenario, pod, DETECTORS, seed, more)) == said(
        played(scenario, pod, EVERYONE, seed, more)
    )


@pytest.mark.parametrize("scenario", FEW)
def test_a_recording_is_judged_alike(scenario: str) -> None:
    """A detector that is left out would have said the same as before."""
    assert_same(scenario, "pod-a", None)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(("scenario", "pod"), RECORDED)
def test_every_recording_is_judged_alike(scenario: str, pod: str, seed: int | None) -> None:
    """In any batching, and with changes that are never announced."""
    assert_same(scenario, pod, seed)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "more", [[], ["processing_guarantee=at_least_once"], ["processing_guarantee=exactly_once_v2"]]
)
@pytest.mark.parametrize(("scenario", "pod"), RECORDED)
def test_every_recording_is_judged_alike_with_other_settings(
    scenario: str, pod: str, more: list[str]
) -> None:
    """Settings that are not those of the recording let other detectors speak."""
    assert_same(scenario, pod, 3, more)


def read_once(
    disk: MemoryDisk, now_us: int, sets: list[str], detectors: tuple[Detector, ...]
) -> list[Finding]:
    """Judge a disk by one reading, as `scan` does."""
    pipeline = Pipeline(
        disk, load_config(sets=sets).applications, now_us, lambda record: None, detectors=detectors
    )
    return judge_once(pipeline, now_us)


def assert_same_of_one_reading(scenario: str, pod: str, moments: int) -> None:
    """Compare at so many moments of a recording, the last of which is its end."""
    disk, operations = MemoryDisk(), operations_of(scenario, pod)
    for moment in range(moments):
        first, last = (len(operations) * (moment + more) // moments for more in (0, 1))
        for operation in operations[first:last]:
            disk.apply(operation)
        now_us = operations[last - 1].at_us + 1
        for sets in ([], sets_of(scenario)):
            assert read_once(disk, now_us, sets, DETECTORS) == read_once(disk, now_us, sets, EVERYONE)


@pytest.mark.parametrize("scenario", FEW)
def test_a_single_reading_is_judged_alike(scenario: str) -> None:
    """Its second judgement, an hour on, leaves out those that were asked at the first one and wait for nothing."""
    assert_same_of_one_reading(scenario, "pod-a", 3)


@pytest.mark.heavy
@pytest.mark.parametrize(("scenario", "pod"), RECORDED)
def test_every_single_reading_is_judged_alike(scenario: str, pod: str) -> None:
    """At twelve moments of every recording."""
    assert_same_of_one_reading(scenario, pod, 12)
