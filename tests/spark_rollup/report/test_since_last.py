"""What an audit says of the one before it: new, worse, still open, gone, and not heard of any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup import __version__
from spark_rollup.report import since_last
from spark_rollup.report.since_last import Change, Last, Seen, SinceLast, compare
from spark_rollup.report.story import texts
from spark_rollup.spark.outputs import MARKER

THEN_US, NOW_US = 1_790_000_000_000_000, 1_790_600_000_000_000  # about a week
PODS = {("shop", f"orders-{n}"): "" for n in range(3)}
SEEN = Seen(PODS, rules=frozenset({"task-churn", "unaudited"}))


def incident(id_: str = "i-1", **given: object) -> dict[str, object]:
    """Make a row of the table of incidents."""
    row: dict[str, object] = {
        "id": id_, "absorbed": [id_], "detector": "torn-store", "severity": "warning", "status": "open",
        "namespace": "shop", "application_id": "orders", "pods": ["orders-0"], "tasks": ["0_0"], "open_us": THEN_US,
        "findings": [{"id": f"f-{id_}", "detector": "torn-store"}],
    }  # fmt: skip
    return row | given


def since(
    before: list[dict[str, object]], now: list[dict[str, object]], seen: Seen = SEEN, at_us: int = NOW_US
) -> SinceLast:
    """Compare two audits."""
    found = compare(Last(THEN_US, __version__, before), now, seen, at_us)
    assert found is not None
    return found


def test_new_still_open_and_gone():
    """Ids decide; what is gone was on a pod that is seen."""
    found = since([incident("i-1"), incident("i-2")], [incident("i-1"), incident("i-3")])
    assert found.now == {("shop", "i-1"): Change.STILL, ("shop", "i-3"): Change.NEW}
    assert [x["id"] for x in found.gone] == ["i-2"]
    assert not found.not_heard
    assert found.in_words() == "since the audit of 2026-09-21 14:13:20 UTC: 1 new, 1 still open, 1 gone"


def test_resolved_is_gone_whoever_is_silent():
    """An end that was told is known; that the agent fell silent later changes nothing."""
    silent = Seen({("shop", "orders-0"): "not heard since 12:00"})
    found = since([incident()], [incident(status="resolved", ended="2026-09-25T10:00:01.000000Z")], silent)
    assert [x["id"] for x in found.gone] == ["i-1"]
    assert since_last.in_a_line(found.gone[0]).endswith("(i-1); ended 2026-09-25 10:00:01 UTC")
    assert found.in_words().endswith(": nothing new, 1 gone")


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (
            Seen({("shop", "orders-0"): "not heard since 12:03:00"}),
            "orders-0: not heard since 12:03:00",
        ),
        (
            Seen({("shop", "orders-0"): "its agent ended at 12:03:00"}),
            "orders-0: its agent ended at 12:03:00",
        ),
        (Seen({("other", "orders-0"): ""}), "no word of orders-0 in this audit"),
        (Seen(PODS, not_asked=frozenset({("torn-store", None)})), "torn-store is not looked for"),
        (
            Seen(PODS, not_asked=frozenset({("torn-store", ("shop", "orders-0"))})),
            "torn-store is not looked for on orders-0",
        ),
    ],
)
def test_what_is_merely_not_heard_of_is_not_gone(seen, why):
    """Silence, an absent pod and a disabled detector say nothing about the state on disk."""
    found = since([incident()], [], seen)
    assert not found.gone
    assert [x["why"] for x in found.not_heard] == [why]
    assert "1 not heard of any more" in found.in_words()


def test_what_an_agent_closed_with_its_detector_is_not_gone():
    """It is resolved because it is not looked for any more."""
    off = Seen(PODS, not_asked=frozenset({("torn-store", ("shop", "orders-0"))}))
    found = since([incident()], [incident(status="resolved", ended="2026-09-25T10:00:01.000000Z")], off)
    assert [x["why"] for x in found.not_heard] == ["torn-store is not looked for on orders-0"]


def test_a_detector_disabled_elsewhere_hides_nothing():
    """Neither on another pod nor in another namespace."""
    off = frozenset({("torn-store", ("shop", "orders-1")), ("torn-store", ("test", "orders-0"))})
    assert len(since([incident()], [], Seen(PODS, not_asked=off)).gone) == 1


def test_what_names_no_pod_is_gone_when_all_pods_of_the_namespace_are_seen():
    """One that is silent may know of it; and without any pod nothing is known."""
    row = incident(pods=[])
    assert since([row], []).gone
    assert since([row], [], Seen({**PODS, ("shop", "orders-1"): "blind"})).not_heard
    assert since([row], [], Seen({})).not_heard[0]["why"] == "no word of its pods in this audit"


@pytest.mark.parametrize(
    "now",
    [
        {"severity": "critical"},
        {"tasks": ["0_0", "0_1"]},
        {"id": "i-0", "absorbed": ["i-0", "i-1"], "severity": "critical"},
    ],
)
def test_worse(now):
    """A higher severity, or a task more; also as part of an older incident."""
    found = since([incident()], [incident(**now)])
    assert list(found.now.values()) == [Change.WORSE]
    assert not found.gone


def test_less_is_still_open():
    """A lower severity that is no remark, and a task less; as a remark it is gone."""
    now = incident(severity="warning", tasks=["0_0"])
    before = [incident(severity="critical", tasks=["0_0", "0_1"])]
    assert list(since(before, [now]).now.values()) == [Change.STILL]
    assert since(before, [{**now, "severity": "info"}]).gone == before


def test_an_incident_is_known_again_by_its_own_findings():
    """Merged without a word of it, or split; a finding that is only evidence is no identity."""
    shared = {"id": "f-x", "detector": "unowned-task"}
    own = {"id": "f-i-1", "detector": "torn-store"}
    before = [incident(findings=[own, shared])]
    again = incident("i-9", absorbed=[], findings=[own])
    other = incident("i-8", absorbed=[], findings=[{"id": "f-8", "detector": "torn-store"}, shared])
    found = since(before, [again, other])
    assert found.now == {("shop", "i-9"): Change.STILL, ("shop", "i-8"): Change.NEW}


def test_ids_are_of_a_namespace():
    """A copied volume reports one id in two namespaces: they are two incidents."""
    found = since([incident()], [incident(namespace="test")])
    assert list(found.now.values()) == [Change.NEW]
    assert len(found.gone) == 1


def test_a_rule_whose_id_follows_the_look_back_is_known_again_by_its_place():
    """The busiest hour of a task moves on; of an agent's detector the same would be another incident."""
    old, new = (
        incident(x, absorbed=[], detector="task-churn", findings=[{"id": x, "detector": "task-churn"}])
        for x in ("i-1", "i-2")
    )
    assert list(since([old], [new]).now.values()) == [Change.STILL]
    assert list(since([old], [{**new, "tasks": ["0_1"]}]).now.values()) == [Change.NEW]
    of_agent = since([{**old, "detector": "torn-store"}], [{**new, "detector": "torn-store"}])
    assert list(of_agent.now.values()) == [Change.NEW]


