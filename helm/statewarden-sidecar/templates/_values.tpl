{{/* What a template was called with, as YAML: {context, values}. Values default to those of the dependency. */}}
{{- define "statewarden-sidecar.values" -}}
{{- if not (and (kindIs "map" .) (hasKey . "context")) -}}
{{- fail "statewarden-sidecar: call the template with (dict \"context\" . ...)" -}}
{{- end -}}
{{- $values := .values | default (index .context.Values "statewarden-sidecar") -}}
{{- if not $values -}}
{{- fail "statewarden-sidecar: no values found. List the chart as a dependency; if it has an alias, add \"values\" .Values.ALIAS to the dict" -}}
{{- end -}}
{{- toYaml $values -}}
{{- end -}}

{{/* Where segments go; called with the values. */}}
{{- define "statewarden-sidecar.to" -}}
{{- with .objectStore -}}
{{- if .bucket -}}{{- printf "s3://%s" (list .bucket .prefix "events" | compact | join "/") -}}{{- else -}}{{- $.ship.to -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* What takes them: `object store`, `kafka`, another scheme, or empty (a directory, or nothing). */}}
{{- define "statewarden-sidecar.sink" -}}
{{- $to := include "statewarden-sidecar.to" . -}}
{{- if regexMatch "^(s3|s3a|gs|az|abfs|abfss)://" $to -}}
object store
{{- else if contains "://" $to -}}
{{- splitList "://" $to | first -}}
{{- end -}}
{{- end -}}

{{/* One place for segments, and nothing that would not be used; called with the values. */}}
{{- define "statewarden-sidecar.checkSink" -}}
{{- $store := .objectStore -}}
{{- $sink := include "statewarden-sidecar.sink" . -}}
{{- if and $store.bucket .ship.to -}}
{{- fail (printf "statewarden-sidecar: objectStore.bucket %q and ship.to %q exclude each other: segments go to one place" $store.bucket .ship.to) -}}
{{- end -}}
{{- if ne $sink "object store" -}}
{{- range $key := list "endpoint" "region" "credentialsSecret" -}}
{{- if get $store $key -}}
{{- fail (printf "statewarden-sidecar: objectStore.%s is set, but segments do not go to an object store: set objectStore.bucket, or leave objectStore.%s out" $key $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .ship.credentialsSecret (ne $sink "kafka") -}}
{{- fail (printf "statewarden-sidecar: ship.credentialsSecret %q is for Kafka only; an object store's is objectStore.credentialsSecret" .ship.credentialsSecret) -}}
{{- end -}}
{{- if and .ship.claim (not (hasPrefix "/" (include "statewarden-sidecar.to" .))) -}}
{{- fail (printf "statewarden-sidecar: ship.claim %q is mounted at ship.to, which must then be an absolute path, not %q" .ship.claim (include "statewarden-sidecar.to" .)) -}}
{{- end -}}
{{- if and (not .ship.claim) (regexMatch "^(/|file:)" (include "statewarden-sidecar.to" .)) -}}
{{- fail (printf "statewarden-sidecar: ship.to %q is a directory, and no claim is mounted there: set ship.claim" .ship.to) -}}
{{- end -}}
{{- if and (hasPrefix "http:" $store.endpoint) (not .ship.allowHttp) -}}
{{- fail (printf "statewarden-sidecar: objectStore.endpoint %s is not encrypted, and the agent would refuse it: use https, or set ship.allowHttp" $store.endpoint) -}}
{{- end -}}
{{- end -}}

{{- define "statewarden-sidecar.image" -}}
{{- $image := .values.image -}}
{{- $sink := include "statewarden-sidecar.sink" .values -}}
{{- $name := $image.repository -}}
{{- if not (or $image.registry $image.preloaded (regexMatch "^([^/]*[.:][^/]*|localhost)/" $name)) -}}
{{- fail (printf "statewarden-sidecar: image.registry is empty, and no public registry has %s: the pod would stay in ImagePullBackOff, and the application would not start. Build and push the image (docs/images.md) and set image.registry; if the nodes find it without one, set image.preloaded: true" $name) -}}
{{- end -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" $image.registry $image.repository -}}{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- /* Only the larger variant of the image has the libraries of object stores and Kafka. */ -}}
{{- $tag := ternary "0.3.0-sinks" "0.3.0" (or (eq $sink "object store") (eq $sink "kafka")) -}}
{{- printf "%s:%s" $name ($image.tag | default $tag) -}}
{{- end -}}
{{- end -}}

{{/* Release of Kafka Streams in the tag of the application's image; called with {from, image}. */}}
{{- define "statewarden-sidecar.streamsVersion" -}}
{{- $image := .image | default "" -}}
{{- if .from.label -}}
{{- fail "statewarden-sidecar: agent.streamsVersionFrom.label and .imageTag exclude each other: one place says the release" -}}
{{- end -}}
{{- if not $image -}}
{{- fail "statewarden-sidecar: agent.streamsVersionFrom.imageTag needs the application's image: use statewarden-sidecar.inject, or set facts.kafka_streams_version" -}}
{{- end -}}
{{- $name := splitList "/" (splitList "@" $image | first) | last -}}
{{- $tag := ternary (splitList ":" $name | last) "" (contains ":" $name) -}}
{{- $release := regexReplaceAll .from.imageTag (regexFind .from.imageTag $tag) "${1}" -}}
{{- if not (regexMatch "^[0-9]+\\.[0-9]+(\\.[0-9]+)?$" $release) -}}
{{- fail (printf "statewarden-sidecar: agent.streamsVersionFrom.imageTag %q finds no release such as 3.9.1 in the tag of %s; correct it, or set facts.kafka_streams_version" .from.imageTag $image) -}}
{{- end -}}
{{- $release -}}
{{- end -}}

{{/* Labels that PodMonitor, NetworkPolicy and people find the pods by. */}}
{{- define "statewarden-sidecar.labels" -}}
statewarden.io/agent: "true"
{{- end -}}

{{/* Mebibytes of a quantity written with Mi or Gi. */}}
{{- define "statewarden-sidecar.mib" -}}
{{- if hasSuffix "Gi" . -}}{{- mul 1024 (trimSuffix "Gi" . | int) -}}{{- else -}}{{- trimSuffix "Mi" . | int -}}{{- end -}}
{{- end -}}
