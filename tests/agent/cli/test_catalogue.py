"""`detectors`, `explain` and `check-config`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from agent.cli import catalogue, recorded
from agent.cli.page_text import page_text, section_of
from agent.clock import SystemClock
from agent.config import AgentSettings
from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record
from agent.contract.runbooks import anchor_of, page_of
from agent.detectors import DETECTORS
from agent.inventory.settings import KEYS
from agent.ship.spool import Spool
from tests.agent.cli.commands import Said
from tests.support.answering import Answer, Request, answering
from tests.support.every import every

IDS = [detector.meta.id for detector in DETECTORS]
FINDING_ID = "0123456789abcdef"
BODY = {
    "finding_id": FINDING_ID, "detector": "unrestored-store", "level": "damage", "severity": "warning",
    "confidence": "suspected", "status": "open", "application_id": "orders\x1b[31m", "task_id": "0_3",
    "opened_at_us": 1_700_000_000_000_000, "upstream": ["KAFKA-7672"], "affected": "yes", "missing_facts": [],
    "summary": "Task 0_3: state is missing.", "next_action": "Stop this instance.",
    "evidence": [{"at": "2023-11-14T22:13:20.000000Z", "what": "store opened", "where": "orders/0_3"}],
}  # fmt: skip
INCIDENT_ID = "i-0123456789ab"
OF_ONE: dict[str, object] = {"incident_id": INCIDENT_ID}
EXPOSURE: dict[str, object] = {
    "finding_id": "b" * 16, "detector": "torn-store", "level": "exposure", "opened_at_us": 1,
}  # fmt: skip


def event(sequence: int = 1, **changes: object) -> str:
    record = Record(Kind.FINDING, 1_700_000_000_000_000 + sequence, {**BODY, **changes})
    return Encoder(Origin("uid", "boot", "pod-a")).encode(record, sequence)


def printed(repository: Path, name: str) -> str:
    return page_text(runbook(repository, name), {*catalogue.names_to_explain()})


def runbook(repository: Path, name: str) -> str:
    """Cut a runbook out of its page."""
    page = (repository / "docs" / f"{page_of(name)}.md").read_text("utf-8")
    return section_of(page, anchor_of(name))


def of_major_2(line: str) -> str:
    """Rewrite a line as one of a later contract."""
    row = json.loads(line)
    row["data"]["schema_version"] = "2.0"
    return json.dumps(row)


@pytest.fixture
def explained(statewarden: Callable, tmp_path: Path) -> Callable:
    """Give what asks for something in the events of these lines."""

    def run(asked: str, *lines: str, more: tuple[str, ...] = ()) -> Said:
        (tmp_path / "all.jsonl").write_text("\n".join(lines))
        said: Said = statewarden("explain", asked, "--events", tmp_path, *more)
        return said

    return run


# -- detectors ----------------------------------------------------------------------------------------


def test_the_list_names_every_detector_in_order(statewarden: Callable) -> None:
    """One line per detector with severity, level and title, in the order of the registry."""
    said = statewarden("detectors")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert [line.split()[0] for line in lines] == IDS
    for line, detector in zip(lines, DETECTORS, strict=True):
        assert line.split()[1:3] == [detector.meta.severity.value, detector.meta.level.value]
        assert line.endswith(detector.meta.title)


def test_the_list_as_json(statewarden: Callable) -> None:
    """Each JSON line says which releases an issue affects, where it is fixed and which settings decide."""
    rows = {row["id"]: row for row in statewarden("detectors", "--json").rows}
    assert list(rows) == IDS
    upstream = {x["key"]: x for x in rows["unrestored-store"]["upstream"]}
    assert upstream["KAFKA-7672"] == {"key": "KAFKA-7672", "affected": ["2.0.1 to 2.1.1"], "fixed": "2.2.0"}
    needs = ["kafka_streams_version", "processing_guarantee", "num_standby_replicas"]
    assert rows["unrestored-store"]["needs"] == needs
    assert all(row["next_action"] for row in rows.values())


# -- explain ------------------------------------------------------------------------------------------


@every(
    "asked, page",
    [
        *((name, f"detectors/{name}") for name in IDS),
        ("detectors/unrestored-store", "detectors/unrestored-store"),
        ("rules/unaudited", "rules/unaudited"),
        ("StatewardenSkippedEosWipe", "detectors/skipped-eos-wipe"),
        ("StatewardenSkippedEosWipeSuspected", "detectors/skipped-eos-wipe"),
        ("StatewardenFleetStaleEosState", "rules/stale-eos-state"),
    ],
)
def test_explain_prints_the_page(statewarden: Callable, repository: Path, asked: str, page: str) -> None:
    """A detector's id, the annotation `runbook` of an alert, or its name: each gives the whole runbook."""
    said = statewarden("explain", asked)
    assert (said.code, said.err, said.out) == (0, "", printed(repository, page))


