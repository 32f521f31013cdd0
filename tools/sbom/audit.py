"""Ask for advisories about every distribution in deploy/locks: `make audit-locks`. Needs the dependency group `supply`.

`pip-audit` asks PyPI or OSV. It takes a distribution that the service does not know for one without advisories, so a
mirror without advisories would pass everything; here every distribution must have been answered for.

Exit code: 0 = nothing but what `accepted.toml` lists; 1 = an advisory, or an entry there that is out of date or not
needed; 2 = the service could not be asked about everything.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.sbom.locks import FOLDER, parse_lock  # noqa: E402

ACCEPTED = Path(__file__).with_name("accepted.toml")
SERVICES = ("pypi", "osv")
TIMEOUT_S = 1800
"""Longest run of `pip-audit`, seconds."""

Pins = dict[tuple[str, str], list[str]]
"""Name and version -> the locks that have it."""


class NoAnswerError(Exception):
    """The service could not be asked, or did not know what it was asked about."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One advisory that is accepted for one distribution until a date."""

    id: str
    name: str
    reason: str
    until: date


@dataclass
class Verdict:
    """What the audit found, as lines to print."""

    found: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 = nothing that is not accepted."""
        return int(bool(self.found))


def all_pins(folder: Path) -> Pins:
    """Read every lock, for whatever platform an entry is."""
    pins: Pins = {}
    for path in sorted(folder.glob("*.txt")):
        for one in parse_lock(path.read_text(encoding="utf-8")):
            pins.setdefault((one.name, one.version), []).append(path.stem)
    return pins


def batches(pins: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write lists for `pip-audit`, each name once per list: locks may differ in the version."""
    left = sorted(pins)
    while left:
        batch = dict(reversed(left))  # of each name the first version that is left
        yield "".join(f"{name}=={version}\n" for name, version in sorted(batch.items()))
        left = [(name, version) for name, version in left if batch[name] != version]


def read_accepted(text: str) -> list[Accepted]:
    """Read `accepted.toml`.

    Raises:
        TypeError: An entry lacks a field, or has one too many.
    """
    return [Accepted(**row) for row in tomllib.loads(text).get("accepted", [])]


def judge(
    answers: Sequence[Mapping[str, Any]], pins: Pins, accepted: Sequence[Accepted], today: date
) -> Verdict:
    """Compare what the service answered with what is accepted.

    Args:
        answers: `dependencies` of `pip-audit`'s reports.
        pins: What was asked.
        accepted: Entries of `accepted.toml`.
        today: The day that entries are compared with.

    Raises:
        NoAnswerError: Something was skipped or is not in the answers.
    """
    known = {(one["name"], one["version"]): one["vulns"] for one in answers if "skip_reason" not in one}
    if silent := sorted(f"{name} {version}" for name, version in set(pins) - set(known)):
        raise NoAnswerError(f"no answer about {len(silent)} of {len(pins)}: {', '.join(silent[:5])}, ...")
    verdict = Verdict()
    used = set()
    for (name, version), advisories in sorted(known.items()):
        for advisory in advisories:
            ids = {advisory["id"], *advisory.get("aliases", ())}
            entry = next((x for x in accepted if x.name == name and x.id in ids), None)
            fixed = ", ".join(advisory.get("fix_versions", ())) or "no release yet"
            line = f"{name} {version} ({', '.join(pins[name, version])}): {', '.join(sorted(ids))}; fixed in: {fixed}"
            if entry is None or entry.until < today:
                verdict.found.append(line + (f"; was accepted until {entry.until}" if entry else ""))
            else:
                verdict.accepted.append(f"{line}; accepted until {entry.until}: {entry.reason}")
            used.add(entry)
    idle = [entry for entry in accepted if entry not in used]
    verdict.found += [f"{ACCEPTED.name}: nothing needs the entry {x.id} of {x.name}; remove it" for x in idle]
    return verdict


def ask(requirements: str, service: str) -> list[Mapping[str, Any]]:
    """Have `pip-audit` ask about one list.

    Raises:
        NoAnswerError: It gave no report.
    """
    with tempfile.TemporaryDirectory(prefix="statewarden-audit-") as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text(requirements, encoding="utf-8")
        command = [
            sys.executable, "-m", "pip_audit", "--requirement", str(listed), "--no-deps", "--disable-pip",
            "--vulnerability-service", service, "--format", "json", "--progress-spinner", "off", "--desc", "off",
            "--aliases", "on",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"pip-audit did not end within {TIMEOUT_S} s") from error
    try:
        answers: list[Mapping[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError) as error:
        why = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise NoAnswerError(f"pip-audit: {why[-1][:500]}") from error
    return answers


def main(argv: Sequence[str]) -> int:
    """Audit all locks."""
    parser = argparse.ArgumentParser(description="Ask for advisories about everything in deploy/locks.")
    parser.add_argument(
        "--service", choices=SERVICES, default="pypi", help="who is asked (default: %(default)s)"
    )
    service = parser.parse_args(argv).service
    pins = all_pins(ROOT / FOLDER)
    accepted = read_accepted(ACCEPTED.read_text(encoding="utf-8"))
    try:
        answers = [answer for batch in batches(pins) for answer in ask(batch, service)]
        verdict = judge(answers, pins, accepted, datetime.now(UTC).date())
    except NoAnswerError as error:
        print(f"audit-locks: not audited, {service} could not be asked: {error}", file=sys.stderr)
        print("It needs the internet, not only a mirror; try ARGS=--service=osv.", file=sys.stderr)
        return 2
    for line in (*verdict.accepted, *verdict.found):
        print(line)
    print(
        f"{len(pins)} distributions, {len(verdict.found)} to act on, {len(verdict.accepted)} accepted ({service})"
    )
    return verdict.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