def test_an_earlier_time_is_not_compared():
    """`--as-of` before the last audit: what was open later says nothing."""
    assert compare(Last(THEN_US, __version__, [incident()]), [], SEEN, THEN_US - 1) is None


STATES = st.sampled_from(("", "not heard since 12:00"))
ROWS = st.lists(
    st.builds(
        lambda n, pod, severity, status: incident(
            f"i-{n}", pods=[f"orders-{pod}"], severity=severity, status=status
        ),
        st.integers(0, 5), st.integers(0, 2), st.sampled_from(("critical", "warning")),
        st.sampled_from(("open", "resolved")),
    ),
    unique_by=lambda row: str(row["id"]), max_size=6,
)  # fmt: skip


@given(ROWS, ROWS, st.lists(STATES, min_size=3, max_size=3))
def test_everything_open_is_told_once(before, now, doubts):
    """Each open incident of then is open, gone or not heard of; gone only where resolved, or where its pod is seen."""
    seen = Seen({("shop", f"orders-{n}"): doubt for n, doubt in enumerate(doubts)})
    was = [row for row in before if since_last.is_counted(row)]
    found = since(was, now, seen)
    gone, lost = ([str(x["id"]) for x in rows] for rows in (found.gone, found.not_heard))
    still = [id_ for (_, id_), change in found.now.items() if change is not Change.NEW]
    assert sorted([*gone, *lost, *still]) == sorted(str(x["id"]) for x in was)
    assert {id_ for _, id_ in found.now} == {str(x["id"]) for x in now if x["status"] == "open"}
    named = {str(x["id"]) for x in now}
    for row in found.gone:
        assert row["id"] in named or not seen.pods["shop", texts(row["pods"])[0]]
    # the same audit again: nothing is new, nothing is gone
    again = since([x for x in now if since_last.is_counted(x)], now, seen)
    assert set(again.now.values()) <= {Change.STILL}
    assert not again.gone
    assert not again.not_heard