def test_explain_takes_the_pages_that_runbooks_send_to(statewarden: Callable) -> None:
    """Who reads a runbook in a container gets how to work on a stopped pod's volume there, too."""
    said = " ".join(statewarden("explain", "skipped-eos-wipe").out.split())
    assert "a stopped pod's volume (statewarden explain stopped-volume)" in said
    said = statewarden("explain", "stopped-volume")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("# A stopped pod's volume\n")
    assert statewarden("explain", "detectors/stopped-volume").code == 2
    runbooks = statewarden("explain", "runbooks").out
    assert runbooks.startswith("# Runbooks\n")
    assert "## Restore a task\n" in runbooks
    assert "## How far a restoration repairs\n" in runbooks
    assert "did you mean stopped-volume" in statewarden("explain", "stoped-volume").complaint


@every("name", [x.meta.id for x in DETECTORS if x.meta.level.value == "damage"])
def test_a_damage_page_says_how_far_it_repairs(repository: Path, name: str) -> None:
    """Where state is wrong or gone, the page protects the other copies and says what stays wrong."""
    by_hand = " ".join(runbook(repository, name).partition("## Mitigation")[2].split())
    for words in ("Leave the other pods' copies alone", "this repairs", "changelog", "Done when"):
        assert words.lower() in by_hand.lower()


def test_explain_takes_an_issue(statewarden: Callable) -> None:
    """All detectors that are about it, with the releases that have it."""
    said = statewarden("explain", "kafka-20685")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines() if line[:1].islower()][:-1] == [
        x.meta.id for x in DETECTORS if any(y.key == "KAFKA-20685" for y in x.meta.upstream)
    ]
    assert "affects 3.8.0 to 4.1.2 and 4.2.0 to 4.2.1" in said.out
    assert statewarden("explain", "KAFKA-1").code == 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("skiped-eos-wipe", "did you mean skipped-eos-wipe"),
        ("rules/stale-eos", "did you mean rules/stale-eos-state"),
        ("rules/no-such-rule", ""),
        ("../style", ""),
        ("detectors/../style", ""),
        ("rules/", ""),
        ("0123456789abcdef", "statewarden: 0123456789abcdef: add --events SOURCE: "),
        ("i-8e2475e90569", "statewarden: i-8e2475e90569: add --events SOURCE: "),
        ("orders/0_3", "statewarden: orders/0_3: add --events SOURCE: "),
        (
            "no-such-thing",
            "statewarden: no-such-thing: unknown name; `statewarden detectors` lists the detectors."
            f" Rules of the fleet audit are called rules/ID. Pages: {', '.join(sorted(catalogue.PRINTED))}."
            " For a finding, an incident or APPLICATION/TASK add --events SOURCE\n",
        ),
    ],
)
def test_explain_of_no_page(statewarden: Callable, asked: str, told: str) -> None:
    """What is spelt like it is named, what only events know takes `--events`; no other file can be asked for."""
    said = statewarden("explain", asked)
    assert said.code == 2
    assert told in said.complaint


