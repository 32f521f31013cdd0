"""What an audit takes for an output of `verify`; what it does with it: `tests/spark_rollup/verify/test_run.py`."""

from __future__ import annotations

import pytest

from spark_rollup.errors import UsageError
from spark_rollup.judging import verified
from spark_rollup.spark import outputs


def test_only_a_whole_output_of_verify_is_taken(tmp_path):
    """Not an audit's, nor one that was cut off, nor an empty directory."""
    for name, writer, is_whole in (
        ("none", None, False),
        ("audit", outputs.AUDIT, True),
        ("cut", outputs.VERIFY, False),
    ):
        (tmp_path / name).mkdir()
        if writer:
            outputs.begin(tmp_path / name, writer)
        if is_whole:
            (tmp_path / name / outputs.MARKER).touch()
        with pytest.raises(UsageError, match="is not an output of `verify`"):
            verified.check(tmp_path / name)
    outputs.begin(tmp_path / "whole", outputs.VERIFY)
    (tmp_path / "whole" / outputs.MARKER).touch()
    verified.check(tmp_path / "whole")
