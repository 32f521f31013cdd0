"""Bills of materials as `make sbom` writes them, each checked against the schema of CycloneDX 1.6 by its maker."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.supply, pytest.mark.timeout(600)]

AT_S = 1_700_000_000
Bills = dict[str, Any]


@pytest.fixture(scope="module")
def interpreter(repository: Path) -> Path:
    path = repository / ".venv" / "supply" / "bin" / "python"
    if not path.is_file():
        pytest.skip("no tools for bills of materials: run make check-supply")
    return path


def make(repository: Path, interpreter: Path, output: Path) -> dict[str, bytes]:
    """Make all bills, from another directory each time."""
    output.mkdir()
    site = sysconfig.get_path("purelib")
    command = [
        str(interpreter),
        str(repository / "tools" / "sbom" / "build.py"),
        "--site",
        site,
        "--output",
        str(output),
    ]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(AT_S)}
    done = subprocess.run(command, cwd=output, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in output.glob("*.json")}


@pytest.fixture(scope="module")
def made(repository: Path, interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return make(repository, interpreter, tmp_path_factory.mktemp("first") / "bills")


@pytest.fixture(scope="module")
def bills(made: dict[str, bytes]) -> Bills:
    return {name.removesuffix(".cdx.json"): json.loads(text) for name, text in made.items()}


def names(bill: Any, kind: str) -> set[str]:
    return {x["name"] for x in bill["components"] if x.get("purl", "").startswith(f"pkg:{kind}/")}


def test_the_same_checkout_gives_the_same_bytes(
    repository: Path, interpreter: Path, made: dict[str, bytes], tmp_path: Path
) -> None:
    assert make(repository, interpreter, tmp_path / "bills") == made
    for text in made.values():
        assert b"serialNumber" not in text
        assert str(repository).encode() not in text


def test_wheel_and_images_have_one_each(bills: Bills) -> None:
    agent = {"prometheus-client", "psutil", "watchdog"}
    sets = {
        "": agent,
        "-sinks": agent | {"confluent-kafka", "obstore", "typing-extensions"},
        "-verify": agent | {"confluent-kafka", "rocksdict", "xxhash"},
        "-rollup": agent | {"py4j", "pyspark"},
    }
    assert {name: names(bills[f"statewarden{name}"], "pypi") for name in sets} == sets
    # the images run on a Python that needs no typing-extensions
    for name, image in (
        ("", "-agent"),
        ("-sinks", "-agent-sinks"),
        ("-verify", "-agent-verify"),
        ("-rollup", "-rollup"),
    ):
        assert names(bills[f"image{image}"], "pypi") == sets[name] - {"typing-extensions"}
    assert len(bills) == 2 * len(sets)


def test_everything_has_a_licence_and_python_its_hashes(bills: Bills) -> None:
    for bill in bills.values():
        for component in bill["components"]:
            kind = component.get("purl", "").partition("/")[0]
            if kind in ("pkg:pypi", "pkg:maven"):
                assert component["licenses"], component["name"]
            if kind == "pkg:pypi":
                assert component["externalReferences"][0]["hashes"], component["name"]
            if kind == "pkg:maven":
                assert component["hashes"][0]["alg"] == "SHA-256"


def test_the_rollups_image_has_its_jars_and_its_java(bills: Bills) -> None:
    image = bills["image-rollup"]
    assert {"spark-core_2.13", "hadoop-client-api", "delta-spark_4.2_2.13", "kafka-clients", "s3"} <= names(
        image, "maven"
    )
    assert "openjdk-17-jre-headless" in names(image, "deb")
    assert names(bills["image-agent"], "maven") == set()


def test_an_image_admits_that_its_list_is_not_complete(bills: Bills) -> None:
    image = bills["image-agent"]
    root = image["metadata"]["component"]
    assert (root["type"], root["name"]) == ("container", "statewarden-agent")
    assert image["compositions"] == [{"aggregate": "incomplete", "assemblies": [root["bom-ref"]]}]
    base = [x for x in image["components"] if x["type"] == "container"]
    assert [(x["name"], x["version"]) for x in base] == [("python", "3.13-slim-bookworm")]
