"""Lines of another major version of the contract, files cut off, and the answer about all pods."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from agent.contract.exit_codes import Exit
from spark_rollup import answers
from spark_rollup.report import restart_answer
from spark_rollup.report.restart_answer import Known
from tests.spark_rollup.report.test_restarts import NOW, given, pod_of


def test_pods_that_cannot_be_read_are_no_all_clear():
    """An agent of a later major version counts where its pod is asked for; what is in the way goes before it."""
    pods, lines_of = [pod_of("pod-a")], {"shop/pod-b": 1}
    lines, code = restart_answer.answer(Known([], pods, unread=lines_of), NOW)
    assert (lines[-1], code) == (
        "1 line of shop/pod-b is of an unknown contract version: upgrade statewarden-rollup",
        Exit.UNREAD,
    )
    kept = Known([given("pod-a", "0_0", "keep")], pods, unread=lines_of)
    assert restart_answer.answer(kept, NOW)[1] is Exit.FOUND
    there = [pod_of("pod-a", "eu-1/shop"), pod_of("pod-a", "bills")]
    codes = {
        space: restart_answer.answer(Known([], there, unread=lines_of), replace(NOW, namespace=space))[1]
        for space in ("eu-1/shop", "bills")
    }
    assert codes == {"eu-1/shop": Exit.UNREAD, "bills": Exit.CLEAR}


def test_a_file_that_ends_too_early_is_no_all_clear_of_any_namespace():
    """Its name says no namespace; many are a number."""
    files = {f"/in/u/boot-1-{number}.jsonl.gz": "" for number in range(9)}
    known = Known([], [pod_of("pod-a")], unread={"shop/pod-b": 1}, unfinished=files)
    lines, code = restart_answer.answer(known, NOW)
    assert code is Exit.UNREAD
    assert lines[-1].startswith(
        "1 line of shop/pod-b is of an unknown contract version: upgrade statewarden-rollup; "
    )
    assert "u/boot-1-0.jsonl.gz, u/boot-1-1.jsonl.gz" in lines[-1]
    assert lines[-1].endswith(" more could not be read to the end: make readable, or send again")


def test_a_file_that_ends_too_early_is_no_all_clear_of_one_pod():
    """It may be the file in which that pod's agent says what is wrong; what is in the way goes before it."""
    pods, asked = [pod_of("pod-a")], replace(NOW, pod="pod-a")
    known = Known([], pods, unread={"shop/pod-b": 1}, unfinished={"/in/u/boot-1-9.jsonl.gz": ""})
    lines, code = restart_answer.answer(known, asked)
    assert code is Exit.UNREAD
    assert lines[-1] == "u/boot-1-9.jsonl.gz could not be read to the end: make readable, or send again"
    kept = replace(known, restarts=[given("pod-a", "0_0", "keep")])
    assert restart_answer.answer(kept, asked)[1] is Exit.FOUND
    assert restart_answer.answer(replace(known, unfinished={}), asked)[1] is Exit.CLEAR
    for whose, expected in (("shop/pod-a", Exit.UNREAD), ("shop/pod-b", Exit.CLEAR)):
        of_pod = replace(known, unfinished={"/in/u/boot-1-9.jsonl.gz": whose})
        assert restart_answer.answer(of_pod, asked)[1] is expected


def test_a_story_beside_lines_that_wait_for_an_upgrade_is_not_whole():
    """`why` and `coverage` ended with 0 where all of a pod was of another major version, in no agent's segment."""
    line = '{"source": "/statewarden/shop/pod-b", "data": {"schema_version": "2.0"}}'
    row = {"reason": "unknown-major", "detail": "contract version 2.0; this reader knows 1", "line": line}
    read: Any = SimpleNamespace(quarantine=[row], unfinished={})
    codes = {space: answers._with_unread(read, [], space)[1] for space in (None, "shop", "bills")}
    assert codes == {None: Exit.UNREAD, "shop": Exit.UNREAD, "bills": Exit.CLEAR}
