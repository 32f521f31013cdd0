#!/usr/bin/env bash
# Hold the committed boards against Grafana's own types (npm package @grafana/schema). Needs node and npm; about 10 s.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# JSON writes enums as their strings, and a Prometheus annotation carries its expression itself.
cat >"$work/board.ts" <<'TS'
import type { AnnotationQuery, Dashboard } from "@grafana/schema";
type Json<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type Annotation = Json<AnnotationQuery> & { expr: string };
export type Board = Omit<Json<Dashboard>, "annotations"> & { annotations: { list: Annotation[] } };
TS
for board in deploy/dashboards/*.json; do
  {
    echo 'import type { Board } from "./board";'
    echo 'export const board: Board ='
    cat "$board"
  } >"$work/$(basename "$board" .json).ts"
done
cd "$work"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund @grafana/schema@13.2.3 typescript@7.0.2
npx tsc --noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler ./*.ts
echo "$(ls ./statewarden-*.ts | wc -l) boards agree with @grafana/schema"
