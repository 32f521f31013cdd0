"""Everything that is shipped has a known licence that the policy allows, and the table agrees with the metadata."""

from __future__ import annotations

import re
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression

from tools.sbom.licences import (
    SHIPPED,
    Jar,
    Licences,
    bundled_jars,
    image_jars,
    read_licences,
    read_lock,
    spark_licences,
    version_of,
)

SITE = Path(str(files("pyspark"))).parent
TWO = Licences(frozenset({"MIT", "Apache-2.0"}), frozenset({"EPL-2.0"}), {}, {}, {})
FAMILIES = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
"""What old classifiers say, which is less than an SPDX identifier does."""


@pytest.fixture(scope="module")
def licences() -> Licences:
    return read_licences(SITE)


@pytest.fixture(scope="module")
def jars(repository: Path, licences: Licences) -> list[Jar]:
    return image_jars(repository, SITE, licences)


def shipped(repository: Path) -> dict[str, str]:
    """Name and version of every distribution that users get."""
    return {name: version_of(one) for lock in SHIPPED for name, one in read_lock(repository, lock).items()}


def test_every_distribution_has_a_licence_that_is_allowed(repository: Path, licences: Licences) -> None:
    unfit = {
        name: licences.python.get(name, "unknown")
        for name in shipped(repository)
        if not licences.allows(licences.python.get(name, "unknown"), is_jar=False)
    }
    assert unfit == {}
    assert set(licences.python) == set(shipped(repository)), "an entry that nothing needs"


def test_every_jar_has_a_licence_that_is_allowed(jars: list[Jar], licences: Licences) -> None:
    unfit = {jar.module for jar in jars if not licences.allows(licences.of_jar(jar), is_jar=True)}
    assert unfit == set()
    assert len(jars) > 300


def test_no_entry_of_the_table_is_idle(jars: list[Jar], licences: Licences) -> None:
    used = {entry for jar in jars if jar.module not in licences.of_spark for entry in (jar.module, jar.group)}
    assert set(licences.maven) - used == set()


def test_identifiers_are_of_spdx(licences: Licences) -> None:
    for expression in (
        *licences.permissive,
        *licences.jars_only,
        *licences.python.values(),
        *licences.maven.values(),
    ):
        assert canonicalize_license_expression(expression) == expression


def test_the_table_agrees_with_installed_metadata(repository: Path, licences: Licences) -> None:
    """What a release says of itself wins: a new licence of a dependency does not pass unseen."""
    compared = set()
    for name, version in shipped(repository).items():
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # of an extra; `make test-services` has them all
        if found.version == version:
            assert fits(licences.python[name], found), f"{name}: {licences.python[name]}"
            compared.add(name)
    assert {"prometheus-client", "psutil", "py4j", "pyspark", "watchdog"} <= compared


def fits(expression: str, found: Distribution) -> bool:
    """Compare a licence with the expression, text or classifier of a distribution."""
    said = next(
        (text for key in ("License-Expression", "License") for text in found.metadata.get_all(key) or ()),
        None,
    )
    if said in (expression, None, "BSD License"):
        classifiers = found.metadata.get_all("Classifier") or []
        families = [x.rpartition(" :: ")[2] for x in classifiers if x.startswith("License ::")]
        return said == expression or any(expression.startswith(FAMILIES[family]) for family in families)
    return False


@pytest.mark.parametrize(
    ("expression", "python", "jar"),
    [
        ("MIT", True, True),
        ("MIT AND Apache-2.0", True, True),
        ("MIT AND EPL-2.0", False, True),
        ("GPL-3.0-only OR MIT", True, True),
        ("(GPL-3.0-only OR EPL-2.0) AND MIT", False, True),
        ("GPL-3.0-only", False, False),
        ("AGPL-3.0-only AND MIT", False, False),
        ("unknown", False, False),
        ("", False, False),
    ],
)
def test_the_policy(expression: str, python: bool, jar: bool) -> None:
    assert TWO.allows(expression, is_jar=False) is python
    assert TWO.allows(expression, is_jar=True) is jar


def test_sections_of_sparks_licence() -> None:
    text = (
        "licensed under the Apache\nLicense Version 2.0:\n\norg.one:alpha\n\n"
        "MIT License\n-----------\norg.two:beta_2.13:jar\ncore/src/main.js\n\n"
        "Eclipse Public License (EPL) 2.0\n----\norg.three:gamma https://example.org/x\n"
    )
    assert spark_licences(text) == {
        "org.one:alpha": "Apache-2.0",
        "org.two:beta_2.13": "MIT",
        "org.three:gamma": "EPL-2.0",
    }


def test_a_jar_is_read_by_its_name_or_by_what_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("shims-0.23-2.3.10", "shims-2.3.10", "native-2.0.76.Final-linux-x86_64"):
        (folder / f"{name}.jar").write_bytes(b"")
    with zipfile.ZipFile(folder / "twice-1.0.jar", "w") as archive:
        archive.writestr("META-INF/maven/org.own/twice/pom.properties", "")
    modules = ("org.a:shims", "org.a:shims-0.23", "io.n:native", "org.x:twice", "org.y:twice")
    found = {(jar.module, jar.version, jar.classifier) for jar in bundled_jars(tmp_path, modules)}
    assert found == {
        ("org.a:shims-0.23", "2.3.10", ""),
        ("org.a:shims", "2.3.10", ""),
        ("io.n:native", "2.0.76.Final", "linux-x86_64"),
        ("org.own:twice", "1.0", ""),
    }


def test_a_jar_that_no_source_knows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    with zipfile.ZipFile(tmp_path / "jars" / "stranger-1.0.jar", "w") as archive:
        archive.writestr("a.class", "")
    with pytest.raises(ValueError, match=re.escape("stranger-1.0.jar")):
        bundled_jars(tmp_path, ())


def test_pinned_jars_keep_their_checksum(jars: list[Jar]) -> None:
    found = {jar.artifact: jar for jar in jars}
    assert found["kafka-clients"].module == "org.apache.kafka:kafka-clients"
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in jars)


@pytest.mark.parametrize("lock", SHIPPED)
def test_the_committed_locks_are_read(repository: Path, lock: str) -> None:
    locked = read_lock(repository, lock)
    assert {"prometheus-client", "psutil", "watchdog"} <= set(locked)
    assert all(re.fullmatch(r"[0-9.]+", version_of(one)) for one in locked.values())
