"""Settings of `spark-submit`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PROBE = """
from spark_rollup.spark.session import build_session
spark = build_session(0)
for key in ("shuffle.partitions", "session.timeZone", "ansi.enabled"):
    print(key, spark.conf.get("spark.sql." + key, ""))
"""


@pytest.mark.slow
def test_what_spark_submit_is_given_wins(tmp_path):
    """But for what would change findings."""
    import pyspark

    (tmp_path / "probe.py").write_text(PROBE)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = ("shuffle.partitions=77", "session.timeZone=Asia/Tokyo", "ansi.enabled=false")
    given = ["--master", "local[1]", *(word for text in settings for word in ("--conf", f"spark.sql.{text}"))]
    ran = subprocess.run(
        [submit, *given, tmp_path / "probe.py"], capture_output=True, text=True, timeout=200, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert ran.stdout.splitlines()[:3] == [
        "shuffle.partitions 77",
        "session.timeZone UTC",
        "ansi.enabled true",
    ]
