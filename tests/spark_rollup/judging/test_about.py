"""What is asked about one application is told as the whole audit tells it."""

from __future__ import annotations

from agent.contract.events import Kind
from spark_rollup.correlate import RULES
from spark_rollup.fleet.judge import FINDINGS
from spark_rollup.fleet.reduce import COVERAGE, Question
from spark_rollup.judging.plain import Plain
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of


def test_the_words_about_another_application_on_the_pod_are_not_lost() -> None:
    """Each left a hole in its agent's sequence: nothing was watched, and what is confirmed was unknown."""
    fleet = Fleet("shop")
    for pod in (fleet.pod("pod-a"), fleet.pod("pod-b")):
        pod.configures(1, "3.9.2", num_standby_replicas=1).holds("0_0", 5)
        for at in range(60, HORIZON_S, 60):
            pod.measures("0_0", at, identity=pod.name, offset=1000, puts=1000)
            pod.tells(Kind.SUMMARY, at + 1, application_id="bills", task_id="0_0", source="timer", held=True)
    fleet.pods[0].finds("torn-store", "0_0", 100, store="s", identity="pod-a")
    read, asked = Plain(events_of(fleet.lines())), Question(at_us(HORIZON_S), rules=RULES)
    whole, own = read.told(asked), read.about("shop", "orders").told(asked)
    assert own.of(COVERAGE) == whole.of(COVERAGE)
    told = [[x for x in y.of(FINDINGS) if x["application_id"] == "orders"] for y in (own, whole)]
    assert told[0] == told[1] != []
