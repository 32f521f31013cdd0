#!/usr/bin/env bash
# Adds to a virtual environment what the delivery tests need: packages from deploy/locks/delivery.txt, and a Kafka
# broker's jars (from Maven Central, run with plain java) in VENV/kafka-broker. With Go, versitygw, too.
# Spark's jars for Delta, S3 and Kafka in VENV/spark-jars.
#
#   tools/setup_delivery.sh .venv
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
say() { printf 'statewarden set-up: %s\n' "$*"; }

say "packages from deploy/locks/delivery.txt (about 100 MB)"
if command -v uv >/dev/null 2>&1 && uv --version >/dev/null 2>&1; then
  uv pip install --quiet --python "$venv/bin/python" --require-hashes -r deploy/locks/delivery.txt
else
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r deploy/locks/delivery.txt
fi

if ! compgen -G "$venv/kafka-broker/kafka_2.13-3.9.*.jar" >/dev/null; then
  if ! command -v mvn >/dev/null 2>&1 && [ -n "${CI:-}" ] && command -v apt-get >/dev/null 2>&1; then
    say "Debian package maven"
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y maven >/dev/null
  fi
  if ! command -v mvn >/dev/null 2>&1; then
    say "Maven is needed for the Kafka broker: install the package maven of your distribution"
    exit 1
  fi
  say "Kafka broker from Maven Central (56 MB)"
  # a copy, because Maven writes beside its pom
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cp tests/delivery/kafka-pom.xml "$work/pom.xml"
  (cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$work/jars")
  rm -rf "$venv/kafka-broker"
  mv "$work/jars" "$venv/kafka-broker"
fi

# What Spark needs for bronze, s3a:// and kafka://, checked against spark_rollup/spark/jars.json.
for source in delta s3a kafka; do
  "$venv/bin/statewarden-rollup" jars "$source" --jars "$venv/spark-jars/$source" >/dev/null
done

# A second S3 service, of another make; its tests are skipped where there is no Go.
if ! [ -x "$venv/bin/versitygw" ] && command -v go >/dev/null 2>&1; then
  say "versitygw through the Go module proxy (about two minutes)"
  GOBIN=$(cd "$venv/bin" && pwd) GOFLAGS=-mod=mod go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 ||
    say "versitygw could not be built; only moto is tested"
fi
say "done"
