"""Findings on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.incident_text import wrapped
from agent.cli.output import Reading, Shown, exit_code, finding_line, print_findings
from agent.contract.codec import printable
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.exit_codes import Exit
from agent.contract.finding import Finding
from agent.contract.incidents import gather
from agent.contract.wording import BEYOND_FILES
from agent.judging.base import Evidence
from agent.judging.decision import Branch, Decision, summary
from tests.agent.cli.commands import PLAIN

FINDING = Finding(
    id="0123456789abcdef", detector="unrestored-store", level=Level.DAMAGE, severity=Severity.WARNING,
    confidence=Confidence.SUSPECTED, status=Status.OPEN, application_id="orders", task_id="0_3", store="totals",
    identity="6f5a", opened_at_us=1_700_000_000_250_000, resolved_at_us=None, upstream=("KAFKA-7672",),
    affected=Affected.POSSIBLY, missing_facts=("kafka_streams_version",), summary="Task 0_3: state is missing.",
    evidence=(Evidence(1_700_000_000_000_000, "store opened", "orders/0_3/rocksdb/totals"),),
    next_action="Stop this instance.", mechanism="offset-without-data", incident_id="i-0123456789ab",
    process_ended_at_us=1_700_000_000_000_000,
)  # fmt: skip
LOUD = replace(
    FINDING, id="1" * 16, incident_id="i-1", severity=Severity.CRITICAL, opened_at_us=FINDING.opened_at_us + 1
)
QUIET = replace(
    FINDING, id="2" * 16, incident_id="i-2", severity=Severity.INFO, task_id=None, store=None, upstream=()
)


READING = Reading("pod-a", "looked at it all")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rows_of(text: str, line: str) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, text.splitlines()) if row["line"] == line]


def test_findings_name_their_incident_and_each_incident_has_a_line() -> None:
    """A finding says what it is for its incident; the last line says how it ended and why."""
    later = replace(LOUD, id="3" * 16, detector="torn-store", incident_id=FINDING.incident_id)
    text = printed(FINDING, later, QUIET, as_json=True)
    rows = rows_of(text, "finding")
    assert [row["id"] for row in rows] == [FINDING.id, later.id, QUIET.id]
    assert [row["incident_id"] for row in rows] == [FINDING.incident_id, FINDING.incident_id, "i-2"]
    assert {row["role"] for row in rows} == {"cause"}
    first, second = rows_of(text, "incident")
    assert first == {
        "line": "incident", "version": 1, "pod": "pod-a",
        "id": FINDING.incident_id, "detector": "torn-store", "severity": "critical", "confidence": "suspected",
        "status": "open", "configured_exposure": "no", "application_id": "orders",
        "tasks": ["0_3"], "task_count": 1, "stores": ["totals"], "store_count": 1, "finding_count": 2,
        "title": "A store resumed from an offset but lacks data before it", "sentence": later.summary,
        "next_action": later.next_action, "since": "2023-11-14T22:13:20.250000Z", "ended": None,
    }  # fmt: skip
    assert second["id"] == "i-2"
    assert json.loads(text.splitlines()[-1]) == {
        "line": "summary", "version": 1, "pod": "pod-a", "exit_code": 1,
        "reason": "1 open finding at or above critical", "read": "looked at it all",
        "open": {"info": 1, "warning": 1, "critical": 1}, "findings": 3, "incidents": 2, "left_out": 0,
        "unread": [], "unread_count": 0, "in_use": [],
    }  # fmt: skip


def test_the_size_grows_with_what_was_found() -> None:
    """Twice the findings of one incident are twice the bytes, not four times."""

    def size(count: int) -> int:
        found = [replace(LOUD, id=f"{n:016x}", store=f"s{n:05}", task_id=f"0_{n}") for n in range(count)]
        return len(printed(*found, as_json=True))

    assert size(400) < 2.1 * size(200)


def test_no_list_is_without_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more findings, places, tasks and stores than anybody reads the worst are shown, and the others counted."""
    monkeypatch.setattr("agent.cli.output.MOST_FINDINGS", 3)
    monkeypatch.setattr("agent.cli.output.MOST_LISTED", 2)
    many = [replace(QUIET, id=f"{n:016x}", store=f"s{n}", task_id=f"0_{n}") for n in range(5)]
    out = io.StringIO()
    reading = Reading(
        "pod-a", "", {f"app/0_{n}": "denied" for n in range(9)}, "9 of 9 tasks could not be read"
    )
    code = print_findings([*many, LOUD], reading, shown=Shown(as_json=True), fail_on="critical", out=out)
    rows = rows_of(out.getvalue(), "finding")
    assert (code, len(rows), rows[-1]["id"]) == (Exit.FOUND, 3, LOUD.id)
    quiet = rows_of(out.getvalue(), "incident")[-1]
    assert (quiet["tasks"], quiet["task_count"], quiet["store_count"]) == (["0_0", "0_1"], 5, 5)
    (last,) = rows_of(out.getvalue(), "summary")
    assert (last["findings"], last["left_out"], len(last["unread"]), last["unread_count"]) == (6, 3, 2, 9)


