#!/usr/bin/env bash
# Make a virtual environment from the hash-locked sets in deploy/locks.
#
# Needs Python 3.11 or later and nothing else; uses uv where it works, because it is faster. Every
# downloaded file is checked against its hash, build tools included: hence no build isolation.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

say() { echo "statewarden set-up: $*" >&2; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14 python}; do
    if is_new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  say "no Python 3.11 or later among: ${PYTHON:-python3, python3.11 ... python3.14}. Install one, or: make PYTHON=/path/to/python3"
  exit 1
}

has_uv() { [ -z "${NO_UV:-}" ] && uv --version >/dev/null 2>&1; }

make_venv() {
  if "$venv/bin/python" -c '' 2>/dev/null && is_new_enough "$venv/bin/python"; then
    return
  fi
  local python
  python=$(find_python)
  say "$venv with $("$python" --version)"
  if has_uv; then
    uv venv --quiet --clear --python "$(command -v "$python")" "$venv"
  elif ! "$python" -m venv --clear "$venv" >/dev/null; then
    say "$python cannot make a virtual environment: install the venv package of your distribution (python3-venv) or uv"
    exit 1
  fi
}

# install ARGUMENTS: by uv or pip, into the virtual environment.
install() {
  if has_uv; then
    uv pip install --quiet --python "$venv/bin/python" --no-build-isolation "$@"
  else
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-build-isolation "$@"
  fi
}

has_java() {
  if [ -n "${JAVA_HOME:-}" ]; then
    "$JAVA_HOME/bin/java" -version >/dev/null 2>&1
  else
    java -version >/dev/null 2>&1
  fi
}

make_venv
say "packages from deploy/locks (the first time downloads about 480 MB, nearly all of it Spark)"
install --require-hashes -r deploy/locks/build.txt
install --require-hashes -r deploy/locks/dev.txt
if ! has_java; then
  say "no Java found: adding the one from deploy/locks/java.txt"
  install --require-hashes -r deploy/locks/java.txt
fi
install --no-deps --editable .
say "done: $venv/bin/statewarden"
