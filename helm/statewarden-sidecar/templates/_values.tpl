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

{{- define "statewarden-sidecar.image" -}}
{{- $image := .values.image -}}
{{- $name := $image.repository -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" $image.registry $image.repository -}}{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- /* Only the larger variant of the image has the libraries of object stores and Kafka. */ -}}
{{- $tag := ternary "0.1.0-sinks" "0.1.0" (regexMatch "^(s3|s3a|gs|az|abfs|abfss|kafka)://" .values.ship.to) -}}
{{- printf "%s:%s" $name ($image.tag | default $tag) -}}
{{- end -}}
{{- end -}}

{{/* Labels that PodMonitor, NetworkPolicy and people find the pods by. */}}
{{- define "statewarden-sidecar.labels" -}}
statewarden.io/agent: "true"
{{- end -}}

{{/* Mebibytes of a quantity written with Mi or Gi. */}}
{{- define "statewarden-sidecar.mib" -}}
{{- if hasSuffix "Gi" . -}}{{- mul 1024 (trimSuffix "Gi" . | int) -}}{{- else -}}{{- trimSuffix "Mi" . | int -}}{{- end -}}
{{- end -}}