def test_many_incidents_and_findings_are_cut_short_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--top`, too; and what is left out is counted."""
    monkeypatch.setattr("agent.cli.output.MOST_INCIDENTS", 2)
    monkeypatch.setattr("agent.cli.incident_text.MOST_FINDINGS", 2)
    found = [replace(LOUD, id=f"{n:016x}", incident_id=f"i-{n}") for n in range(5)]
    assert "; 3 not listed (--top)" in printed(*found)
    found = [replace(LOUD, id=f"{n:016x}", store=f"s{n}") for n in range(5)]
    assert "    and 3 more findings (--json)\n" in printed(*found, verbose=True)


def test_what_is_accepted_is_shown_as_such() -> None:
    """It is printed behind what needs something, and both ways of printing mark it."""
    exposed = replace(
        FINDING, id="4" * 16, incident_id="i-4", detector="stale-eos-checkpoint", level=Level.EXPOSURE, lasting=True
    )  # fmt: skip
    texts = []
    for as_json in (False, True):
        out = io.StringIO()
        print_findings(
            [exposed, FINDING], Reading("pod-a", "read"), shown=Shown(as_json=as_json), fail_on="critical",
            accepts=lambda _: ["stale-eos-checkpoint"], out=out,
        )  # fmt: skip
        texts.append(out.getvalue())
    marked = [line for line in texts[0].splitlines() if "(suspected, open" in line]
    assert ["accepted by configuration" in line for line in marked] == [False, True]
    rows = rows_of(texts[1], "incident")
    assert [x["configured_exposure"] for x in rows] == ["no", "accepted"]


def test_a_terminal_gets_no_line_that_it_would_break():
    """What was read is said in lines of its width; in a pipe, in one line."""
    closing = "read " + "nothing, " * 40
    for stream, longest in ((Terminal(), 100), (io.StringIO(), len(closing))):
        print_findings([], Reading("pod-a", closing), shown=Shown(), fail_on="critical", out=stream)
        assert max(map(len, stream.getvalue().splitlines())) <= longest
        assert (closing in stream.getvalue()) == (longest == len(closing))


def printed(*findings: Finding, stream: io.StringIO | None = None, **shown: Any) -> str:
    out = stream or io.StringIO()
    print_findings(findings, READING, shown=Shown(**shown), fail_on="critical", out=out)
    return out.getvalue()


def test_a_json_line_says_everything() -> None:
    """Every field of a finding is on its line, times as RFC 3339."""
    assert json.loads(finding_line(FINDING, "pod-a")) == {
        "line": "finding", "version": 1, "id": "0123456789abcdef", "detector": "unrestored-store", "level": "damage",
        "severity": "warning", "confidence": "suspected", "status": "open", "application_id": "orders",
        "task_id": "0_3", "store": "totals", "identity": FINDING.identity, "pod": "pod-a",
        "opened_at": "2023-11-14T22:13:20.250000Z", "resolved_at": None, "upstream": ["KAFKA-7672"],
        "affected": "possibly", "missing_facts": ["kafka_streams_version"], "summary": "Task 0_3: state is missing.",
        "evidence": [{"at": "2023-11-14T22:13:20.000000Z", "what": "store opened",
                      "where": "orders/0_3/rocksdb/totals"}],
        "next_action": "Stop this instance.", "mechanism": "offset-without-data", "incident_id": "i-0123456789ab",
        "process_ended_at": "2023-11-14T22:13:20.000000Z", "lasting": False, "remedy": "other",
    }  # fmt: skip


def test_a_resolved_finding_says_when() -> None:
    """`resolved_at` is set with the status, and the agent itself has no application."""
    row = json.loads(finding_line(replace(OVER, application_id=""), "p"))
    assert (row["status"], row["application_id"]) == ("resolved", None)
    assert row["resolved_at"] == "2023-11-14T22:13:21.250001Z"


OVER = replace(LOUD, status=Status.RESOLVED, resolved_at_us=LOUD.opened_at_us + 1_000_000)


@pytest.mark.parametrize(
    ("findings", "shown", "head", "order"),
    [
        ((QUIET, FINDING, LOUD), {}, "2 incidents open: 1 critical, 1 warning; 1 remark (shown with --verbose)",
         "CRITICAL WARNING"),
        ((QUIET, FINDING, LOUD), {"verbose": True}, "2 incidents open: 1 critical, 1 warning; 1 remark",
         "CRITICAL WARNING INFO"),
        ((QUIET, FINDING, LOUD), {"top": 1},
         "2 incidents open: 1 critical, 1 warning; 1 remark (shown with --verbose); 1 not listed (--top)", "CRITICAL"),
        ((OVER, FINDING), {}, "1 incident open: 1 warning; 1 resolved", "WARNING CRITICAL"),
        ((), {}, "no incidents found", ""),
    ],
)  # fmt: skip
def test_people_get_a_summary_and_the_worst_first(
    findings: tuple[Finding, ...], shown: dict[str, Any], head: str, order: str
) -> None:
    """A tired reader sees what is open and what was looked at, then the worst incident; what is left out is counted."""
    text = printed(*findings, **shown)
    beyond = f"{BEYOND_FILES}\n" if "verbose" in shown else ""
    assert text.startswith(f"{head}\nlooked at it all\n{beyond}\n")
    assert [x.split()[0] for x in text.splitlines()[3:] if x[:1].isupper()] == order.split()
    ended = "since 2023-11-14 22:13:20 UTC, resolved 2023-11-14 22:13:21 UTC"
    assert (ended in text) is (OVER in findings)


def test_many_tasks_do_not_make_a_long_line() -> None:
    """An address names a few of them and gives the number of the others."""
    tasks = [replace(LOUD, id=f"{n:016x}", task_id=f"0_{n:04d}") for n in range(200)]
    assert max(map(len, printed(*tasks).splitlines())) <= 120
    assert "and 194 more" in printed(*tasks)


def test_a_command_over_several_lines_can_be_pasted() -> None:
    """Each line on which it goes on ends as a shell wants it; the words around it do not."""
    command = f"statewarden verify STATE_DIR {' '.join(f'--store {name * 9}' for name in 'abcdefghij')}"
    text = printed(replace(FINDING, next_action=f"Prove it: `{command}`; {'stop it ' * 20}."))
    pasted = text.partition("`")[2].partition("`")[0]
    assert "\n" in pasted
    assert shlex.split(pasted.replace("\\\n", "")) == shlex.split(command)
    assert " \\\n" not in text.rpartition("`")[2]


