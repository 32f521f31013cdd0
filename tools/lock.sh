#!/usr/bin/env bash
# Write deploy/locks/*.txt. Needs uv; the locks themselves install with plain pip.
#
# Releases younger than a week are left alone (COOLDOWN_DAYS=0 takes the newest). Hashes cover every
# artefact of a release, so one lock serves every platform and Python from 3.11 on.
set -euo pipefail
cd "$(dirname "$0")/.."

newest="${EXCLUDE_NEWER:-$(date -u -d "-${COOLDOWN_DAYS:-7} days" +%Y-%m-%dT00:00:00Z)}"

lock() {
  local name=$1
  shift
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --no-strip-extras --exclude-newer "$newest" "$@" --output-file "deploy/locks/$name.txt" >/dev/null
}

lock build --group build
lock agent pyproject.toml
lock rollup --extra rollup pyproject.toml
lock java --group java
lock charts --group charts
lock supply --group supply
lock dev --extra rollup --group build --group test --group lint pyproject.toml
lock pythons --group pythons --constraint deploy/locks/dev.txt pyproject.toml
lock delivery --extra objectstore --extra kafka --extra verify --group delivery --constraint deploy/locks/dev.txt pyproject.toml
lock site --group site --constraint deploy/locks/dev.txt --constraint deploy/locks/delivery.txt
# what the agent's image with `verify` and `digest` carries, in the same versions
lock agent-verify --extra verify --constraint deploy/locks/delivery.txt pyproject.toml
# what the agent's image with sinks carries, in the versions that the delivery tests use
lock agent-sinks --extra objectstore --extra kafka --constraint deploy/locks/delivery.txt pyproject.toml

# releases of Spark beside the locked one, only for tests that run with each: the folder is not what is shipped
for release in 4.0 4.1; do
  echo "pyspark==$release.*" | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --no-annotate --exclude-newer "$newest" - --output-file "tests/packaging/spark-$release.txt" >/dev/null
done

if grep -n '://' deploy/locks/*.txt tests/packaging/*.txt; then
  echo "a lock names a host: see the lines above" >&2
  exit 1
fi
