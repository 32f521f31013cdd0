"""Options of a run: parsing and the checks that come before Spark."""

from __future__ import annotations

import pytest

from spark_rollup.config import Override, check_directories, parse_as_of, parse_conf, parse_overrides
from spark_rollup.errors import UsageError


@pytest.mark.parametrize(
    "text", ["2026-11-20T14:00:00Z", "2026-11-20T14:00:00", "2026-11-20T15:00:00+01:00", "2026-11-20 14:00"]
)
def test_a_time_without_zone_is_utc(text):
    """Every spelling of the same instant gives the same microseconds."""
    assert parse_as_of(text) == 1_795_183_200_000_000


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "1795183200"])
def test_what_is_no_time_is_refused(text):
    """The message shows what was given and an example."""
    with pytest.raises(UsageError, match="ISO 8601"):
        parse_as_of(text)


def test_spark_settings_are_passed_on():
    """The last one for a key wins; values may hold an equals sign; a value is never shown in an error."""
    assert parse_conf(["spark.a=1", "spark.a=2=3"]) == {"spark.a": "2=3"}
    for text in ("spark.a", "fs.s3a.secret.key=hunter2"):
        with pytest.raises(UsageError, match=r"is not spark\.KEY=VALUE") as caught:
            parse_conf([text])
        assert "hunter2" not in str(caught.value)


def test_overrides_name_an_application_or_all():
    """`KEY=VALUE` is for all, `ID:KEY=VALUE` for one; the last one for a key wins; ids may hold colons."""
    given = ["num_standby_replicas=1", "num_standby_replicas=2", "a:b:kafka_streams_version=2.2.1"]
    assert parse_overrides(given) == (
        Override(None, "num_standby_replicas", "2"),
        Override("a:b", "kafka_streams_version", "2.2.1"),
    )


def test_every_problem_is_listed():
    """One error names all bad settings."""
    with pytest.raises(UsageError) as caught:
        parse_overrides(["nonsense", "colour=red", "num_standby_replicas=-1", "processing_guarantee=maybe"])
    message = str(caught.value)
    for part in ("'nonsense' is not KEY=VALUE", "unknown setting 'colour'", "whole number", "must be one of"):
        assert part in message


def test_a_missing_input_is_refused(tmp_path):
    """The message names the directory."""
    with pytest.raises(UsageError, match="absent does not exist"):
        check_directories(tmp_path / "absent", tmp_path / "out")


def test_an_input_without_segments_is_refused(tmp_path):
    """A directory with other files is not an input, and hidden files do not count."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "readme.txt").write_text("hello")
    (tmp_path / "in" / ".part.jsonl").write_text("{}")
    with pytest.raises(UsageError, match="holds no"):
        check_directories(tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize(("source", "target"), [("in", "in"), ("in", "in/out"), ("in/deep", "in")])
def test_input_and_output_must_be_apart(tmp_path, source, target):
    """An output below the input would be read as input by the next run."""
    (tmp_path / source).mkdir(parents=True)
    (tmp_path / source / "a.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="inside each other"):
        check_directories(tmp_path / source, tmp_path / target)


def test_a_proper_pair_passes(tmp_path):
    """Segments in one place, a new directory in another."""
    (tmp_path / "in" / "pod").mkdir(parents=True)
    (tmp_path / "in" / "pod" / "boot-1-2.jsonl.gz").write_bytes(b"")
    check_directories(tmp_path / "in", tmp_path / "out")