def test_an_incident_has_place_cause_time_and_next_step() -> None:
    """Place, cause, time with its zone and the next step are all there; on request the proof."""
    text = printed(FINDING)
    for words in (
        "WARNING  unrestored-store  orders/0_3/totals  (suspected, open)",
        "since 2023-11-14 22:13:20 UTC",
        "Suspected: a store resumed from an offset but lacks data before it. Possible bug: KAFKA-7672;",
        "for a clearer verdict, give: kafka_streams_version",
        "next: Stop this instance.",
        "incident i-0123456789ab; statewarden explain unrestored-store",
    ):
        assert words in text
    assert "id 0123456789abcdef" not in text
    everything = printed(FINDING, verbose=True)
    assert "cause: unrestored-store 0_3/totals (warning, suspected, open; id 0123456789abcdef)" in everything
    assert "2023-11-14 22:13:20.000Z  store opened  (orders/0_3/rocksdb/totals)" in everything
    assert (BEYOND_FILES in everything, BEYOND_FILES in text) == (True, False)


def test_a_reading_says_how_the_agents_incident_is_found() -> None:
    """The id of one reading is seldom that of an agent; the address is the same. A replay is what an agent was."""
    line = "    what an agent saw, if one ran: statewarden explain {} --events SOURCE\n"
    assert line.format("orders/0_3") in printed(FINDING, again="--state-dir state")
    whole = replace(FINDING, task_id=None, store=None)
    assert line.format("orders") in printed(whole, again="--state-dir state")
    own = replace(FINDING, level=Level.SELF, missing_facts=())
    assert "since 2023-11-14 22:13:20 UTC" in printed(FINDING)
    assert "seen at 2023-11-14 22:13:20 UTC" in printed(
        FINDING, again="--state-dir state"
    )  # READING is older
    for text in (printed(FINDING), printed(own, again="--state-dir state")):
        assert "what an agent saw, if one ran" not in text


