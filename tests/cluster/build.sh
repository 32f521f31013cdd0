#!/usr/bin/env bash
# Build programs that the chart and cluster tests start, in pinned versions, from Go modules, into a cache.
#
#   tests/cluster/build.sh NAME...     what is there already is left alone
#   tests/cluster/build.sh charts      what the full chart tests need (about 10 minutes cold, two cores)
#   tests/cluster/build.sh cluster     a Kubernetes control plane and kwok (about 15 minutes cold)
#
# The cache is $STATEWARDEN_CACHE or ~/.cache/statewarden; remove the folder to build again.
set -euo pipefail
cd "$(dirname "$0")"
cache=${STATEWARDEN_CACHE:-$HOME/.cache/statewarden}
bin=$cache/bin
mkdir -p "$bin"

readonly KUBERNETES=v1.36.3
readonly CHARTS="helm3 controller-gen helm4"
readonly CLUSTER="kubectl etcd kube-apiserver kube-controller-manager kube-scheduler kwok"

say() { printf 'statewarden build: %s\n' "$*" >&2; }

# installed NAME PACKAGE VERSION: by `go install`.
installed() {
  GOBIN=$work GOFLAGS=-mod=mod go install -trimpath -ldflags "-s -w" "$2@$3"
  mv "$work/$(basename "$2")" "$bin/$1"
}

# wrapped NAME FOLDER PACKAGE [LDFLAGS]: for modules with `replace`, which `go install` refuses.
wrapped() {
  (cd "$2" && CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w ${4:-}" -o "$work/$1" "$3")
  mv "$work/$1" "$bin/$1"
}

# kubernetes NAME PACKAGE: says its version, which clients compare.
kubernetes() {
  local flags="" path
  for path in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $path.gitVersion=$KUBERNETES -X $path.gitMajor=1 -X $path.gitMinor=36 -X $path.gitTreeState=clean"
  done
  wrapped "$1" kubernetes "$2" "$flags"
}

build() {
  case $1 in
    helm3) installed helm3 helm.sh/helm/v3/cmd/helm v3.22.0 ;;
    helm4) installed helm4 helm.sh/helm/v4/cmd/helm v4.3.1 ;;
    controller-gen) installed controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen v0.23.0 ;;
    kwok) installed kwok sigs.k8s.io/kwok/cmd/kwok v0.8.0 ;;
    etcd) wrapped etcd kubernetes go.etcd.io/etcd/server/v3 ;;
    kubectl | kube-apiserver | kube-controller-manager | kube-scheduler) kubernetes "$1" "k8s.io/kubernetes/cmd/$1" ;;
    *)
      say "no program '$1'; known: charts ($CHARTS), cluster ($CLUSTER)"
      exit 2
      ;;
  esac
}

command -v go >/dev/null || {
  say "Go 1.26 or later is needed to build: $*"
  exit 1
}
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
names=()
for wanted in "$@"; do
  case $wanted in
    charts) read -ra more <<<"$CHARTS" ;;
    cluster) read -ra more <<<"$CLUSTER" ;;
    *) more=("$wanted") ;;
  esac
  names+=("${more[@]}")
done
for name in "${names[@]}"; do
  if [ -x "$bin/$name" ]; then
    continue
  fi
  started=$SECONDS
  build "$name"
  say "$name in $((SECONDS - started)) s, $(($(stat -c %s "$bin/$name") / 1000000)) MB"
done
