#!/usr/bin/env bash
# Install the programs that some tests start, from the distribution: promtool, Prometheus, Alertmanager and
# Chromium.
# With the argument `containers`: what runs containers without a daemon, for `make check-containers`.
# Where this cannot be done (no apt-get, no rights) those tests are skipped, and CI counts a skip as a failure.
set -euo pipefail

say() { echo "statewarden packages: $*" >&2; }

missing=()
if [ "${1:-}" = containers ]; then
  for tool in podman buildah runc catatonit debootstrap; do
    command -v "$tool" >/dev/null || [ -x "/usr/libexec/podman/$tool" ] || missing+=("$tool")
  done
else
command -v jq >/dev/null || missing+=(jq)
command -v promtool >/dev/null && command -v prometheus >/dev/null || missing+=(prometheus)
command -v prometheus-alertmanager >/dev/null && command -v amtool >/dev/null || missing+=(prometheus-alertmanager)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || missing+=(chromium)
fi

if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  say "not here: ${missing[*]}. Tests that need them are skipped; install them with apt-get as root"
  exit 0
fi
say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install --yes --no-install-recommends "${missing[@]}" >"$log" 2>&1; }
if ! install && ! { apt-get update >"$log" 2>&1 && install; }; then
  tail -n 5 "$log" >&2
  say "could not install ${missing[*]}: tests that need them are skipped"
fi
