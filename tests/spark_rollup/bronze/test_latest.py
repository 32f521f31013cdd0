"""Up to when an audit looks: one clock that is ahead silences nobody, and who is silent is not hidden."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.bronze.latest import Last, Latest, Pod, choose

NOW_S = 100_000
S = 1_000_000


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


def test_the_newest_event_counts_where_clocks_agree():
    """Within the time after which an agent counts as silent."""
    assert of(a=1000, b=1090) == Latest(1090 * S)
    assert of(a=1000) == Latest(1000 * S)


def test_one_blip_ahead_of_two_is_a_clock():
    """However far it is ahead."""
    assert of(a=1000, b=1010, c=4600) == Latest(1010 * S, {("ns", "c"): 3590 * S})
    assert of(a=1000, b=1010, e=990, c=4600, d=9000).ahead.keys() == {("ns", "c"), ("ns", "d")}
    assert of(a=1000, b=1010, c=4600, d=9000).as_of_us == 9000 * S  # two and two: nobody is the majority


def test_a_clock_that_runs_minutes_ahead_of_two_is_passed_over():
    """It speaks all the time: two others that fall silent together are rarer."""
    assert of(a=1000, b=1010, c=1310, began_s={"c": 1011}).as_of_us == 1010 * S
    assert of(a=1000, b=1010, c=1311, began_s={"c": 1011}).as_of_us == 1311 * S


def test_a_story_that_is_shifted_as_a_whole_is_a_clock():
    """As long as the others', and behind them by the same at both ends."""
    shifted = of(a=9000, b=9010, c=12_600, began_s={"c": 9011}, first_s={"c": 3600})
    assert shifted == Latest(9010 * S, {("ns", "c"): 3590 * S})
    longer = of(a=9000, b=9010, c=12_600, began_s={"c": 9011}, first_s={"c": 3400})
    assert longer.as_of_us == 12_600 * S


def test_who_takes_the_others_place_is_believed():
    """A new pod that began after the old ones were killed is the whole fleet now."""
    assert of(a=1000, b=1010, c=1250, began_s={"c": 1100}, first_s={"c": 1100}).as_of_us == 1250 * S


def test_who_speaks_on_for_long_is_believed():
    """The others are silent: an audit that ended where they do would hide it."""
    assert of(a=1000, b=1010, c=4600, began_s={"c": 1020}) == Latest(4600 * S)


def test_one_other_pod_is_no_majority():
    """Of two pods each may be the one that is wrong; the newer one is told, so silence shows."""
    assert of(a=1000, b=4600) == Latest(4600 * S)
    assert of(a=1000, b=100, c=4600) == Latest(4600 * S)


def test_pods_that_stopped_are_no_company():
    """They said that they would be silent."""
    assert of(a_stopped=1000, b_stopped=1010, c=4600) == Latest(4600 * S)


def test_the_future_is_a_clock_even_of_two_pods():
    """Nobody saw yet what is still to come; unless all say so: then our own clock is behind."""
    assert of(a=1000, b=4600, now_s=1100) == Latest(1000 * S, {("ns", "b"): 3600 * S})
    assert of(b=4600, now_s=1100) == Latest(4600 * S)
    assert of(a=1000, b=1159, now_s=1100) == Latest(1159 * S)


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
