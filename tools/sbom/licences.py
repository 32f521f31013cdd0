"""The licence of everything that is shipped, and the policy that it has to fit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.sbom.jars import Jar, bundled_jars, pinned_jars, spark_licences

TABLE = Path(__file__).with_name("licences.toml")


@dataclass(frozen=True, slots=True)
class Policy:
    """SPDX identifiers that are allowed anywhere, and those that are allowed for a jar only."""

    permissive: frozenset[str]
    jars_only: frozenset[str]

    def allows(self, expression: str, is_jar: bool) -> bool:
        """Check an expression: of alternatives (OR) one has to fit, of parts (AND) each.

        Parentheses may hold alternatives, not parts: that is as much as the table needs.
        """
        allowed = self.permissive | self.jars_only if is_jar else self.permissive
        parts = (part.strip().removeprefix("(").removesuffix(")") for part in expression.split(" AND "))
        return all(any(one.strip() in allowed for one in part.split(" OR ")) for part in parts)


@dataclass(frozen=True, slots=True)
class Licences:
    """The table `licences.toml`, with what Spark's LICENSE adds."""

    policy: Policy
    python: Mapping[str, str]
    maven: Mapping[str, str]
    of_spark: Mapping[str, str]

    def of_jar(self, jar: Jar) -> str:
        """Give a jar's licence; empty = not known."""
        return self.of_spark.get(jar.module) or self.maven.get(jar.module) or self.maven.get(jar.group, "")

    def modules(self) -> list[str]:
        """List `group:artifact` of every jar that a source names."""
        return [*self.of_spark, *(module for module in self.maven if ":" in module)]


def read_licences(of_spark: str, table: str | None = None) -> Licences:
    """Read the table.

    Args:
        of_spark: Text of Spark's LICENSE.
        table: Text of the table; None = the committed one.
    """
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8") if table is None else table)
    policy = Policy(frozenset(rows["policy"]["permissive"]), frozenset(rows["policy"]["jars_only"]))
    return Licences(policy, rows["python"], rows["maven"], spark_licences(of_spark))


def license_of_spark(pyspark: Path) -> str:
    """Read the LICENSE of an installed pyspark, which is beside the package with its metadata."""
    file = next(pyspark.parent.glob("pyspark-*.dist-info/licenses/LICENSE"))
    return file.read_text(encoding="utf-8")


def image_jars(root: Path, pyspark: Path, release: str, licences: Licences) -> list[Jar]:
    """List all jars of the rollup's image: those inside pyspark, then those that were pinned.

    Args:
        root: The checkout.
        pyspark: An installed pyspark.
        release: The release of Spark that the lock has.
        licences: Sources of groups.
    """
    return bundled_jars(pyspark, licences.modules()) + pinned_jars(root, release)
