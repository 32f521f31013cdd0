"""The programs of others that pages name: each command checked as far as that is cheap."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.docs import scripts
from tests.docs.pages import ROOT
from tests.docs.shell import commands
from tests.docs.table import table

CHARTS = ROOT / "helm"
SERVER = ROOT / "agent" / "publish" / "http.py"
GREP_IS_BROKEN = 2
NEEDS_A_CHART = ("install", "upgrade", "package", "show")


def check(words: Sequence[str]) -> str:
    """Check a command of another program.

    Returns:
        What is wrong; empty = nothing.
    """
    program, *rest = words
    if program in CHECKS:
        return CHECKS[program](rest)
    if program in table()["tools"]:
        return by_table(program, rest)
    return f"nothing is known of {program!r}: see tests/docs/table.toml"


def is_known(program: str) -> bool:
    """Return whether a word is the name of a program that can be checked."""
    return program in CHECKS or program in table()["tools"]


def by_table(program: str, words: Sequence[str]) -> str:
    """Compare sub-command and options with the table."""
    known: Mapping[str, Any] = table()["tools"][program]
    options = set(known.get("options", ()))
    if "verbs" in known:
        verb = next((word for word in words if word in known["verbs"]), None)
        if verb is None:
            return f"{program}: none of {', '.join(known['verbs'])} in {' '.join(words)}"
        options |= set(known["verbs"][verb])
    wrong = [word for word in words if word.startswith("-") and option_of(word) not in options]
    return f"{program} has no {', '.join(wrong)}" if wrong else ""


def option_of(word: str) -> str:
    """Give the name of an option without its value."""
    return word.partition("=")[0]


def after(words: Sequence[str], *options: str) -> list[str]:
    """List the values that options are given."""
    joined = [word.partition("=")[2] for word in words if option_of(word) in options and "=" in word]
    return joined + [value for option, value in pairwise(words) if option in options]


# -- make -----------------------------------------------------------------------------------------------


def check_make(words: Sequence[str]) -> str:
    """Let make say what it would start, and check that with the parser of the script that it starts."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    unused = [name for name in given if not re.search(rf"\$[({{](?:if \$\()?{name}\b", makefile())]
    if unused:
        return f"the Makefile has no variable {', '.join(unused)}"
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile(), re.MULTILINE))
    if unknown := [word for word in words if "=" not in word and word not in targets]:
        return f"the Makefile has no target {', '.join(unknown)}"
    done = would_do(tuple(words))
    if done.returncode:
        return done.stderr.strip()
    without = would_do(tuple(word for word in words if "=" not in word)).stdout.splitlines()
    started = [line for line in done.stdout.splitlines() if line not in without]
    if given and not started:
        return f"make {' '.join(words)} passes nothing on"
    return next(filter(None, (_started(line) for line in started)), "")


@cache
def would_do(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Let make say what it would do; what another make, that of the tests, handed down is none of its settings."""
    settable = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", *re.findall(r"^(\w+) \?=", makefile(), re.MULTILINE))
    environment = {name: value for name, value in os.environ.items() if name not in settable}
    command = ["make", "--dry-run", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@cache
def makefile() -> str:
    """Read the Makefile."""
    return (ROOT / "Makefile").read_text("utf-8")


def _started(line: str) -> str:
    for command in commands(line):
        program = Path(command.words[0]).name
        if program == "python":
            return scripts.check(command.words[1:])
    return f"make starts no script: {line}"


# -- Helm, Kubernetes, containers -----------------------------------------------------------------------


def check_helm(words: Sequence[str]) -> str:
    """Check options, the paths of charts and the values that `--set` names."""
    if wrong := by_table("helm", words):
        return wrong
    given = after(words, "--destination", "--values", "--set", "--namespace")
    places = [word for word in words if "/" in word and not word.startswith("-") and word not in given]
    charts = [(place, chart_of(place)) for place in places]
    if missing := [place for place, chart in charts if not (chart / "Chart.yaml").is_file()]:
        return f"no chart is in {', '.join(missing)}"
    if words[0] in NEEDS_A_CHART and len(words) > 1 and not charts:
        return f"helm {words[0]} of no chart"
    names = [value.partition("=")[0] for value in after(words, "--set")]
    schemas = [json.loads((chart / "values.schema.json").read_text("utf-8")) for _, chart in charts if names]
    return next(
        (f"no value {name}" for name in names for schema in schemas if not has_value(schema, name)), ""
    )


def chart_of(place: str) -> Path:
    """Give the directory of a chart, also of a packaged one (`dist/NAME-VERSION.tgz`)."""
    packaged = re.fullmatch(r"\S+/([a-z-]+)-(?:VERSION|[\d.]+)\.tgz", place)
    return CHARTS / packaged[1] if packaged else ROOT / place


def has_value(schema: Mapping[str, Any], name: str) -> bool:
    """Return whether a chart's schema knows a value, by its dotted path."""
    place: Any = schema
    for part in name.split("."):
        while "$ref" in place:
            inner: Any = schema
            for step in place["$ref"].removeprefix("#/").split("/"):
                inner = inner[step]
            place = inner
        if part not in place.get("properties", {}):
            return False
        place = place["properties"][part]
    return True


def check_kubectl(words: Sequence[str]) -> str:
    """Check verb and options, our containers and our port by name."""
    if wrong := by_table("kubectl", words):
        return wrong
    named = {
        name
        for folder in ("deploy", "helm")
        for path in (ROOT / folder).rglob("*.yaml")
        for name in re.findall(r"^\s*- name: (\S+)$", path.read_text("utf-8"), re.MULTILINE)
    }
    strangers = [name for name in after(words, "-c", "--container") if name not in named]
    if strangers:
        return f"no manifest of ours has a container {', '.join(strangers)}"
    if "port-forward" in words and words[-1] != "9464":
        return f"the agent serves on 9464, not on {words[-1]}"
    return ""


def check_docker(words: Sequence[str]) -> str:
    """Check that the file is there and takes the build arguments, and that a lock has the extras."""
    if wrong := by_table("docker", words):
        return wrong
    if words[0] != "build":
        return ""
    (file,) = after(words, "-f")
    if not (ROOT / file).is_file():
        return f"there is no {file}"
    for given in after(words, "--build-arg"):
        name, _, value = given.partition("=")
        if not re.search(rf"^ARG {name}\b", (ROOT / file).read_text("utf-8"), re.MULTILINE):
            return f"{file} has no ARG {name}"
        if name == "EXTRAS" and not (ROOT / f"deploy/locks/agent{value}.txt").is_file():
            return f"there is no lock for EXTRAS={value}"
    return ""


# -- Python, Java, Spark --------------------------------------------------------------------------------


@cache
def project() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def check_install(words: Sequence[str]) -> str:
    """Check that what is installed is ours, with extras that there are, or one of our dependencies."""
    name = words[-1]
    if words[-2] == "-r":
        return "" if (ROOT / name).is_file() else f"there is no {name}"
    found = re.fullmatch(r"(?:statewarden|\.|\S+\.whl)(?:\[([\w,]+)\])?", name)
    if found is not None:
        missing = set((found[1] or "").split(",")) - {""} - set(project()["project"]["optional-dependencies"])
        return f"there is no extra {', '.join(missing)}" if missing else ""
    groups = [line for group in project()["dependency-groups"].values() for line in group]
    return "" if any(re.match(rf"{re.escape(name)}\b", line) for line in groups) else f"what is {name}?"


def check_spark_submit(words: Sequence[str]) -> str:
    """Check Spark's options, and the rollup's behind the script."""
    from tests.docs import ours  # it takes the agent and the rollup along

    script = next((number for number, word in enumerate(words) if word.endswith("rollup.py")), None)
    if script is None:
        return "no rollup.py is submitted"
    if wrong := by_table("spark-submit", words[:script]):
        return wrong
    return ours.check(["statewarden-rollup", *words[script + 1 :]], in_a_sentence=False)


def check_java(words: Sequence[str]) -> str:
    """Check that the class is one of our reproductions."""
    name = words[words.index("-cp") + 2]
    return "" if (ROOT / f"tests/lab/repro/{name}.java").is_file() else f"there is no {name}.java"


# -- small ones -----------------------------------------------------------------------------------------


def check_curl(words: Sequence[str]) -> str:
    """Check that the agent serves the path."""
    return check_address(words[-1])


def check_address(address: str) -> str:
    """Check that the agent serves this address's path."""
    path = "/" + address.partition("://")[2].partition("/")[2]
    return "" if path in re.findall(r'"(/\w*)"', SERVER.read_text("utf-8")) else f"no {path} is served"


def check_grep(words: Sequence[str]) -> str:
    """Let grep read the pattern."""
    patterns = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word in ("-E", "-i", "-iE", "-Ei", "-rhE", "-h")]
    if words and words[0] == "-A":
        patterns = patterns[1:]
    done = subprocess.run(
        ["grep", *options, "-e", patterns[0], os.devnull], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode >= GREP_IS_BROKEN else ""


def check_sed(words: Sequence[str]) -> str:
    """Let sed read the script, with nothing to work on."""
    script = next(word for word in words if not word.startswith("-"))
    done = subprocess.run(["sed", script], input="", capture_output=True, text=True, check=False)
    return done.stderr


CHECKS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "make": check_make,
    "helm": check_helm,
    "kubectl": check_kubectl,
    "docker": check_docker,
    "python": scripts.check,
    "pytest": lambda words: scripts.check(["-m", "pytest", *words]),
    "pip": check_install,
    "pipx": check_install,
    "uv": check_install,
    "spark-submit": check_spark_submit,
    "java": check_java,
    "curl": check_curl,
    "grep": check_grep,
    "sed": check_sed,
}
