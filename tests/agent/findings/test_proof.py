"""The command that proves a suspicion: exact, and only where content can decide."""

from __future__ import annotations

import shlex

import pytest

from agent.cli.main import make_parser
from agent.contract.events import Confidence, Level
from agent.detectors import BY_ID
from agent.findings.proof import proof_command, with_proof

DAMAGE, EXPOSURE = BY_ID["lost-segment"].meta, BY_ID["stale-eos-checkpoint"].meta
assert (DAMAGE.level, EXPOSURE.level) == (Level.DAMAGE, Level.EXPOSURE)


@pytest.mark.parametrize("store", [None, "counts", "a store; with $signs"])
def test_it_is_a_command_that_the_program_takes(store):
    words = shlex.split(proof_command("orders", "0_1", store))
    assert words[0] == "statewarden"
    options = make_parser().parse_args(words[1:])
    assert (options.application, options.task, options.store) == ("orders", "0_1", store)


def test_a_suspicion_begins_with_its_proof():
    """Nothing is stopped or removed for what the proof may refute; the command can be copied."""
    said = with_proof("Stop it.", DAMAGE, Confidence.SUSPECTED, "orders", "0_1", "counts")
    assert said == (
        "Prove it first, beside the running application or on a stopped one: `statewarden verify STATE_DIR "
        "--bootstrap-servers HOST:9092 --application orders --task 0_1 --store counts`; `equal` refutes it only if the "
        "task has written nothing since. Unless it is refuted: Stop it."
    )
    assert f"`{proof_command('orders', '0_1', 'counts')}`" in said


def test_what_must_be_done_before_the_next_start_comes_before_its_proof():
    """A pod may start at any moment: who reads the first words only must read these."""
    said = with_proof(
        "Before the next start: keep it.",
        DAMAGE,
        Confidence.SUSPECTED,
        "orders",
        "0_1",
        "counts",
        is_ahead=True,
    )
    assert said.startswith("Before the next start: keep it. What proves it")
    assert said.endswith(f"`{proof_command('orders', '0_1', 'counts')}`")


@pytest.mark.parametrize(
    ("meta", "confidence", "task"),
    [
        (DAMAGE, Confidence.CONFIRMED, "0_1"),
        (DAMAGE, Confidence.UNKNOWN, "0_1"),
        (EXPOSURE, Confidence.SUSPECTED, "0_1"),  # about the next start, not about what is there
        (DAMAGE, Confidence.SUSPECTED, None),
        (DAMAGE, Confidence.SUSPECTED, "global"),  # not compared
    ],
)
def test_nothing_is_added_where_content_decides_nothing(meta, confidence, task):
    assert with_proof("Keep a copy.", meta, confidence, "orders", task, None) == "Keep a copy."
