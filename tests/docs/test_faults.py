"""The checks of commands can fail: each of these is wrong, and is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import machine, ours, programs
from tests.docs.pages import Block
from tests.docs.shapes import missing
from tests.docs.shell import Command, Line, commands, typed
from tests.docs.verdicts import printed_again
from tests.support.every import every

WRONG = {
    "statewarden scna STATE_DIR": "invalid choice",
    "statewarden scan STATE_DIR --sett a=b": "unrecognized",
    "statewarden scan STATE_DIR --set procesing_guarantee=exactly_once_v2": "procesing_guarantee",
    "statewarden scan STATE_DIR     reads it once": "unrecognized",
    "statewarden verify STATE_DIR": "--bootstrap-servers",
    "statewarden verify STATE_DIR --bootstrap-servers B --fail-on lost": "lost",
    "statewarden-rollup audit --input BRONZE": "--output",
    "statewarden-rollup audit --input BRONZE --output OUT --as-of yesterday": "--as-of",
    "make tests": "no target",
    "make test AGRS=-x": "AGRS",
    "make lint ARGS=-x": "passes nothing on",
    "make hunt ARGS='--minuets 3'": "--minuets",
    "make bench ARGS=scam": "scam",
    "make prove ARGS=nothing": "nothing",
    "python tests/lab/walk.py": "there is no",
    "python tests/lab/run.py --seed 1": "unrecognized",
    "pytest -m heavi tests/oracle": "heavi",
    "pytest tests/oracles": "tests/oracles",
    "helm install audit helm/statewardens": "chart",
    "helm install audit helm/statewarden --set objectstore.bucket=B": "objectstore.bucket",
    "helm install audit --from-registry helm/statewarden": "--from-registry",
    "kubectl logs POD -c statwarden": "statwarden",
    "kubectl port-forward POD 9494": "9494",
    "kubectl remove pod POD": "none of",
    "docker build -f deploy/images/agents.Containerfile .": "agents",
    "docker build -f deploy/images/agent.Containerfile --build-arg EXTRA=-sinks .": "EXTRA",
    "docker build -f deploy/images/agent.Containerfile --build-arg EXTRAS=-sink .": "-sink",
    "pip install 'statewarden[verfy]'": "verfy",
    "java -cp CLASSES TornDelete BOOTSTRAP": "TornDelete",
    "curl -s http://localhost:9464/ready": "/ready",
    "grep -E 'a(b' FILE": "grep",
    "sed 's#a#b' FILE": "sed",
    "kafka-get-offsets.sh --bootstrap-servers B": "--bootstrap-servers",
    "spark-submit --py-file a.zip rollup.py audit --input I --output O": "--py-file",
    "spark-submit rollup.py audit --input I": "--output",
    "frobnicate STATE_DIR": "nothing is known",
}
"""Command -> what is said of it."""


@every("text", list(WRONG))
def test_what_is_wrong_is_found(text: str) -> None:
    """Misspelt, left out, not there, or with a remark behind that a shell would take for arguments."""
    (command,) = commands(text)
    is_ours = command.words[0] in ours.PROGRAMS
    said = ours.check(command.words, in_a_sentence=False) if is_ours else programs.check(command.words)
    assert WRONG[text] in said


def test_a_sentence_may_leave_out_but_not_be_wrong() -> None:
    """`statewarden scan --json` names an option of a command."""
    assert ours.check(["statewarden", "scan", "--json"], in_a_sentence=True) == ""
    assert ours.check(["statewarden", "scan", "--jsn", "DIR"], in_a_sentence=True) != ""


def words(text: str) -> Iterator[str]:
    return (" ".join(command.words) for command in commands(text))


def test_a_line_is_split_as_a_shell_would() -> None:
    """Pipes, lists, redirections, quotations, what is started inside, what a container starts."""
    assert list(words("a 'b | c' | d > f 2>&1; e && g")) == ["a b | c", "d", "e", "g"]
    assert list(words('x --jars "$( (a b; c) | d)" y')) == ["a b", "c", "d", "x --jars $( (a b; c) | d) y"]
    assert list(words("kubectl exec POD -c one -- two -x")) == ["kubectl exec POD -c one", "two -x"]
    assert list(commands("A='1 2' b")) == [Command({"A": "1 2"}, ("b",))]


def test_a_block_is_split_into_lines() -> None:
    """Continuations are joined, remarks are none of it, output goes with its command."""
    plain = typed(Block("p", 7, "", "a b \\\n   c  # why\n\nd\n"))
    assert [(line.place, line.text) for line in plain] == [("p:7", "a b c"), ("p:10", "d")]
    session = typed(Block("p", 1, "", "$ a \\\n  b\nsaid\n\n$ c\n"))
    assert [(line.text, list(line.shown)) for line in session] == [("a b", ["said", ""]), ("c", [])]


def test_output_is_compared_by_its_words() -> None:
    """Numbers, times, ids and the way in which lines are broken may differ; words, and their order, may not."""
    said = "read 2 tasks\nincident i-0123456789ab\nsince 2026-11-21 01:43:48 UTC"
    assert missing(["read 14 tasks ...", "since 2025-01-01 00:00:00", "UTC"], said) == []
    assert len(missing(["read 2 stores ...", "since 2026-11-21 01:43:48 UTC"], said)) == 1
    assert len(missing(["since 2026-11-21 01:43:48 UTC ...", "read 2 tasks"], said)) == 1


def test_a_verdict_of_other_words_is_found() -> None:
    """It is printed as it would be today."""
    head = "ahead         app/0_1/kv  (key-value; app-kv-changelog-1 from 0 to 9; offset 4)"
    text = f"{head}\n              9 ahead, 5 equal\n"
    assert printed_again(text) == text
    assert printed_again(text.replace("9 ahead, 5 equal", "5 equal, 9 ahead")) == text


def test_a_removal_stays_below_the_copy(tmp_path: Path) -> None:
    """What bash runs may remove nothing elsewhere."""
    (tmp_path / "state").mkdir()
    (tmp_path / "here").mkdir()
    world = dict.fromkeys(("application", "task", "store", "out"), "x") | {"state": str(tmp_path / "state")}
    with pytest.raises(AssertionError):
        machine.run(Line("p:1", "rm -r /etc/STATE"), world, tmp_path / "here")
