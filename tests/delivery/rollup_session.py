"""Runs commands of the rollup in one Spark session that has the jars of every source, one per line of standard input.

Input: JSON `{"arguments": [...], "hadoop": {...}, "claim": {...}}`: settings of the file systems and times of the
claim, for this command only.
Output: JSON `{"code": exit code, "out": text, "err": text}`. It saves the start of a Java for each command.
Standard output belongs to the answers alone: the Java below writes warnings there, so it is given standard error.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from spark_rollup import cli
from spark_rollup.intake import claim
from spark_rollup.spark import jars, session


def serve(folders: list[str]) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    files = [jar for folder in folders for jar in jars.jars_in(Path(folder))]
    spark: Any = session.build_session(0, master="local[2]", jars=files, delta=True)
    hadoop = spark._jsc.hadoopConfiguration()
    for line in sys.stdin:
        order = json.loads(line)
        before = {key: hadoop.get(key) for key in order["hadoop"]}
        for key, value in order["hadoop"].items():
            hadoop.set(key, value)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), patch.multiple(claim, POLL_S=0.05, **order["claim"]):
            code = cli.main(order["arguments"])
        spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        for key, value in before.items():
            hadoop.unset(key) if value is None else hadoop.set(key, value)
        answers.write(json.dumps({"code": code, "out": out.getvalue(), "err": err.getvalue()}) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1:])
