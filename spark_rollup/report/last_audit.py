"""`restarts.json`: what an audit knows about restarts, kept in one file that is answered from without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from agent.contract.exit_codes import Exit
from spark_rollup import __version__
from spark_rollup.errors import UnreadError, UsageError
from spark_rollup.report.restart_answer import Known, Question, answer
from spark_rollup.sources.address import refuse_address
from spark_rollup.spark.outputs import MARKER, NEXT

FILE = "restarts.json"


def write(known: Known, written: str, place: Path) -> None:
    """Write the file into a directory; the success marker has the same time (`written`, RFC 3339)."""
    told = {"version": __version__, "written": written} | {
        x.name: getattr(known, x.name) for x in fields(Known)
    }
    (place / FILE).write_text(json.dumps(told, separators=(",", ":")) + "\n", encoding="ascii")


def read(output: Path) -> Known:
    """Read what the last audit wrote.

    Raises:
        UsageError: no audit has finished there, it was one of another version, or the file is not of the audit that
            wrote the rest of the output.
        UnreadError: it cannot be read.
    """
    if not output.is_dir():
        what = "is not a directory" if output.exists() else "does not exist"
        raise UsageError(f"--from {output} {what}; give the --output of an audit")
    if not (output / MARKER).is_file():
        if (output / NEXT / MARKER).is_file():
            raise UnreadError(f"--from {output}: an audit is writing its report there; retry")
        raise UsageError(f"--from {output} holds no finished audit ({MARKER} is missing)")
    try:
        marker = json.loads((output / MARKER).read_text(encoding="ascii"))
        found = json.loads((output / FILE).read_text(encoding="ascii"))
        version = found["version"]
        if version == __version__:
            _check_run(output, str(found["written"]), marker)
            known = {x.name: found[x.name] for x in fields(Known)}
            return Known(**known | {"as_of_us": int(known["as_of_us"])})
    except FileNotFoundError as error:
        raise UsageError(
            f"--from {output} holds no {FILE}: no audit of this version ({__version__}) wrote there; run one"
        ) from error
    except OSError as error:
        raise UnreadError(f"--from {output}: {FILE} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadError(f"--from {output}: {FILE} or {MARKER} is damaged; run an audit again") from error
    raise UsageError(
        f"--from {output} was written by version {version}, this is {__version__}: run an audit with this version"
    )


def _check_run(output: Path, written: str, marker: Mapping[str, object]) -> None:
    """Refuse what another audit left: one of an older version does not know this file and leaves it there.

    Raises:
        UsageError: it is not of the audit that wrote the marker.
    """
    if marker.get("written") == written:
        return
    other = (
        f"one of version {marker.get('version')}" if marker.get("version") != __version__ else "another one"
    )
    raise UsageError(
        f"--from {output}: {FILE} and the tables beside it are not of one audit ({written[:19]}Z, and {other} "
        f"up to {str(marker.get('watermark'))[:19]}Z): run an audit with this version ({__version__})"
    )


def safe_to_restart(output: Path, question: Question, given: Sequence[str] = ()) -> tuple[list[str], Exit]:
    """Answer as `gate.safe_to_restart`, from what an audit left in its `--output`.

    `given` are options that only an audit can follow: none may be. Raises `UsageError`: see `read`; or there is no such
    pod, or several of its name.
    """
    refuse_address("--from", output)
    if given:
        raise UsageError(
            f"{' and '.join(given)} with --from: the audit is over; run it with that option, or use --input"
        )
    return answer(read(output), replace(question, source=f"the audit in {output}"))
