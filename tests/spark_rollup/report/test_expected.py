"""`audit --expect`: pods without an agent that is heard, and tasks that no pod has."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_rollup.cli import main
from spark_rollup.errors import UsageError
from spark_rollup.report import expected
from spark_rollup.report.expected import COMMAND, Expected, PodKey, read
from spark_rollup.report.page import PageData, render
from spark_rollup.report.terminal import Shown, readable
from tests.spark_rollup.report.page.page_check import headline, whole, words
from tests.spark_rollup.report.page.page_rows import answer, page

PRINTED = """\
shop      orders-0        2/2   Running   0             41d
shop      orders-1        2/2   Running   2 (3d ago)    41d
bills     bills-7c9d-xk   2/2   Running   0             41d

"""


def pod(name: str, state: str = "watching", namespace: str = "shop") -> dict[str, object]:
    """Make a row of the table of pods."""
    (row,) = page().pods
    return {**row, "namespace": namespace, "pod": name, "agent_state": state}


def compare(pods: list[PodKey], *given: list[dict[str, object]]) -> Expected:
    """Compare with rows of pods, and of restarts."""
    found = expected.compare(pods, *given)
    assert found is not None
    return found


def held(task: str, pod: str = "orders-0", answer_: str = "safe") -> dict[str, object]:
    """Make a row of the table of restarts."""
    return answer(task_id=task, pod=pod, answer=answer_)


def missing(*rows: dict[str, object], pods: tuple[str, ...] = ("orders-0",)) -> list[str]:
    """Give the tasks of one application that no pod has."""
    found = compare([], [pod(name) for name in pods], [*rows]).tasks
    return list(found.get(("shop", "orders"), ()))


@pytest.mark.parametrize("text", [PRINTED, "shop orders-0\nshop orders-1\nbills bills-7c9d-xk", PRINTED * 2])
def test_what_kubectl_prints_is_read(tmp_path: Path, text: str) -> None:
    """Its own columns, or only the first two; a repeated line counts once."""
    file = tmp_path / "pods"
    file.write_text(text)
    assert read(file) == (("shop", "orders-0"), ("shop", "orders-1"), ("bills", "bills-7c9d-xk"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NAMESPACE  NAME  READY\nshop orders-0\n", "line 1: 'NAMESPACE NAME READY' does not begin with"),
        ("shop orders-0\norders-0 2/2 Running 0 41d\n", "line 2: 'orders-0 2/2 Running 0 41d' does not"),
        ("shop\n", "line 1: 'shop' does not begin with a namespace and a pod"),
        ('{"items": []}', "line 1: '{\"items\": []}' does not begin with"),
        ("pod/orders-0\npod/orders-1\n", "line 1: 'pod/orders-0' does not begin"),
        ("\n", "names no pod"),
        (b"\xff\xfe", "is no text"),
        (None, "No such file or directory"),
    ],
)
def test_a_malformed_file_is_refused_with_the_command(tmp_path, capsys, monkeypatch, text, message):
    """Before Java starts, in one line, with code 2: what is wrong where, and what makes the right one."""
    monkeypatch.setattr(
        "spark_rollup.spark.session.build_session", lambda *_, **__: pytest.fail("Spark was started")
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    file = tmp_path / "pods"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    asked = [
        "audit",
        "--input",
        str(tmp_path / "in"),
        "--output",
        str(tmp_path / "out"),
        "--expect",
        str(file),
    ]
    assert main(asked) == 2
    _, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert message in err
    assert COMMAND in err


def test_pods_without_an_agent_that_is_heard():
    """Never, or not any more; a pod that was not expected is nobody's business here."""
    pods = [pod("orders-0"), pod("orders-1", "silent"), pod("orders-2", "stopped"), pod("other-0", "silent")]
    found = compare([("shop", f"orders-{n}") for n in range(4)], pods, [])
    assert found.unheard == {
        ("shop", "orders-1"): "silent, last heard 2026-11-18 11:21:40 UTC",
        ("shop", "orders-2"): "its agent ended, last heard 2026-11-18 11:21:40 UTC",
        ("shop", "orders-3"): "never heard",
    }
    assert found.in_words() == "no agent heard on 3 of 4 expected pods"
    assert compare([("shop", "orders-0")], pods, []).in_words() == ""


