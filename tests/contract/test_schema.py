"""The committed schema, the golden lines, and the table agree."""

from __future__ import annotations

import json
import pathlib

import jsonschema
import pytest

import agent.contract
from agent.contract.codec import SCHEMA_VERSION, decode
from agent.contract.events import Kind
from agent.contract.fields import FIELDS, fields_of
from tools.schemas import json_schema, render

GOLDEN = pathlib.Path(__file__).parent / "golden"
LINES = (GOLDEN / f"v{SCHEMA_VERSION}.jsonl").read_text(encoding="ascii").splitlines()
FIRST = (GOLDEN / "v1.0.jsonl").read_text(encoding="ascii").splitlines()
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def test_committed_schema_is_the_rendered_one():
    """`schema.json` is the output of the table, byte for byte."""
    committed = pathlib.Path(next(iter(agent.contract.__path__))) / "schema.json"
    assert committed.read_text(encoding="ascii") == render(json_schema())


def test_schema_is_a_schema():
    """The schema itself is valid JSON Schema."""
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_golden_has_one_line_per_kind():
    """Each kind of record has one golden line that uses each of its fields."""
    by_kind = {json.loads(line)["data"]["kind"]: json.loads(line)["data"] for line in LINES}
    assert set(by_kind) == {kind.value for kind in Kind}
    assert len(LINES) == len(by_kind)
    for kind in Kind:
        own = {row.name for row in fields_of(kind) if row.kinds}
        assert own <= set(by_kind[kind.value])


@pytest.mark.parametrize("line", FIRST, ids=lambda line: json.loads(line)["data"]["kind"])
def test_golden_loads_forever(line):
    """A line written by version 1.0 is read, whatever the table has become."""
    envelope = json.loads(line)
    assert decode(line) == {"id": envelope["id"], **envelope["data"]}


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["data"]["kind"])
def test_golden_validates(line):
    """A golden line is valid under the schema, by exactly one branch."""
    VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["data"]["kind"])
def test_schema_refuses_what_the_codec_refuses(line):
    """Without a required field, or with a wrong type, a line is not valid."""
    for row in FIELDS:
        envelope = json.loads(line)
        if row.name not in envelope["data"]:
            continue
        if row.required:
            del envelope["data"][row.name]
            assert not VALIDATOR.is_valid(envelope), row.name
        envelope["data"][row.name] = {"a": 1}
        assert not VALIDATOR.is_valid(envelope), row.name


def test_every_field_is_described():
    """Field names are unique and each says what it means."""
    assert len({row.name for row in FIELDS}) == len(FIELDS)
    for row in FIELDS:
        for each in (row, *row.items):
            assert each.meaning.endswith((".", "?"))
            if each.name.endswith("_us"):
                assert each.unit == "microseconds", each.name
