"""Detector `setup`: the state directory lies on a volume that does not last."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Severity
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, judge
from tests.support.scenario_looks import known

ID = "setup"


@pytest.mark.parametrize(
    ("volume", "severity"),
    [
        ("memory", Severity.WARNING),
        ("overlay", Severity.INFO),
        ("local", None),
        ("network", None),
        ("", None),
    ],
)
def test_kind_of_the_volume(volume, severity):
    """Memory is a warning, a container's own layer information, anything else nothing."""
    one = case()
    one.inventory.volume = volume
    found = judge(ID, one)
    assert [x.severity for x in found] == ([] if severity is None else [severity])
    if found:
        assert (found[0].confidence, found[0].affected, found[0].opened_at_us) == (
            Confidence.CONFIRMED,
            Affected.NO,
            at(0),
        )


def test_needs_an_application():
    """An empty directory is nobody's state."""
    one = case()
    one.inventory.volume = "memory"
    known(one.application).exists = False
    assert judge(ID, one) == []


def test_quiet_where_the_volume_is_not_known():
    """A replayed run has no volume."""
    run = Scenario("3.9.2")
    run.start().opens("0_0")
    run.wait(120)
    assert run.findings(ID) == []
