"""What is chosen for Spark by the size of the input, without starting it."""

from __future__ import annotations

import os
import shutil
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from spark_rollup.errors import UsageError
from spark_rollup.spark import java, session
from spark_rollup.spark.session import (
    QUIET_JVM,
    SMALL_INPUT_BYTES,
    TINY_INPUT_BYTES,
    check_spark_home,
    sql_settings,
)

PARTITIONS = "spark.sql.shuffle.partitions"
ADAPTIVE = "spark.sql.adaptive.enabled"


@pytest.mark.parametrize(
    ("size", "partitions", "adaptive"),
    [
        (TINY_INPUT_BYTES - 1, "1", "false"),
        (TINY_INPUT_BYTES, "2", "false"),
        (SMALL_INPUT_BYTES - 1, "2", "false"),
        (SMALL_INPUT_BYTES, "16", None),
        (1 << 30, "32", None),
        (1 << 40, "200", None),
        (None, "200", None),
    ],
)
def test_settings_by_size(size, partitions, adaptive):
    """No planning that costs more than it saves; of large inputs and unknown ones it is Spark's. A wish wins."""
    found = sql_settings(size)
    assert (found[PARTITIONS], found.get(ADAPTIVE)) == (partitions, adaptive)
    assert (len(found) == 1) == (adaptive is None)
    assert sql_settings(size, 7)[PARTITIONS] == "7"


class Conf(dict[str, str]):
    """Settings of a session that was started."""

    set = dict.__setitem__

    def unset(self, key):
        """Go back to Spark's own value."""
        self.pop(key, None)


def started(conf: Conf) -> Any:
    """Give a session with these settings."""
    return SimpleNamespace(conf=conf)


@pytest.mark.parametrize("before", [0, None])
@pytest.mark.parametrize("size", [0, TINY_INPUT_BYTES, SMALL_INPUT_BYTES])
def test_a_session_is_fitted_as_if_the_size_had_been_known(before, size):
    """Whatever was chosen before; nothing of a small input's settings stays for a large one."""
    conf = Conf(sql_settings(before))
    session.fit(started(conf), size, {})
    assert conf == sql_settings(size)


def test_what_was_given_is_not_fitted():
    """Neither changed nor taken back."""
    conf = Conf({PARTITIONS: "7", ADAPTIVE: "false"})
    session.fit(started(conf), SMALL_INPUT_BYTES, dict(conf))
    assert conf == {PARTITIONS: "7", ADAPTIVE: "false"}


@pytest.mark.parametrize(
    ("core", "said"),
    [
        (
            "spark-core_2.12-3.5.1.jar",
            r"SPARK_HOME points to .*, which is Spark 3\.5\.1, and this is pyspark 4\.3\.0",
        ),
        ("spark-core_2.13-4.3.1.jar", "which has no bin/spark-submit"),
        ("other.jar", "where no Spark is"),
    ],
)
def test_another_spark_s_home_is_refused(tmp_path, core, said):
    """Before a script of that Spark is started with our jars."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / core).touch()
    with pytest.raises(UsageError, match=said):
        check_spark_home({"SPARK_HOME": str(tmp_path)}, "4.3.0")


def test_no_home_and_the_right_one_are_fine(tmp_path):
    """A patch release does not matter."""
    check_spark_home({}, "4.3.0")
    for name in ("jars/spark-core_2.13-4.3.1.jar", "bin/spark-submit"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    check_spark_home({"SPARK_HOME": str(tmp_path)}, "4.3.0")


@pytest.mark.parametrize(
    ("given", "master", "address"),
    [
        ({}, "local[*]", "127.0.0.1"),
        ({}, "spark://one:7077", None),
        ({"SPARK_LOCAL_IP": "10.0.0.7"}, "local[2]", "10.0.0.7"),
        ({"SPARK_LOCAL_HOSTNAME": "one"}, "local[2]", None),
    ],
)
def test_a_spark_of_one_machine_looks_up_no_host_name(given, master, address):
    """A container's own name is often known to nobody: Spark would end before its first line."""
    environment = dict(given)
    session.stay_local(environment, master)
    assert environment.get("SPARK_LOCAL_IP") == address


def test_no_setting_hides_a_file_that_cannot_be_read():
    """Of the whole session, that is; the reader of segments has its own."""
    assert not any("ignore" in key for key in session._ALWAYS)


def test_what_java_itself_has_to_say_is_not_on_standard_output():
    """Neither what it prints nor what it logs: `--json` must stay JSON."""
    program = str(java.find_java(os.environ, shutil.which, java.packaged_home))

    def said(*options: str) -> str:
        talkative = [program, *options, "-XX:+PrintCodeCache", "-XX:+UseLargePages", "-version"]
        return subprocess.run(talkative, capture_output=True, text=True, check=True, timeout=240).stdout

    assert "Code" in said()
    assert said(*QUIET_JVM.split()) == ""
