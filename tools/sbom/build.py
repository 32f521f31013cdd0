"""Write the bills of materials of the wheel and the images: `make sbom`.

    python tools/sbom/build.py --site .venv/lib/python3.11/site-packages

The time in them is SOURCE_DATE_EPOCH, else that of the commit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.sbom.bill import SUBJECTS, BillError, Sources, render  # noqa: E402
from tools.sbom.licences import image_jars, license_of_spark, read_licences  # noqa: E402
from tools.sbom.locks import read_lock  # noqa: E402


def bill_time_s(environment: Mapping[str, str], root: Path) -> int:
    """Give the time that bills bear, seconds since the epoch.

    Raises:
        BillError: SOURCE_DATE_EPOCH is no number, or is not set where git cannot answer.
    """
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    try:
        given = environment.get("SOURCE_DATE_EPOCH")
        return int(given or subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise BillError("the time of the commit is not known: set SOURCE_DATE_EPOCH to seconds") from error


def read_sources(root: Path, site: Path, environment: Mapping[str, str]) -> Sources:
    """Read what all bills share.

    Args:
        root: The checkout.
        site: site-packages with the pyspark of the lock: the jars inside it are listed.
        environment: May have SOURCE_DATE_EPOCH.

    Raises:
        BillError: pyspark is not there, or in another version; or as `bill_time_s`.
    """
    release = next(one.version for one in read_lock(root, "rollup") if one.name == "pyspark")
    if not (site / f"pyspark-{release}.dist-info").is_dir():
        raise BillError(f"{site} has no pyspark {release}, which the lock names: run make setup")
    licences = read_licences(license_of_spark(site / "pyspark"))
    jars = tuple(image_jars(root, site / "pyspark", release, licences))
    return Sources(root, licences, jars, root / "build" / "images", bill_time_s(environment, root))


def main(argv: Sequence[str]) -> int:
    """Write all bills; 1 = one could not be made."""
    parser = argparse.ArgumentParser(description="Write bills of materials (CycloneDX 1.6).")
    parser.add_argument("--site", type=Path, required=True, help="site-packages that have pyspark")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build" / "sbom", help="directory (default: build/sbom)"
    )
    chosen = parser.parse_args(argv)
    # the library would like a dependency graph of Spark's jars, which no source has
    warnings.filterwarnings("ignore", category=UserWarning, module="cyclonedx")
    chosen.output.mkdir(parents=True, exist_ok=True)
    try:
        sources = read_sources(ROOT, chosen.site, os.environ)
        for subject in SUBJECTS:
            path = chosen.output / f"{subject.name}.cdx.json"
            path.write_text(render(subject, sources), encoding="utf-8")
            print(path)
    except BillError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