def output(place: Path, rows: list[dict[str, object]], found: SinceLast | None, at: str) -> Path:
    """Leave what an audit leaves, as far as it is read here."""
    place.mkdir(exist_ok=True)
    marker = {"written": at, "watermark": at, "version": "0.1.0"}
    (place / MARKER).write_text(json.dumps(marker))
    (place / "incidents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    since_last.write(found, at, place)
    return place


def test_not_heard_of_lasts_over_audits_and_ends(tmp_path):
    """It is a level: the next audits say it again, until the pod is seen, or five weeks after it was last seen open."""
    silent = Seen({("shop", "orders-0"): "not heard since 12:00"})
    out = output(
        tmp_path / "out", [incident(), incident("i-2", severity="info")], None, "2026-09-01T00:00:00.000000Z"
    )
    first = since_last.read(out)
    assert first is not None
    assert [x["id"] for x in first.open] == ["i-1"]
    day_us = 86_400_000_000
    found = compare(first, [], silent, first.as_of_us + 7 * day_us)
    last = since_last.read(output(out, [], found, "2026-09-08T00:00:00.000000Z"))
    assert last is not None
    assert last.version == "0.1.0"
    again = compare(last, [], silent, last.as_of_us + 7 * day_us)
    assert again is not None
    assert again.not_heard[0]["open_us"] == first.as_of_us
    assert "(by version 0.1.0): nothing new, 1 not heard of any more" in again.in_words()
    seen = compare(last, [], SEEN, last.as_of_us + day_us)
    assert seen is not None
    assert len(seen.gone) == 1
    late = compare(last, [], silent, first.as_of_us + 36 * day_us)
    assert late is not None
    assert (late.gone, late.not_heard) == ([], [])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (MARKER, "{"),
        (MARKER, "{}"),
        ("incidents.jsonl", "[]\n"),
        ("incidents.jsonl", '{"status": "open", "severity": "warning"}\n'),
        ("incidents.jsonl", '{"status": "open", "severity": "dire"}\n'),
        ("since_last.json", "[1]"),
        (MARKER, '{"watermark": 1}'),
    ],
)
def test_what_cannot_be_read_is_no_comparison(tmp_path, file, text):
    """It does not stop the audit."""
    out = output(tmp_path / "out", [incident()], None, "2026-09-01T00:00:00.000000Z")
    (out / file).write_text(text)
    assert since_last.read(out) is None
    assert since_last.read(tmp_path / "absent") is None


def test_what_another_audit_left_is_not_carried_on(tmp_path):
    """An older version does not know the file and leaves it there."""
    at = "2026-09-01T00:00:00.000000Z"
    found = SinceLast(Last(THEN_US, "1"), not_heard=[{**incident(), "why": "silent"}])
    out = output(tmp_path / "out", [], found, at)
    kept = since_last.read(out)
    assert kept is not None
    assert len(kept.open) == 1
    marker = {"written": "2026-09-02T00:00:00.000000Z", "watermark": at, "version": "0.1.0"}
    (out / MARKER).write_text(json.dumps(marker))
    later = since_last.read(out)
    assert later is not None
    assert not later.open
