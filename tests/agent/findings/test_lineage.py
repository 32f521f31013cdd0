"""Lineage: which findings belong to one incident."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.findings.lineage import Lineage
from tests.agent.cli.test_output import FINDING as TOLD

FIRST = replace(
    TOLD, mechanism="offset-without-data", task_id="0_0", id="0123456789abcdef", opened_at_us=100,
    process_ended_at_us=50,
)  # fmt: skip


def test_the_same_crash_is_one_incident_over_tasks():
    """No process ended between them."""
    known = Lineage()
    one = known.assign(FIRST, goes_on=False)
    assert one == "i-0123456789ab"
    assert known.assign(replace(FIRST, task_id="0_1", id="b" * 16, opened_at_us=900), goes_on=False) == one


def test_another_crash_mechanism_or_application_is_another_incident():
    """What happens at the same time need not have the same cause."""
    known = Lineage()
    one = known.assign(FIRST, goes_on=False)
    for number, other in enumerate(
        (
            replace(FIRST, process_ended_at_us=800),
            replace(FIRST, process_ended_at_us=None),
            replace(FIRST, mechanism="unflushed-segment"),
            replace(FIRST, application_id="payments"),
        )
    ):
        assert known.assign(replace(other, id=f"{number}" * 16), goes_on=False) != one


def test_what_was_open_when_the_process_ended_goes_on_with_the_next():
    """An exposure becomes damage when the store is opened again: the same incident, of that task only."""
    known = Lineage()
    one = known.assign(FIRST, goes_on=False)
    later = replace(FIRST, id="b" * 16, process_ended_at_us=800, opened_at_us=900)
    assert known.latest(later) == FIRST.id
    assert known.assign(later, goes_on=True) == one
    assert known.latest(replace(later, task_id="0_1")) is None
    sibling = replace(later, task_id="0_1", id="c" * 16)
    assert known.assign(sibling, goes_on=False) == one  # by the crash that both had


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["0_0", "0_1", None]), st.integers(0, 3)),
        max_size=12,
    )
)
def test_a_restart_changes_no_incident(drawn):
    """Findings that are given back, in the order in which they opened, lead to the same incidents."""
    entries = [
        replace(FIRST, mechanism=mechanism, task_id=task, id=f"{number:016x}", process_ended_at_us=ended)
        for number, (mechanism, task, ended) in enumerate(drawn)
    ]
    through = Lineage()
    whole = [through.assign(x, goes_on=False) for x in entries]
    for cut in range(len(entries)):
        again = Lineage()
        for entry, incident in zip(entries[:cut], whole[:cut], strict=True):
            again.remember(entry, incident)
        assert [again.assign(x, goes_on=False) for x in entries[cut:]] == whole[cut:]
