"""The command line: wrong use without Spark, and one real run end to end."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from agent.contract.codec import printable
from agent.contract.events import Kind
from spark_rollup import answers, audit, gate
from spark_rollup.bronze import dedupe, load, table
from spark_rollup.cli import main
from spark_rollup.config import MARKER
from spark_rollup.correlate import RULES
from spark_rollup.errors import JavaNotFoundError, UsageError
from spark_rollup.spark import java, needs, session
from tests.spark_rollup.support.fleet import Fleet, at_us, damaged


@pytest.fixture
def no_spark(monkeypatch):
    """Fail the test if a session is built."""
    monkeypatch.setattr(session, "build_session", lambda *_, **__: pytest.fail("Spark was started"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "absent"], "absent does not exist"),
        (["--input", "empty"], "holds no *.jsonl"),
        (["--input", "in", "--as-of", "soon"], "not an ISO 8601 time"),
        (["--input", "in", "--look-back", "a week"], "neither a number of days"),
        (["--input", "in", "--set", "colour=red"], "unknown setting 'colour'"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(tmp_path, monkeypatch, capsys, no_spark, arguments, message):
    """Every wrong use ends before Spark starts, with one clear line on stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    assert main(["audit", *arguments, "--output", "out"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_a_directory_with_other_files_is_no_output(tmp_path, capsys, no_spark):
    """An output with files that no audit wrote is refused before Spark starts, and left as it is."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    (tmp_path / "repository" / "pods").mkdir(parents=True)
    (tmp_path / "repository" / "pods" / "values.yaml").write_text("mine")
    arguments = ["audit", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "repository")]
    assert main(arguments) == 2
    assert "is not empty and no audit wrote it (pods)" in capsys.readouterr().err
    assert (tmp_path / "repository" / "pods" / "values.yaml").read_text() == "mine"


@pytest.mark.parametrize("age", ["15", "m", "-1m", "soon", "1w"])
def test_a_strange_age_is_code_2(tmp_path, capsys, no_spark, age):
    """`--max-age` takes a number with a unit, or `any`."""
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert main(["safe-to-restart", "--input", str(tmp_path), f"--max-age={age}"]) == 2
    assert "is neither like 15m" in capsys.readouterr().err


def test_a_task_of_two_namespaces_is_asked_for_by_name():
    """Nobody's story is mixed with that of a namesake in another environment."""
    places = [("shop", "orders"), ("staging", "orders"), ("shop", "bills")]
    with pytest.raises(
        UsageError, match=r"--namespace \(shop, staging\) and --application \(bills, orders\)"
    ):
        answers._one_place("0_0", places, None, None)
    with pytest.raises(UsageError, match="name one of its applications with --application: bills, orders"):
        answers._one_place("0_0", places, "shop", None)
    with pytest.raises(UsageError, match=r"no event of task 0_9; known tasks: 0_0, 0_1$"):
        answers._one_place("0_9", [], None, None, ["0_0", "0_1"])
    assert answers._one_place("0_0", places, "staging", None) == ("staging", "orders")
    assert answers._one_place("0_0", places, None, "bills") == ("shop", "bills")


def test_unknown_arguments_are_code_2(capsys):
    """argparse's own complaints have the same exit code."""
    with pytest.raises(SystemExit) as caught:
        main(["audit", "--fail-on", "never"])
    assert caught.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_a_missing_java_is_code_2(tmp_path, monkeypatch, capsys):
    """Without Java the one line names the ways to get it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")

    def none_found(*_):
        raise JavaNotFoundError("Spark needs Java")

    monkeypatch.setattr(java, "find_java", none_found)
    assert main(["audit", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]) == 2
    assert "Spark needs Java" in capsys.readouterr().err


def broken(*_: object, **__: object) -> None:
    """Stand for anything that nobody thought of."""
    try:
        raise OSError(28, "No space left on device\n\tat java.io.X")
    except OSError as error:
        raise RuntimeError("Job aborted\n" * 300) from error


@pytest.mark.parametrize("command", ["audit", "safe-to-restart", "why", "coverage", "ingest"])
def test_what_breaks_is_one_line_and_code_4(tmp_path, monkeypatch, capsys, command):
    """Code 1 says that something was found; a run that broke found nothing."""
    monkeypatch.setattr(session, "build_session", broken)
    monkeypatch.setattr(needs, "bring", lambda *_: [])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    more = {
        "audit": ["--output", str(tmp_path / "out")],
        "why": ["0_0"],
        "ingest": ["--bronze", str(tmp_path / "bronze")],
    }
    asked = [command, "--input", str(tmp_path / "in"), *more.get(command, [])]
    assert main(asked) == 4
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"statewarden-rollup: {command} broke: the disk is full (OSError: ")
    assert "--debug shows the trace" in err
    assert main([*asked, "--debug"]) == 4
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith(f"statewarden-rollup: {command} broke: the disk is full")


def test_another_spark_s_home_is_code_2(tmp_path, monkeypatch, capsys):
    """The one line says where SPARK_HOME points to."""
    (tmp_path / "a.jsonl").write_text("{}\n")
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3.5")
    assert main(["coverage", "--input", str(tmp_path)]) == 2
    assert "SPARK_HOME points to /opt/spark-3.5, where no Spark is" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal():
    """Names from disk may hold escape sequences."""
    assert printable("task \x1b[2J\u202e0_0") == "task \\x1b[2J\\u202e0_0"


@pytest.mark.spark
@pytest.mark.timeout(600)
class TestRealRuns:
    """Runs of the real command on small inputs; `test_recorded` has one of all rules and its outputs."""

    @pytest.fixture
    def one_rule(self, monkeypatch):
        """Leave one rule: these tests are not about the others."""
        rules = tuple(rule for rule in RULES if rule.meta.id == "resurrected-checkpoint")
        for place in (audit, gate):
            monkeypatch.setattr(place, "RULES", rules)

    def test_repeats_and_the_order_of_delivery_change_nothing(self, delta, spark, tmp_path, capsys):
        """Bronze holds what the segments hold, however often and in whichever order they came."""
        fleet = damaged()
        source = fleet.write(tmp_path / "in")
        # the same events: doubled, in another order and in other files, plus one line that is none
        lines = [line for line in fleet.lines() for _ in range(2)]
        again = tmp_path / "again"
        again.mkdir()
        (again / "all.jsonl.gz").write_bytes(gzip.compress("\n".join([*reversed(lines), "{broken"]).encode()))
        bronze = tmp_path / "bronze [a]*"  # Spark takes what it reads for a pattern
        assert main(["ingest", "--input", str(source), "--bronze", str(bronze)]) == 0
        assert main(["ingest", "--input", str(again), "--bronze", str(bronze)]) == 0
        told = capsys.readouterr().out.splitlines()
        assert told[0].startswith(f"{len(fleet.lines())} new events, 0 new quarantined")
        assert told[1].startswith("0 new events, 1 new quarantined")
        # the audit is a function of these rows and the time; that whole audits agree is proved by `make prove`
        raw = dedupe.one_row_per_id(load.load(spark, source).events).drop("line")
        stored = load.load(spark, bronze).events.drop("line", "routine")
        rows = [sorted(frame.collect(), key=lambda row: row["id"]) for frame in (raw, stored)]
        assert rows[0] == rows[1]
        assert len(rows[0]) == len(fleet.lines())

    @pytest.mark.slow
    @pytest.mark.timeout(900)
    def test_the_answers(self, spark, tmp_path, capsys, request):
        """`safe-to-restart`, `why` and `coverage` answer from the same input, on the terminal."""
        source = damaged().write(tmp_path / "in")
        (bills := Fleet("shop", "bills")).pod("pod-z").holds("0_0", 5)
        bills.write(source / "bills")
        asked = ["--input", str(source)]
        assert main(["safe-to-restart", *asked, "--pod", "pod-b", "--max-age", "any"]) == 1
        told = capsys.readouterr().out
        assert told.startswith("as of 2026-11-18 11:21:40 UTC, ")
        assert "\npod-b: keep: the only healthy copy" in told
        assert "not healthy: pod-a (damaged)" in told
        assert main(["why", *asked, "0_0", "--application", "orders"]) == 0
        told = capsys.readouterr().out
        assert told.startswith(
            "critical, confirmed: resurrected-checkpoint: shop/orders/0_0 on pod-a, pod-b, as of "
        )
        assert "pod-a  holds the task until the last reading" in told
        assert "agent on pod-a: critical suspected resurrected-checkpoint" in told
        assert "fleet: critical confirmed resurrected-checkpoint" in told
        request.getfixturevalue("one_rule")  # each answer was given by all of them once
        assert main(["safe-to-restart", *asked, "--max-age", "any"]) == 1
        told = capsys.readouterr().out
        assert "1 damaged (follow resurrected-checkpoint first)" in told
        for command in ("safe-to-restart", "coverage"):
            assert main([command, *asked, "--as-of", "2020-01-01"]) == 2
            assert "no event up to" in capsys.readouterr().err
        assert main(["why", *asked, "0_0", "--application", "orders", "--as-of", "2026-11-18T11:07:00Z"]) == 0
        assert "no finding" in capsys.readouterr().out  # the damage came later
        assert main(["coverage", *asked]) == 0
        assert "pod-a" in capsys.readouterr().out
        assert main(["why", *asked, "7_7"]) == 2
        assert "no event of task 7_7; known tasks: 0_0" in capsys.readouterr().err

    @pytest.mark.slow  # an audit; `test_recorded` has the one of `make test`
    def test_what_an_agent_says_alone_fails_the_audit(self, one_rule, spark, tmp_path, capsys):
        """An open critical that no rule knows of: exit code 1, on the terminal, in every output; no all-clear."""
        fleet = Fleet("shop", "orders")
        fleet.pod("pod-a").holds("0_0", 5).finds("false-clean-store", "0_0", 60, store="s", identity="i")
        source, out = fleet.write(tmp_path / "in"), tmp_path / "out"
        asked = ["audit", "--input", str(source), "--output", str(out)]
        assert main(asked) == 1
        told = capsys.readouterr().out
        assert told.startswith("1 incident open: 1 critical")
        assert (
            "CRITICAL false-clean-store  shop/orders/0_0/s on pod-a  "
            "(confirmed, open; reported by its agent only)"
        ) in told
        marker = json.loads((out / "_SUCCESS.json").read_text())
        assert marker["incidents"] == {"critical": 1}
        assert marker["open"]["agent"] == {"critical": 1}
        assert (
            'statewarden_rollup_findings_open{rule="false-clean-store",severity="critical",reported_by="agent"} 1.0'
            in (out / "metrics.prom").read_text()
        )
        page = (out / "report.html").read_text()
        assert (
            "<h1>1 critical incident: <bdi>shop</bdi>/<bdi>orders</bdi> <bdi>0_0</bdi> on <bdi>pod-a</bdi>"
            in page
        )
        # an audit of a time before anything is no all-clear, and the last report stays
        assert main([*asked, "--as-of", "2020-01-01"]) == 2
        assert "no event up to --as-of 2020-01-01" in capsys.readouterr().err
        assert (out / "report.html").read_text() == page

    @pytest.mark.slow  # three audits; the comparison has tests of its own
    def test_an_audit_says_what_changed_since_the_last_one(self, one_rule, spark, tmp_path, capsys):
        """Terminal, report and marker; an agent that is not in the input any more makes nothing gone."""
        fleet = Fleet("shop", "orders")
        first, second, third = (fleet.pod(f"orders-{n}", announces_end=False) for n in range(3))
        for pod, at in ((first, 60), (second, 60), (third, 500)):
            found = {"store": "s", "identity": "i", "finding_id": f"{pod.name[-1] * 32}"}
            pod.holds(f"0_{pod.name[-1]}", 5).finds("false-clean-store", f"0_{pod.name[-1]}", at, **found)
        over = {"finding_id": "0" * 32, "incident_id": "i-0", "status": "resolved"}
        first.repeats("false-clean-store", "0_0", 400, 60, store="s", resolved_at_us=at_us(400), **over)
        over |= {"finding_id": "f" * 16, "summary": "Repaired: verified.", "severity": "info"}
        first.finds("repaired", "0_0", 420, resolved_at_us=at_us(420), **over)
        source, out = fleet.write(tmp_path / "in"), tmp_path / "out"
        asked = ["audit", "--input", str(source), "--output", str(out)]
        assert main([*asked, "--as-of", "2026-11-18T11:12:00Z"]) == 1
        assert "/report.html (no earlier audit there to compare with)" in capsys.readouterr().out
        assert main(asked) == 1
        told = capsys.readouterr().out.splitlines()
        assert told[1].endswith(" 11:12:00 UTC: 1 new, 1 still open, 1 gone")
        assert told[2].startswith("    gone: false-clean-store shop/orders/0_0 on orders-0 (i-")
        assert any("0_2/s on orders-2  (confirmed, open, new;" in line for line in told)
        for name in ("incidents.jsonl", "report.html"):
            assert "false-clean-store on orders-0. Repaired: verified." in (out / name).read_text()
        counts = json.loads((out / "_SUCCESS.json").read_text())["since_last"]
        assert counts == {"new": 1, "worse": 0, "still open": 1, "gone": 1, "not heard of any more": 0}
        assert "1 new, 1 still open, 1 gone; new: <a href=" in (out / "report.html").read_text()
        shutil.rmtree(source / "shop-orders-1")
        (tmp_path / "pods").write_text("shop orders-0\nshop orders-1\n")
        assert main([*asked, "--expect", str(tmp_path / "pods")]) == 1
        marker = json.loads((out / "_SUCCESS.json").read_text())
        assert marker["expected"] == {
            "pods": 2, "not_heard": {"shop/orders-1": "never heard"}, "not_held": {"shop/orders": ["0_1"]},
        }  # fmt: skip
        assert 'statewarden_rollup_missing{what="pods"} 1.0' in (out / "metrics.prom").read_text()
        told = capsys.readouterr().out.splitlines()
        assert told[1].endswith(": nothing new, 1 still open, 1 not heard of any more")
        assert told[2] == "    pods of shop without an agent: orders-1 (never heard)"
        assert told[3] == "    tasks of shop/orders that no pod has: 0_1"
        assert told[4].startswith(
            "    not heard of any more: false-clean-store shop/orders/0_1 on orders-1 (i-"
        )
        assert "no word of orders-1 in this audit" in " ".join(" ".join(told[4:6]).split())
        before_all = ["--expect", str(tmp_path / "pods"), "--as-of", "2026-11-18T11:07:10Z"]
        assert main([*asked, *before_all]) == 3
        told = capsys.readouterr().out.splitlines()
        assert told[0].startswith(
            "no incidents found; not an all-clear: no agent heard on 1 of 2 expected pods and 1 task that no pod has;"
            " agents"
        )
        assert "(no earlier audit there to compare with)" in "".join(told)

    @pytest.mark.slow  # three commands; facts, page and the answer of one audit have tests of their own
    def test_a_disabled_detector_is_named_wherever_nothing_was_found(self, one_rule, spark, tmp_path, capsys):
        """Terminal, report, marker and the answer about a restart: none is a plain all-clear."""
        fleet = Fleet("shop", "orders")
        row = {"key": "detectors.disabled.torn-store", "value": "known", "origin": "flag"}
        fleet.pod("pod-a").tells(Kind.CONFIGURATION, 1, settings=[row]).holds("0_0", 5)
        source, out = fleet.write(tmp_path / "in"), tmp_path / "out"
        # an application that is not there may have been there yesterday: it is said, and decides no exit code
        misspelt = ["--set", "ordres:num_standby_replicas=0"]
        assert main(["audit", "--input", str(source), "--output", str(out), *misspelt]) == 0
        told, complaint = capsys.readouterr()
        assert "; disabled: torn-store)" in told
        assert "--set: no application ordres here; did you mean orders? there is: orders" in complaint
        assert json.loads((out / "_SUCCESS.json").read_text())["disabled"] == ["torn-store"]
        page = (out / "report.html").read_text()
        assert "1 detector disabled, settings of 1 application not given)</h1>" in page
        assert "<code>torn-store</code> <small>on <bdi>pod-a</bdi>: known</small>" in page
        main(["why", "0_0", "--input", str(source), *misspelt])
        assert capsys.readouterr().out.splitlines()[-1].startswith("--set: no application ordres here")
        code = main(["safe-to-restart", "--max-age", "any", "--input", str(source), *misspelt])
        *told, unused = capsys.readouterr().out.splitlines()
        assert unused.startswith("--set: no application ordres here")
        assert "disabled detectors, not checked: torn-store" in "\n".join(told)
        # the audit's own answer is the same, but for its first line and what nobody set now
        assert main(["safe-to-restart", "--from", str(out), "--max-age", "any"]) == code
        again = capsys.readouterr().out.splitlines()
        assert again[0] == f"{told[0]}, by the audit in {out}"
        assert again[1:] == told[1:]

    def test_nothing_usable_is_code_2(self, spark, tmp_path, capsys):
        """An input of another contract major is refused with the reason of the first line."""
        source = tmp_path / "in"
        source.mkdir()
        (source / "a.jsonl").write_text('{"id": "1", "data": {"schema_version": "2.0", "kind": "summary"}}\n')
        assert main(["audit", "--input", str(source), "--output", str(tmp_path / "out")]) == 2
        err = capsys.readouterr().err
        assert "no usable event: unknown-major, contract version 2.0" in err

    def test_a_pod_of_another_contract_major_is_no_all_clear(self, one_rule, spark, tmp_path, capsys):
        """Of the audit, of its `restarts.json`, and of the events; with --json it is said on standard error."""
        fleet = Fleet("shop", "orders")
        fleet.pod("orders-0").holds("0_0", 5)
        source, out = fleet.write(tmp_path / "in"), tmp_path / "out"
        line = '{"id": "1", "source": "/statewarden/shop/orders-1", "data": {"schema_version": "2.0"}}\n'
        (source / "a.jsonl").write_text(line)
        said = "1 line of shop/orders-1 is of an unknown contract version: upgrade statewarden-rollup"
        assert main(["audit", "--input", str(source), "--output", str(out), "--json"]) == 3
        assert capsys.readouterr().err.endswith(f"statewarden-rollup: {said}: see {out}/_SUCCESS.json\n")
        for given in (["--from", str(out)], ["--input", str(source)]):
            assert main(["safe-to-restart", "--max-age", "any", *given]) != 0
            assert capsys.readouterr().out.splitlines()[-1] == said

    @pytest.mark.parametrize("whole", [True, pytest.param(False, marks=pytest.mark.slow)])
    def test_the_end_of_what_an_agent_said_is_no_all_clear_without_it(
        self, one_rule, spark, tmp_path, capsys, monkeypatch, whole
    ):
        """An empty segment, of which nothing later is there; one that a later one of the same boot follows is told."""
        monkeypatch.setattr(audit, "is_whole", lambda _: whole)
        fleet = Fleet("shop", "orders")
        fleet.pod("orders-0").holds("0_0", 5)
        source, out = fleet.write(tmp_path / "in"), tmp_path / "out"
        boot = json.loads(fleet.lines()[0])["data"]["boot_id"]
        for name in ("orders-1/0123456789ab-1-9", f"orders-0/{boot}-1-1"):
            (source / name).parent.mkdir(exist_ok=True)
            (source / f"{name}.jsonl.gz").write_bytes(b"")
        (tmp_path / "elsewhere").mkdir()
        (source / "orders-2").symlink_to(tmp_path / "elsewhere")
        said = "orders-1/0123456789ab-1-9.jsonl.gz could not be read to the end: make readable, or send again"
        assert main(["audit", "--input", str(source), "--output", str(out), "--json"]) == 3
        assert capsys.readouterr().err.endswith(f"statewarden-rollup: {said}: see {out}/_SUCCESS.json\n")
        for given in (["--from", str(out)], ["--input", str(source)])[: 2 * whole]:
            assert main(["safe-to-restart", "--max-age", "any", *given]) != 0
            assert capsys.readouterr().out.splitlines()[-1] == said
        for asked in (["coverage"], ["why", "0_0"])[: 2 * whole]:
            assert main([*asked, "--input", str(source)]) == 3
            assert capsys.readouterr().out.splitlines()[-1] == said


def test_days_that_no_snapshot_spares_are_reported(tmp_path, monkeypatch, capsys):
    """Which days are read for want of a snapshot, and what makes it; without a look-back nothing is missing."""
    for day in range(14, 20):
        (tmp_path / "bronze" / "events" / f"day=2026-11-{day}").mkdir(parents=True)
    (tmp_path / "bronze" / "events" / table.LOG).mkdir()
    (tmp_path / "bronze" / "events" / table.LOG / f"{0:020d}.json").touch()
    (tmp_path / "bronze" / MARKER).touch()

    def refuse(*_: object, **__: object) -> None:
        raise UsageError("no Spark today")

    monkeypatch.setattr(session, "build_session", refuse)
    monkeypatch.setattr(needs, "bring", lambda *_: [])
    arguments = ["audit", "--input", str(tmp_path / "bronze"), "--output", str(tmp_path / "out")]
    assert main([*arguments, "--look-back", "2"]) == 2
    told = capsys.readouterr().err
    assert "no snapshots of 3 days before the look-back (2026-11-14 to 2026-11-16)" in told
    assert "`statewarden-rollup compact --snapshots --bronze" in told
    assert main(arguments) == 2
    assert capsys.readouterr().err == "statewarden-rollup: no Spark today\n"
