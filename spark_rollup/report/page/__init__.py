"""The HTML report: one self-contained page without scripts, assets or network. Plain values in, one string out."""

from spark_rollup.report.page.data import PageData
from spark_rollup.report.page.document import render

__all__ = ["PageData", "render"]
