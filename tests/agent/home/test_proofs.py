"""What `repaired` proves is said by the agent, in its own sequence, as a remark that ends nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Status
from agent.contract.finding import Finding, read_back
from agent.contract.incidents import Incident, gather
from agent.home import proofs
from tests.agent.cli.conftest import statewarden as statewarden
from tests.agent.cli.test_plan import DAMAGE
from tests.agent.cli.test_repaired import ASKED, good
from tests.agent.engine.playing import Run, second

INCIDENT = ASKED[1]
OVER = replace(DAMAGE, application_id="app", status=Status.RESOLVED, resolved_at_us=2, incident_id=INCIDENT)
WORDS = "app/0_0/s claims to be restored up to offset 100000; not verified: no broker was given"


@pytest.fixture
def own(statewarden: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the spool of an agent, in which a proof was left."""
    place = tmp_path / "spool"
    place.mkdir()
    monkeypatch.setenv("STATEWARDEN_SPOOL", str(place))
    said = statewarden(*ASKED, good(tmp_path / "state"), "--record")
    assert (said.code, f"left in {place}: its agent tells it" in " ".join(said.out.split())) == (0, True)
    return place


def test_the_agent_says_once_what_was_proved(statewarden: Callable, own: Path) -> None:
    """It remembers it, too, and `explain` ends the incident with it, of whichever boot the damage was reported."""
    run = Run()
    for _ in range(2):
        proofs.report(own, run.pipeline, second(9))
    (body,) = run.of(Kind.FINDING)
    assert (body["status"], body["confidence"], body["summary"]) == (
        "resolved",
        "suspected",
        f"Repaired: {WORDS}.",
    )
    assert [x.id for x in run.pipeline.ledger.findings()] == [body["finding_id"]]
    assert not run.pipeline.ledger.open_findings()
    before = Encoder(Origin("old", "boot-1", "pod-7")).encode(replace(run.records[-1], body=OVER.body()), 1)
    now = Encoder(Origin("new", "boot-2", "pod-7")).encode(run.records[-1], 1)
    (own / "all.jsonl").write_text(f"{before}\n{now}\n")
    said = statewarden("explain", INCIDENT, "--events", own)
    assert f"Task 0_0: bad. Repaired: {WORDS}." in " ".join(said.out.split())


def test_what_opens_again_is_open(own: Path) -> None:
    """The proof is no end of it, however late a clock says that it was given; nor of what came after it."""
    run = Run()
    proofs.report(own, run.pipeline, second(9))
    proof = read_back(run.of(Kind.FINDING)[0])

    def told(one: Finding) -> Incident[Finding]:
        return gather([proof, one])[0]

    again = replace(OVER, status=Status.OPEN, resolved_at_us=None)
    later = replace(OVER, resolved_at_us=proof.opened_at_us + 1)
    for one, shows in ((again, False), (OVER, True), (later, False)):
        assert (told(one).status, "Repaired" in told(one).sentence) == (one.status, shows)
        assert [x.detector for _, x in told(one).findings] == [one.detector, "repaired"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '["i", "x", {"a/0_0": []}]',
        '["i", 1e999, {"a/0_0": []}]',
        '["i", 1, []]',
        '["i", 1, {"a/0_0": 1}]',
    ],
)
def test_what_cannot_be_used_is_put_away(own: Path, caplog: pytest.LogCaptureFixture, text: str) -> None:
    """It stops no agent, and is named once."""
    (left,) = own.iterdir()
    left.write_text(text)
    run = Run()
    for _ in range(2):
        proofs.report(own, run.pipeline, second(9))
    assert (run.of(Kind.FINDING), [*own.iterdir()], len(caplog.records)) == ([], [], 1)


@pytest.mark.parametrize("place", ["", "state/own", "absent"])
def test_the_proof_stands_where_no_agent_is_told(
    statewarden: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Nothing is made for it, least of all below a state directory."""
    monkeypatch.setenv("STATEWARDEN_HOME", place and str(tmp_path / place))
    good(tmp_path / "state")
    before = sorted(tmp_path.rglob("*"))
    said = statewarden(*ASKED, tmp_path / "state", "--record")
    assert (said.code, "-  no agent is told" in said.out, sorted(tmp_path.rglob("*"))) == (0, True, before)