@pytest.mark.parametrize("packed", [True, False])
def test_explain_of_a_finding(statewarden: Callable, tmp_path: Path, packed: bool) -> None:
    """A finding's id gives its newest story, escaped, and its detector's page."""
    lines = "\n".join((event(1), event(2, severity="critical", confidence="confirmed"), ""))
    if packed:
        (tmp_path / "uid").mkdir()
        (tmp_path / "uid" / "boot-1-2.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    else:
        (tmp_path / "all.jsonl").write_text(lines)
    said = statewarden("explain", FINDING_ID, "--events", tmp_path)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("CRITICAL unrestored-store  orders\\x1b[31m/0_3  (confirmed, open)\n")
    assert "2023-11-14 22:13:20.000Z  store opened  (orders/0_3)\n" in said.out
    assert "\x1b" not in said.out
    assert "    next: Stop this instance.\n" in said.out
    assert "statewarden explain unrestored-store\n" in said.out


def test_explain_reads_over_what_it_does_not_know(explained: Callable, tmp_path: Path) -> None:
    """Garbage and lines of a later contract are left out; what only they show is not found, and not made up."""
    said = explained(FINDING_ID, f"garbage {FINDING_ID}", event(1), of_major_2(event(9, severity="info")))
    assert said.code == 3
    assert said.out.startswith("WARNING  unrestored-store")
    nothing = explained(FINDING_ID, of_major_2(event(1)))
    assert nothing.code == 3
    told = f"{FINDING_ID}: no such finding, incident, application or task in {tmp_path}"
    assert told in nothing.complaint


def test_explain_says_where_no_events_are(statewarden: Callable, tmp_path: Path) -> None:
    """A directory that is not there, and one without a segment, are not one in which the incident is missing."""
    assert (
        "no such directory of events" in statewarden("explain", "a/0_0", "--events", tmp_path / "a").complaint
    )
    said = statewarden("explain", "a/0_0", "--events", tmp_path)
    assert (said.code, "no events: no *.jsonl" in said.complaint) == (2, True)


def test_explain_of_an_incident(explained: Callable) -> None:
    """Verdict and step first; each of its findings in its last state where the evidence is asked for."""
    early = {"finding_id": "b" * 16, "detector": "unowned-task", "severity": "info", "opened_at_us": 1}
    lines = event(1, **OF_ONE), event(2, **OF_ONE, **early)
    said = explained(INCIDENT_ID, *lines)
    assert said.code == 0
    assert said.out.startswith("WARNING  unrestored-store")
    assert said.out.endswith("The 2 findings behind it: use --evidence.\n")
    whole = explained(INCIDENT_ID, *lines, more=("--evidence",)).out
    assert whole.index("unowned-task 0_3") < whole.index("unrestored-store 0_3")
    assert whole.count("next:") == 1


@pytest.mark.parametrize(
    "exposure",
    [
        {"status": "resolved", "next_action": "Before the start."},
        {"next_action": "Nothing is lost yet."},
    ],
)
def test_explain_of_an_incident_has_the_step_that_is_due(
    explained: Callable, exposure: dict[str, str]
) -> None:
    """A step that came too late is not shown, nor one of an exposure that opens again after the damage.

    Of what is over altogether all are.
    """
    before = event(1, **OF_ONE, **EXPOSURE, **exposure)
    said = explained(INCIDENT_ID, before, event(2, **OF_ONE)).out
    assert said.startswith("WARNING  unrestored-store")
    assert exposure["next_action"] not in said
    assert "next: Stop this instance." in said
    assert f"next: {exposure['next_action']}" in explained(INCIDENT_ID, before).out


def test_explain_of_a_task_lists_its_incidents(explained: Callable) -> None:
    """By the address that a scan prints: each incident once, open ones first, with the pods that reported it."""
    exposure = {**EXPOSURE, "level": "damage", "status": "resolved"}
    rows: tuple[dict[str, object], ...] = (
        {**OF_ONE, **exposure},
        OF_ONE,
        {**exposure, "finding_id": "c" * 16, "incident_id": "i-cccccccccccc", "severity": "critical"},
        {"finding_id": "d" * 16, "incident_id": "i-dddddddddddd", "task_id": "0_30"},
        {"finding_id": "e" * 16, "incident_id": "i-eeeeeeeeeeee", "application_id": "orders-2"},
        {"finding_id": "f" * 16, "incident_id": None, "status": "resolved", "opened_at_us": 2_000_000},
    )
    lines = [event(n, **{"application_id": "orders", **x}) for n, x in enumerate(rows, 1)]
    said = explained("orders/0_3", *lines)
    assert said.code == 0
    assert said.out == (
        "orders/0_3: 3 incidents, open ones first; statewarden explain ID --events SOURCE\n\n"
        "i-0123456789ab  open     warning   since 1970-01-01 00:00:00 UTC  pod-a  torn-store, unrestored-store\n"
        "i-cccccccccccc  resolved critical  since 1970-01-01 00:00:00 UTC  pod-a  torn-store\n"
        "i-ffffffffffff  resolved warning   since 1970-01-01 00:00:02 UTC  pod-a  unrestored-store\n"
    )
    assert "i-dddddddddddd" in explained("orders", *lines).out
    nothing = explained("orders/0_9", *lines)
    assert (nothing.code, nothing.out) == (2, "")


def test_explain_passes_over_what_is_damaged(statewarden: Callable, tmp_path: Path) -> None:
    """One half-written and one damaged segment cost a line and the exit code, not the answer."""
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    whole = bytearray(gzip.compress(event(1).encode()))
    whole[20:60] = b"\0" * 40
    (tmp_path / "b.jsonl.gz").write_bytes(whole)
    (tmp_path / "c.jsonl").write_text(event(1))
    said = statewarden("explain", FINDING_ID, "--events", tmp_path)
    assert said.code == 3
    assert said.out.startswith("WARNING  unrestored-store")
    assert "2 of 3 segments can't be read and were passed over, the first: " in said.err


def test_explain_reads_a_spool(statewarden: Callable, tmp_path: Path) -> None:
    """What waits to be shipped is there, while its agent runs."""
    with Spool(tmp_path, Origin("uid", "boot", "pod-a"), clock=SystemClock()) as spool:
        spool.append(Record(Kind.FINDING, 1_700_000_000_000_000, BODY))
        said = statewarden("explain", FINDING_ID, "--events", tmp_path)
        other = statewarden("explain", "b" * 16, "--events", tmp_path)
    assert said.out.startswith("WARNING  unrestored-store")
    (tmp_path / "incidents.jsonl").touch()
    audit = statewarden("explain", "b" * 16, "--events", tmp_path)
    assert "a spool holds only what is not shipped yet" in " ".join(other.complaint.split())
    assert audit.complaint.endswith("findings.jsonl is not to be read; run an audit again\n")


@pytest.mark.parametrize("source", ["ftp://x/y", "http://127.0.0.1:1"])
def test_explain_of_a_source_that_does_not_answer(statewarden: Callable, source: str) -> None:
    """It says what a source is, or that it does not answer."""
    said = statewarden("explain", FINDING_ID, "--events", source)
    assert said.code == (2 if source.startswith("ftp") else 3)
    assert source in said.complaint


JSONL = {"Content-Type": "application/jsonl"}


@pytest.mark.parametrize(
    ("headers", "body", "why"),
    [
        ({}, b"<html>", "the answer is not an agent's"),
        ({**JSONL, "Content-Length": "1000", "Connection": "close"}, b'{"', "the answer was cut off"),
        ({**JSONL, "Transfer-Encoding": "chunked", "Connection": "close"}, b"5\r\nab", "IncompleteRead"),
        (JSONL, b"x" * 2_000, "no end after 2,000 bytes"),
    ],
)
def test_explain_of_an_answer_that_is_not_an_agents(
    statewarden: Callable, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], body: bytes, why: str
) -> None:
    """Another server on that port, or an agent that ends in the middle of a word."""
    monkeypatch.setattr(recorded, "MOST_BYTES", 1_000)

    def answer(request: Request) -> Answer:
        return 200, {**headers, "Connection": "close"}, body

    with answering(answer) as address:
        said = statewarden("explain", FINDING_ID, "--events", address)
    assert said.code == 3
    assert f"can't read {address}/findings: {why}" in " ".join(said.complaint.split())


