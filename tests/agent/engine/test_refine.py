"""How sure a verdict stays where the agent was blind, and where clocks were not compared."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.engine.detector_runner import BLIND, NOT_COMPARED, doubted
from agent.inventory.model import BlindInterval
from agent.judging.base import DetectorMeta, Evidence, Kind, Verdict
from tests.support.scenario_case import at, case


def meta(kind: Kind) -> DetectorMeta:
    return DetectorMeta("some", "", "", None, kind=kind)  # type: ignore[arg-type]


def verdict(*times: float, confidence: Confidence = Confidence.CONFIRMED) -> Verdict:
    """A critical verdict by evidence of these times."""
    steps = tuple(Evidence(at(x), "", "") for x in times)
    return Verdict("", at(0), "Said.", steps, Severity.CRITICAL, confidence)


@pytest.mark.parametrize(
    ("kind", "times", "severity", "confidence"),
    [
        (Kind.DAMAGE, (10, 90), Severity.WARNING, Confidence.SUSPECTED),  # blind for a part of the chain
        (Kind.DAMAGE, (60, 90), Severity.CRITICAL, Confidence.CONFIRMED),
        (Kind.CONDITION, (10, 90), Severity.CRITICAL, Confidence.CONFIRMED),  # it is there now
        (Kind.CONDITION, (10, 42), Severity.CRITICAL, Confidence.SUSPECTED),
        (Kind.CONDITION, (40, 90), Severity.CRITICAL, Confidence.SUSPECTED),
        (Kind.CONDITION, (10, 45), Severity.CRITICAL, Confidence.SUSPECTED),
        (Kind.CONDITION, (10, 45.1), Severity.CRITICAL, Confidence.CONFIRMED),
    ],
)
def test_clock_step(kind, times, severity, confidence):
    """Evidence within a step of the clock is suspected at most; a condition stays as severe as it is."""
    one = case()
    one.inventory.blind.append(BlindInterval(at(40), "clock-step", at(45)))
    found = doubted(one, meta(kind), verdict(*times))
    assert (found.severity, found.confidence) == (severity, confidence)
    assert (BLIND in found.summary) == (confidence is Confidence.SUSPECTED)


@pytest.mark.parametrize(
    ("interval", "times", "sure"),
    [
        # a checkpoint before the step and a flush after it: their order may be the other way round, or not
        (BlindInterval(at(435.59), "clock-step", at(440.59)), (425, 435.597, 440.585), False),
        # a file that is damaged hides nothing of when it was found
        (BlindInterval(at(5), "store-damaged", None, "app", "0_0"), (10, 20), True),
        (BlindInterval(at(5), "denied", None, "app", "0_0"), (10, 20), True),
        (BlindInterval(at(5), "missed", at(50), "app", "0_1"), (10, 20), True),  # another task
    ],
)
def test_what_was_not_seen(interval, times, sure):
    """It makes a condition unsure that rests on that time and place, and leaves its severity."""
    one = case()
    one.inventory.blind.append(interval)
    found = doubted(one, meta(Kind.CONDITION), verdict(*times))
    assert (found.severity, found.confidence is Confidence.CONFIRMED) == (Severity.CRITICAL, sure)


def test_unknown_stays_unknown():
    """It was not sure to begin with."""
    one = case()
    one.inventory.blind.append(BlindInterval(at(5), "agent-away", at(50)))
    found = doubted(one, meta(Kind.DAMAGE), verdict(10, 20, confidence=Confidence.UNKNOWN))
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.UNKNOWN)


@pytest.mark.parametrize(
    ("ahead_us", "times", "sure"),
    [
        (None, (10, 12), False),
        (None, (10, 20), True),  # no two clocks differ by so much
        (None, (10, 10), True),
        (0, (10, 12), True),
        (3_000_000, (10, 12), True),  # measured, and taken off
    ],
)
def test_clock_of_a_file_server(ahead_us, times, sure):
    """Before it is compared the order of near times is not sure; the verdict stays as severe as it is."""
    one = case()
    one.inventory.slowed["clock-differs"], one.inventory.ahead_us = (at(0), ""), ahead_us
    found = doubted(one, meta(Kind.CONDITION), verdict(*times))
    assert found.severity is Severity.CRITICAL
    assert (found.confidence is Confidence.CONFIRMED) == sure
    assert (NOT_COMPARED in found.summary) == (not sure)
