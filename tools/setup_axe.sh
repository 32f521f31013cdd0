#!/usr/bin/env bash
# Puts axe-core (npm, pinned by its checksum) where tests in Chromium find it: what a page means to a screen reader.
# Where npm is missing those tests are skipped, and CI counts a skip as a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly AXE=axe-core@4.14.1
readonly AXE_SHA256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
target=${STATEWARDEN_CACHE:-$HOME/.cache/statewarden}/axe/axe.min.js
say() { printf 'statewarden axe: %s\n' "$*" >&2; }
matches() { echo "$AXE_SHA256  $1" | sha256sum --check --status; }

if [ -f "$target" ] && matches "$target"; then
  exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
  say "no npm: tests that ask axe-core are skipped"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "$AXE" >/dev/null && tar -xzf ./*.tgz)
if ! matches "$work/package/axe.min.js"; then
  say "$AXE is not what it was when it was pinned"
  exit 1
fi
install -D -m 644 "$work/package/axe.min.js" "$target"