def test_a_question_is_no_incident() -> None:
    """It is counted on its own and names the settings that decide; beside an incident there are both."""
    asked = replace(
        QUIET, id="4" * 16, incident_id="i-4", level=Level.EXPOSURE, detector="undecided", severity=Severity.WARNING,
        summary="If it runs exactly-once, this is critical (suspected): it is damaged. With any other answer it is no"
        " incident.",
        missing_facts=("processing_guarantee", "num_standby_replicas"),
    )  # fmt: skip
    text = printed(asked)
    assert text.startswith("1 undecided\n")
    assert ": can't tell without processing.guarantee and num.standby.replicas\n    If it runs" in text
    assert printed(asked, LOUD).startswith("1 incident open: 1 critical; 1 undecided\n")


def test_what_holds_under_every_other_answer_is_said_as_the_rest() -> None:
    """It has no answer to be named by."""
    loud, quiet = (tuple(gather([x])) for x in (LOUD, FINDING))
    branches = Branch(("without standbys",), loud), Branch((), quiet)
    asked = Decision("orders", ("num_standby_replicas",), branches, Severity.WARNING, sure=True)
    assert summary(asked).endswith(". Otherwise, the same is a warning (suspected).")


def test_the_page_of_a_rule_is_asked_for_as_one() -> None:
    """The command at the end can be run: rules of the fleet audit have pages of their own."""
    assert "; statewarden explain rules/stale-eos-state\n" in printed(
        replace(LOUD, detector="stale-eos-state")
    )
    assert f"; statewarden explain {LOUD.detector}\n" in printed(LOUD)


def test_colour_on_a_terminal_or_by_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe and NO_COLOR get plain text; without them a terminal gets colour that is switched off again."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b" not in printed(LOUD)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in printed(LOUD)
    coloured = printed(LOUD, stream=Terminal())
    assert coloured.count("\x1b[1;31m") == coloured.count("\x1b[0m") == 1
    monkeypatch.setenv("NO_COLOR", "1")
    assert printed(LOUD, stream=Terminal()) == printed(LOUD)


