"""Up to when an audit looks: one clock that is ahead silences nobody, and who is silent is not hidden."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.bronze.latest import Last, Latest, Pod, choose

NOW_S = 100_000
S = 1_000_000
SHIFTED: dict[str, Any] = {"a": 9000, "b": 9010, "c": 12_600, "began_s": {"c": 9011}}


def of(
    *,
    began_s: dict[str, int] | None = None,
    first_s: dict[str, int] | None = None,
    now_s: int = NOW_S,
    **last_s: int,
) -> Latest:
    """Choose; a name that ends with `_stopped` said that it stops."""
    words = {
        ("ns", pod): Last(at * S, (first_s or {}).get(pod, 0) * S, stopped=pod.endswith("_stopped"))
        for pod, at in last_s.items()
    }

    def began_us(pod: Pod, after_us: int) -> int:
        return max((began_s or {}).get(pod[1], last_s[pod[1]]) * S, after_us + 1)

    return choose(words, now_s * S, began_us)


@pytest.mark.parametrize(
    ("said", "as_of_s", "ahead_s"),
    [
        # clocks agree, within the time after which an agent counts as silent
        ({"a": 1000, "b": 1090}, 1090, {}),
        ({"a": 1000}, 1000, {}),
        # one blip ahead of two is a clock, however far; two and two: nobody is the majority
        ({"a": 1000, "b": 1010, "c": 4600}, 1010, {"c": 3590}),
        ({"a": 1000, "b": 1010, "e": 990, "c": 4600, "d": 9000}, 1010, {"c": 3590, "d": 7990}),
        ({"a": 1000, "b": 1010, "c": 4600, "d": 9000}, 9000, {}),
        # it speaks all the time, up to five minutes ahead of two: that both fall silent together is rarer
        ({"a": 1000, "b": 1010, "c": 1310, "began_s": {"c": 1011}}, 1010, {"c": 300}),
        ({"a": 1000, "b": 1010, "c": 1311, "began_s": {"c": 1011}}, 1311, {}),
        # as long as the others' story and shifted as a whole; a longer one is no clock
        ({**SHIFTED, "first_s": {"c": 3600}}, 9010, {"c": 3590}),
        ({**SHIFTED, "first_s": {"c": 3400}}, 12_600, {}),
        # it began after the others were killed: it is the whole fleet now
        ({"a": 1000, "b": 1010, "c": 1250, "began_s": {"c": 1100}, "first_s": {"c": 1100}}, 1250, {}),
        # it speaks on for long: an audit that ended where the others do would hide that they are silent
        ({"a": 1000, "b": 1010, "c": 4600, "began_s": {"c": 1020}}, 4600, {}),
        # one other pod is no majority: of two each may be the one that is wrong
        ({"a": 1000, "b": 4600}, 4600, {}),
        ({"a": 1000, "b": 100, "c": 4600}, 4600, {}),
        # those that stopped said that they would be silent
        ({"a_stopped": 1000, "b_stopped": 1010, "c": 4600}, 4600, {}),
        # what is still to come nobody saw; unless all say so: then our own clock is behind
        ({"a": 1000, "b": 4600, "now_s": 1100}, 1000, {"b": 3600}),
        ({"b": 4600, "now_s": 1100}, 4600, {}),
        ({"a": 1000, "b": 1159, "now_s": 1100}, 1159, {}),
    ],
)
def test_one_clock_that_is_ahead_silences_nobody(said, as_of_s, ahead_s):
    """A minority whose lead only a wrong clock explains is passed over; who goes on speaking is believed."""
    assert of(**said) == Latest(as_of_s * S, {("ns", pod): lead * S for pod, lead in ahead_s.items()})


@given(
    last=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8),
    now=st.integers(-(2**62), 2**62),
    jumps=st.integers(0, 2**61),
)
def test_any_times_give_a_time_that_an_agent_reported(last, now, jumps):
    """And who is named is ahead of it."""
    words = {("", str(number)): Last(at, at - jumps) for number, at in enumerate(last)}
    found = choose(words, now, lambda _, after_us: after_us + jumps)
    assert found.as_of_us in last
    assert all(words[pod].at_us - found.as_of_us == lead for pod, lead in found.ahead.items())
    assert len(found.ahead) < len(last)
