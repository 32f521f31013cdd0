"""The command `verify`: what it refuses before a broker is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.main import make_parser
from agent.cli.verify import asked_stores
from agent.errors import UsageError
from agent.verify.changelog import Changelogs

SERVERS = ("--bootstrap-servers", "127.0.0.1:1")


def test_a_missing_library_is_one_line(
    statewarden: Callable, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names what to install; exit code 2."""
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    said = statewarden("verify", damaged, *SERVERS)
    assert said.code == 2
    assert "pip install 'statewarden[verify]'" in said.complaint


def test_a_missing_client_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the reader of changelogs."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UsageError, match=r"pip install 'statewarden\[verify\]'"):
        Changelogs("127.0.0.1:1", {})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--fail-on", "broken"), "the words are expired, equal, behind"),
        (("--kind", "kv=tree"), "--kind kv=tree"),
        (("--retention", "win=6h"), "--retention win=6h"),
        (("--topic", "kv"), "expected STORE="),
    ],
)
def test_wrong_use_is_one_line(
    statewarden: Callable, damaged: Path, arguments: tuple[str, ...], reason: str
) -> None:
    """Exit code 2, with what was given."""
    said = statewarden("verify", damaged, *SERVERS, *arguments)
    assert said.code == 2
    assert reason in said.complaint


def test_a_global_store_that_is_left_out_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A comparison that says nothing of it would seem to cover it."""
    for path in ("app/0_0/rocksdb/kv", "app/global/rocksdb/everywhere"):
        (tmp_path / path).mkdir(parents=True)
    chosen = make_parser().parse_args(["verify", str(tmp_path), *SERVERS])
    assert [store.name for store in asked_stores(chosen, with_global=False)] == ["kv"]
    assert "app/global/everywhere: skipped" in capsys.readouterr().err


def test_a_store_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    """The few first ones by name; a directory without any says so."""
    (tmp_path / "orders" / "0_0").mkdir(parents=True)
    with pytest.raises(UsageError, match="no store on disk"):
        asked_stores(make_parser().parse_args(["verify", str(tmp_path), *SERVERS]), with_global=False)
    for number in range(6):
        (tmp_path / f"orders/0_{number}/rocksdb/kv").mkdir(parents=True)
    chosen = ["verify", str(tmp_path), *SERVERS, "--application", "order", "--store", "kv"]
    with pytest.raises(UsageError) as refused:
        asked_stores(make_parser().parse_args(chosen), with_global=False)
    said = str(refused.value)
    assert "no store of --application order --store kv; there are orders/0_0/kv, " in said
    assert said.endswith("orders/0_4/kv, and 1 more")
