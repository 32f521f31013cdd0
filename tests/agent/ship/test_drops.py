"""The account of what was given up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.contract.codec import Encoder
from agent.contract.events import Record
from agent.ship import drops
from agent.ship.drops import Account, Cause, Key, Span
from tests.agent.ship.ship_support import AT_US, ORIGIN, heartbeat


def account_of(records: list[tuple[int, Record]]) -> Account:
    account: Account = {}
    for sequence, record in records:
        drops.add_record(account, "b", sequence, record.kind.value, record.body)
    return account


@given(numbers=st.lists(st.integers(1, 10_000), min_size=1, unique=True))
def test_spans_are_tight(numbers: list[int]) -> None:
    """In any order, a span counts each record once and reaches from the lowest to the highest."""
    account = account_of([(number, heartbeat()) for number in numbers])
    assert account == {Key("b", "heartbeat", ""): Span(len(numbers), min(numbers), max(numbers))}


def test_an_announcement_keeps_the_contract() -> None:
    """A drop record can be encoded and names boot and cause."""
    record = drops.announcement(Key("b", "summary", Cause.CAP), Span(3, 5, 9), AT_US)
    assert '"reason":"spool-cap; boot b"' in Encoder(ORIGIN).encode(record, 1)


def test_a_lost_announcement_hands_its_content_on() -> None:
    """Giving up a drop record gives up itself and announces again what it announced, cause and boot kept."""
    record = drops.announcement(Key("old", "summary", Cause.REJECTED), Span(3, 5, 9), AT_US)
    given_up: Account = {}
    drops.add_all(given_up, account_of([(7, record)]), Cause.CAP)
    assert given_up == {
        Key("b", "drop", Cause.CAP): Span(1, 7, 7),
        Key("old", "summary", Cause.REJECTED): Span(3, 5, 9),
    }


def test_only_own_records_are_counted() -> None:
    """The count of lost records leaves out what was only announced, because it was counted then."""
    record = drops.announcement(Key("old", "summary", Cause.CAP), Span(3, 5, 9), AT_US)
    assert drops.own_counts(account_of([(7, record), (8, heartbeat())])) == {"drop": 1, "heartbeat": 1}
