"""Write the archive of Spark's classes, by an audit of next to nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyspark

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record
from spark_rollup import audit, clock
from spark_rollup.config import AuditOptions
from spark_rollup.spark import archive, session


def run() -> Path:
    """Audit one event and keep the classes that it took; returns where the archive is.

    Raises:
        UsageError: Java wrote none.
    """
    target = archive.place(os.environ, pyspark.__version__)
    target.parent.mkdir(parents=True, exist_ok=True)
    archive.beside(target).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="statewarden-warm-up-") as work:
        told, out = Path(work, "in"), Path(work, "out")
        told.mkdir()
        line = Encoder(Origin("u", "b", "pod")).encode(
            Record(Kind.LIFECYCLE, clock.now_us(), {"phase": "started"}), 1
        )
        (told / "one.jsonl").write_text(f"{line}\n")
        spark = session.build_session(0, archived=False)
        audit.run(spark, AuditOptions(told, out))
        archive.finish(spark, target)
    return target