def test_a_namespace_is_of_a_cluster():
    """The only one may be left out; of several it must be said, or a missing pod would be hidden by its namesake."""
    one = [pod("orders-0", namespace="eu-1/shop")]
    two = [*one, pod("orders-1", namespace="us-1/shop")]
    assert not compare([("shop", "orders-0")], one, []).unheard
    assert not compare([("eu-1/shop", "orders-0")], one, []).unheard
    assert compare([("eu-1/shop", "orders-0"), ("us-1/shop", "orders-0")], two, []).unheard.keys() == {
        ("us-1/shop", "orders-0")
    }
    with pytest.raises(UsageError, match=r"write CLUSTER/shop \(eu-1, us-1\)"):
        compare([("shop", "orders-0")], two, [])


def test_tasks_that_no_pod_has():
    """Numbers up to the highest that is known of a sub-topology; one that is held nowhere is an old one."""
    rows = [held(x) for x in ("0_0", "0_2", "0_6", "1_0", "1_1", "join__0_1")]
    left = [held("0_7", answer_="not-running"), held("9_3", answer_="not-running"), held("0_2147483647")]
    assert missing(*rows, *left) == ["0_1", "0_3", "0_4", "0_5", "0_7", "join__0_0"]
    found = compare([], [pod("orders-0")], [*rows, *left])
    assert found.in_words() == "6 tasks that no pod has"
    assert compare([], [pod("orders-0")], [held("0_0"), held("0_1")]).in_words() == ""


def test_what_a_silent_pod_had_it_may_still_have_if_it_is_expected():
    """One that is gone for good has nothing."""
    rows = [held("0_0"), held("0_1", "orders-1", "unknown")]
    pods = [pod("orders-0"), pod("orders-1", "silent")]
    assert compare([("shop", "orders-1")], pods, rows).tasks == {}
    assert compare([("shop", "orders-0")], pods, rows).tasks == {("shop", "orders"): ["0_1"]}


UNHEARD = {
    ("shop", "orders-<3>"): "never heard", ("shop", "orders-5"): "silent", ("shop", "orders-4"): "never heard",
    ("bills", "b-0"): "never heard",
}  # fmt: skip
MISSING = Expected(5, UNHEARD, {("shop", "orders"): ["0_3"]})


def test_the_terminal_has_it_in_its_first_line_and_names_all():
    """It is no all-clear."""
    data = PageData(1_700_000_000_000_000, "1", expected=MISSING)
    lines = readable(data, Path("report.html"), Shown())
    assert lines[0].startswith(
        "no incidents found; not an all-clear: no agent heard on 4 of 5 expected pods and 1 task that no pod has ("
    )
    assert [x.strip() for x in lines[1:4]] == [
        "pods of shop without an agent: orders-<3>, orders-4 (never heard); orders-5 (silent)",
        "pods of bills without an agent: b-0 (never heard)",
        "tasks of shop/orders that no pod has: 0_3",
    ]
    many = Expected(30, {(f"n{x}", "p"): "never heard" for x in range(30)}, {})
    lines = readable(PageData(1, "1", expected=many), Path("r"), Shown())
    assert sum("without an agent: p" in x for x in lines) == 20
    assert "    and 10 lines more (--verbose)" in lines
    whole_list = readable(PageData(1, "1", expected=many), Path("r"), Shown(verbose=True))
    assert sum("without an agent: p" in x for x in whole_list) == 30


def test_the_report_names_all():
    """In the headline, and in the box of what was not seen."""
    text = render(page(findings=[], expected=MISSING))
    whole(text)
    assert headline(text) == "Unknown: no agent heard on 4 of 5 expected pods and 1 task that no pod has"
    assert (
        "Pods of shop without an agent: orders-&lt;3&gt;, orders-4 (never heard); orders-5 (silent)"
        in words(text)
    )
    assert "expected pods" in headline(render(page(expected=MISSING)))
