#!/usr/bin/env bash
# Checks that this machine has what plays the hunt: Maven for Kafka's jars, a JDK for the application, root for PID
# namespaces. CI installs the first two where they are not there.
set -euo pipefail

say() { echo "statewarden hunt: $*" >&2; }

missing=()
command -v mvn >/dev/null || missing+=(maven)
command -v javac >/dev/null && command -v java >/dev/null || missing+=(default-jdk-headless)

if [ ${#missing[@]} -gt 0 ] && [ -n "${CI:-}" ] && command -v apt-get >/dev/null; then
  say "Debian packages ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
  missing=()
fi
if [ ${#missing[@]} -gt 0 ]; then
  say "not here: ${missing[*]}; install them"
  exit 2
fi
if [ "$(id -u)" -ne 0 ]; then
  say "run it as root: an agent in a PID namespace of its own is part of it"
  exit 2
fi