@pytest.mark.parametrize("length", [30, -20])
def test_torn_lines_are_counted(statewarden: Callable, tmp_path: Path, length: int) -> None:
    """Torn before the finding's id, or behind it: each is one that may have been the finding."""
    (tmp_path / "a.jsonl").write_text(f"{event(1)[:length]}\n{event(2)[:length]}\n")
    said = statewarden("explain", FINDING_ID, "--events", tmp_path)
    assert said.code == 3
    assert "2 events not read, the first: event line is not JSON" in " ".join(said.complaint.split())


@pytest.mark.parametrize("content", [None, b"\x1f\x8b\x08truncated"])
def test_explain_with_unreadable_events(statewarden: Callable, tmp_path: Path, content: bytes | None) -> None:
    """No directory and a damaged segment are named."""
    events = tmp_path / "events"
    if content is not None:
        events.mkdir()
        (events / "x.jsonl.gz").write_bytes(content)
    said = statewarden("explain", FINDING_ID, "--events", events)
    assert said.code == (2 if content is None else 3)
    assert str(events) in said.complaint


# -- check-config -------------------------------------------------------------------------------------


def test_check_config_shows_every_value_with_its_origin(
    statewarden: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Default, file, environment and flag are told apart; what is unknown is listed."""
    file = tmp_path / "statewarden.toml"
    file.write_text(
        '[agent]\nspool = "/spool"\nrescan_seconds = 30\n[application]\nnum_standby_replicas = 1\n'
        '[application."orders.v1"]\ncommit_interval_ms = 100\n'
    )
    monkeypatch.setenv("POD_NAME", "orders-0")
    monkeypatch.setenv("STATEWARDEN_RESCAN_SECONDS", "45")
    said = statewarden(
        "check-config", "--config", file, "--set", "orders.v1:processing_guarantee=exactly_once_v2"
    )
    assert (said.code, said.err) == (0, "")
    rows = [tuple(line.split()) for line in said.out.splitlines()]
    for row in (
        ("agent.pod", "orders-0", "environment"),
        ("agent.rescan_seconds", "45.0", "environment"),
        ("agent.spool", "/spool", "file"),
        ("agent.listen", ":9464", "default"),
        ("*:num_standby_replicas", "1", "file"),
        ("orders.v1:commit_interval_ms", "100", "file"),
        ("orders.v1:processing_guarantee", "exactly_once_v2", "flag"),
    ):
        assert row in rows
    assert {row[0] for row in rows if row[0].startswith("agent.")} == {
        f"agent.{field.name}" for field in fields(AgentSettings)
    }
    unknown = said.out.splitlines()[-1].removeprefix("not given for all applications: ").split(", ")
    assert unknown == [key.name for key in KEYS if key.name != "num_standby_replicas"]
