"""Whatever fires: `statewarden explain ALERT` knows its name."""

from __future__ import annotations

import pytest

from agent.cli import main
from tests.support.every import every
from tools.alerts.files import groups
from tools.alerts.model import Alert

ALERTS = [alert for _, group in groups() for alert in group]
WATCHERS = [alert for name, group in groups() if name.endswith("-health") for alert in group]


@every("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_is_explained(capsys: pytest.CaptureFixture[str], alert: Alert) -> None:
    """Its name is enough: the runbook of its detector or rule, or its own section."""
    assert main(["explain", alert.name]) == 0
    assert capsys.readouterr().out.startswith("# ")


@every("alert", WATCHERS, ids=lambda alert: alert.name)
def test_an_alert_about_watchers_says_what_it_means_and_what_to_do(
    capsys: pytest.CaptureFixture[str], alert: Alert
) -> None:
    """The section has the summary, the meaning, the step that the alert names, and where to read on."""
    main(["explain", alert.name])
    printed = capsys.readouterr().out
    assert "\nNext: " in printed
    printed = " ".join(printed.split())
    assert printed.startswith(f"# {alert.name} {alert.summary} ({alert.severity}, after ")
    assert alert.description.partition(" Next: ")[2].replace("<pod>", "NAMESPACE/POD") in printed
    assert f"statewarden explain {alert.runbook.removeprefix('detectors/')}" in printed
    assert "<" not in printed


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("StatewardenAgentAbsent", "StatewardenAgentsAbsent"),
        ("statewardenrollupstale", "StatewardenRollupStale"),
        ("skiped-eos-wipe", "skipped-eos-wipe"),
        ("StatewardenSkipedEosWipe", "skipped-eos-wipe"),
    ],
)
def test_a_misspelt_alert_is_suggested(capsys: pytest.CaptureFixture[str], asked: str, near: str) -> None:
    """The nearest word is named, an alert's by its own name."""
    assert main(["explain", asked]) == 2
    assert near in capsys.readouterr().err.partition("did you mean ")[2].partition("?")[0].split(" or ")
