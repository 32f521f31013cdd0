"""`deploy/example/prometheus.yaml`: Prometheus itself takes it, with every committed rule."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.packages


def test_prometheus_takes_the_example_and_every_rule(repository: Path) -> None:
    promtool = shutil.which("promtool") or pytest.skip("no promtool: apt-get install prometheus")
    done = subprocess.run(
        [promtool, "check", "config", repository / "deploy" / "example" / "prometheus.yaml"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rules = list((repository / "deploy" / "alerts").glob("*.rules.yaml"))
    assert f"{len(rules)} rule files found" in done.stdout
