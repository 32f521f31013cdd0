"""What the image recipes promise, read off their text: no daemon, no container is needed for this."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent.config import AgentSettings
from agent.preflight import telling
from deploy.images import bare, compile_used, slim

IMAGES = ("agent", "rollup")
EXTRAS = ("", "-sinks", "-verify")
MISPLACED = ("ADD", "MAINTAINER", "VOLUME")


def instructions(repository: Path, image: str) -> list[tuple[str, str]]:
    """Read a recipe: instruction and arguments, continued lines joined, comments left out."""
    text = (repository / "deploy" / "images" / f"{image}.Containerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", lines)
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def final_stage(repository: Path, image: str) -> list[tuple[str, str]]:
    """Give the instructions after the last FROM."""
    found = instructions(repository, image)
    last = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    return found[last + 1 :]


@pytest.mark.parametrize("image", IMAGES)
def test_the_final_stage_runs_as_a_numeric_user_without_a_shell(repository: Path, image: str) -> None:
    """`runAsNonRoot` can be checked for a number only; a shell in between would swallow SIGTERM."""
    stage = dict(final_stage(repository, image))
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", stage["USER"])
    assert json.loads(stage["ENTRYPOINT"])[0].startswith("/opt/statewarden/bin/")
    assert isinstance(json.loads(stage["CMD"]), list)
    assert stage["STOPSIGNAL"] == "SIGTERM"
    assert not [word for word, _ in instructions(repository, image) if word in MISPLACED]


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_installed_is_hash_locked(repository: Path, image: str) -> None:
    """Every install from an index is from a lock, and the final stage installs nothing of Python's."""
    for word, arguments in instructions(repository, image):
        for command in arguments.split("&&") if word == "RUN" else ():
            if " install " in command and "pip" in command:
                assert "--require-hashes" in command or "--no-deps" in command, command
    assert not any("-m pip" in arguments for _, arguments in final_stage(repository, image))


@pytest.mark.parametrize("image", IMAGES)
def test_recipe_and_helpers_agree(repository: Path, image: str) -> None:
    """What a recipe copies is there and gets past `.dockerignore`; both helpers know the image."""
    ignored = (repository / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    for word, arguments in instructions(repository, image):
        if word == "COPY" and not arguments.startswith("--from"):
            for source in arguments.split()[:-1]:
                for extras in EXTRAS:
                    assert (repository / source.replace("${EXTRAS}", extras)).exists(), source
                assert any(source == one or source.startswith(f"{one}/") for one in allowed), source
    assert image in compile_used.ROOTS
    assert image in slim.UNUSED
    assert image in bare.KEPT
    assert image in bare.PROGRAMS


@pytest.mark.parametrize("image", IMAGES)
def test_the_build_sees_all_that_the_wheel_is_made_of(repository: Path, image: str) -> None:
    """Every file that pyproject.toml names for the wheel is copied into the stage that builds it."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    hooks = project["tool"]["hatch"]["build"].get("hooks", {}).values()
    named = [
        *wheel["packages"],
        *wheel["force-include"],
        *(hook["path"] for hook in hooks),
        project["project"]["readme"],
    ]
    copied = [
        source
        for word, arguments in instructions(repository, image)
        if word == "COPY" and not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    ]
    assert set(named) <= set(copied)


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_what_is_left_of_a_stripped_root(repository: Path, image: str) -> None:
    """Nothing of the base is below it: what was taken out cannot be had back from a lower layer."""
    found = instructions(repository, image)
    assert [arguments.split()[0] for word, arguments in found if word == "FROM"][-1] == "scratch"
    stage = final_stage(repository, image)
    assert [arguments for word, arguments in stage if word in ("COPY", "RUN", "ADD")] == ["--from=root / /"]
    strip = [arguments for word, arguments in found if word == "RUN"][-1]
    assert strip.endswith(f"/tmp/bare.py {image}")


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_says_what_it_is(repository: Path, image: str) -> None:
    """The annotations of OCI that a registry shows, the base's name among them: is it pinned by digest?"""
    labels = dict(
        re.findall(
            r"org\.opencontainers\.image\.([\w.]+)=\"([^\"]+)\"",
            dict(final_stage(repository, image))["LABEL"],
        )
    )
    assert labels["licenses"] == "Apache-2.0"
    assert labels["title"] == f"statewarden-{image}"
    arguments = {name.partition("=")[0] for word, name in final_stage(repository, image) if word == "ARG"}
    given = {"version": "VERSION", "revision": "REVISION", "source": "SOURCE", "base.name": "BASE"}
    assert {name: f"${{{argument}}}" for name, argument in given.items()}.items() <= labels.items()
    assert set(given.values()) <= arguments


def test_the_image_sets_what_preflight_sends_people_to(repository: Path) -> None:
    """Names of variables in the recipe are settings of the agent, and those that preflight names."""
    variables = re.findall(r"STATEWARDEN_([A-Z_]+)=", dict(final_stage(repository, "agent"))["ENV"])
    assert {"STATE_DIR", "SPOOL"} <= set(variables)
    assert all(hasattr(AgentSettings(), name.lower()) for name in variables)
    assert "STATEWARDEN_STATE_DIR" in telling.STATE_DIR_ENV
    assert "STATEWARDEN_SPOOL" in telling.SPOOL_ENV


def test_used_modules_are_compiled(tmp_path: Path) -> None:
    """The helper leaves byte code beside what was loaded that is valid without a look at its source."""
    package = tmp_path / "agent"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "module.py").write_text("import colorsys\n")
    program = (
        "import sys, compile_used as c; c.ROOTS = {'agent': ('agent',)}; c.load('agent'); c.compile_loaded()"
    )
    here = Path(compile_used.__file__).parent
    environment = {"PYTHONPATH": f"{tmp_path}:{here}", "PYTHONPYCACHEPREFIX": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=tmp_path, check=True, timeout=240)
    compiled = {path.name.partition(".")[0]: path for path in (tmp_path / "cache").rglob("*.pyc")}
    assert {"module", "colorsys", "__init__"} <= set(compiled)
    assert compiled["module"].read_bytes()[4:8] == (1).to_bytes(4, "little")  # hash-based, source not checked