@pytest.mark.parametrize(
    ("findings", "limit", "code"),
    [
        ((), "info", 0),
        ((QUIET,), "info", 1),
        ((QUIET,), "warning", 0),
        ((FINDING,), "warning", 1),
        ((FINDING,), "critical", 0),
        ((LOUD,), "critical", 1),
        ((QUIET, LOUD), "critical", 1),
        ((replace(LOUD, status=Status.RESOLVED),), "critical", 0),
    ],
)
def test_the_exit_code_counts_open_findings(findings: tuple[Finding, ...], limit: str, code: int) -> None:
    """Open findings at least as loud as the limit make it 1; resolved ones do not. Unread places make 0 a 3."""
    assert exit_code(findings, limit, READING)[0] == code
    part = Reading("pod-a", "", {"app/0_0": "permission denied"}, "1 of 2 tasks could not be read")
    found, reason = exit_code(findings, limit, part)
    assert found == (code or 3)
    assert (reason == part.how_much) == (found is Exit.UNREAD)


@pytest.mark.parametrize("gate", [False, True])
def test_an_open_critical_counts_whatever_a_question_says_of_its_task(gate: bool) -> None:
    """A release that nobody knows yet may be better; no gate opens beside a critical for that. A warning may go."""
    doubt = Decision(
        LOUD.application_id, ("kafka_streams_version",), (Branch((), tuple(gather([LOUD]))),), None, sure=True
    )
    asked = Reading("pod-a", "read", decisions=[doubt])
    assert exit_code([LOUD], "critical", asked, may_be_undecided=gate)[0] is Exit.FOUND
    undecided = Exit.CLEAR if gate else Exit.UNREAD
    assert exit_code([], "critical", asked, may_be_undecided=gate)[0] is undecided
    assert exit_code([FINDING], "warning", asked, may_be_undecided=gate)[0] is undecided


def test_what_was_not_read_is_in_the_head() -> None:
    """No all-clear without it; where something is found it is said, too."""
    part = Reading("pod-a", "read", {"app/0_0": "permission denied"}, "1 of 2 tasks could not be read")
    for found, head in (
        ((), "no incidents found; not an all-clear: 1 of 2 tasks could not be read\n"),
        ((LOUD,), "1 incident open: 1 critical; 1 of 2 tasks could not be read\n"),
    ):
        out = io.StringIO()
        print_findings(found, part, shown=Shown(), fail_on="critical", out=out)
        assert out.getvalue().startswith(f"{head}read\nnot read: app/0_0 (permission denied)\n")


@given(
    st.text(alphabet=st.characters(min_codepoint=0, max_codepoint=0x2FFF) | st.characters(categories=["Cs"]))
)
def test_printable_is_printable_and_writable(text: str) -> None:
    """Whatever a name holds, lone surrogates included, what is printed is harmless and encodes."""
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()  # would raise for a lone surrogate
    assert text == shown or not text.isprintable()


def test_hostile_words_stay_in_their_line() -> None:
    """A name with a line feed and escapes neither makes a line of its own nor reaches the terminal."""
    evil = "x\n\x1b]0;title\x07\udcff"
    text = printed(replace(FINDING, application_id=evil, store=evil, summary=evil, next_action=evil))
    assert "\x1b" not in text
    assert text.count("\n") == printed(FINDING).count("\n")
    assert "x\\n\\x1b]0;title\\x07\\udcff" in text


def test_every_line_is_as_the_schema_says(repository: Path, statewarden: Callable, damaged: Path) -> None:
    """Lines of a scan that finds something, of one that finds nothing, and of a finding without an application."""
    schema = json.loads((repository / "docs" / "scan.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    found = statewarden("scan", damaged, "--json", *PLAIN).rows
    nothing = statewarden("scan", damaged / "none", "--json", "--may-be-empty").rows
    alone = json.loads(
        finding_line(replace(FINDING, application_id="", task_id=None, store=None), "p", "cause")
    )
    assert {x["line"] for x in found} == {"finding", "incident", "summary"}
    for row in (*found, *nothing, alone):
        validator.validate(row)
        assert not validator.is_valid({**row, "more": 1})
        assert not validator.is_valid({x: y for x, y in row.items() if x != "line"})


def test_an_option_stays_with_its_value() -> None:
    """Whoever copies a line has both."""
    assert (
        wrapped("Then add --set APP:x=1 --set APP:y=2.", 20, "") == "Then add\n--set APP:x=1\n--set APP:y=2."
    )
