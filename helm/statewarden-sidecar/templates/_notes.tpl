{{/*
What to do next, and what is not as good as it could be, as text for the NOTES.txt of the application's chart.

Called like statewarden-sidecar.inject: (dict "context" . "workload" (include "my.statefulset" .) ["values" ...]).
*/}}
{{- define "statewarden-sidecar.notes" -}}
{{- $v := include "statewarden-sidecar.values" . | fromYaml -}}
{{- if $v.enabled -}}
{{- $workload := fromYaml .workload -}}
{{- $name := dig "metadata" "name" "POD" $workload -}}
{{- $pod := ternary (printf "%s-0" $name) "POD" (eq $workload.kind "StatefulSet") -}}
{{- $n := .context.Release.Namespace -}}
statewarden runs beside {{ $workload.kind }} {{ $name }}. Next:

  1. What it sees (then http://localhost:{{ int $v.agent.port }}/):
     kubectl --namespace {{ $n }} port-forward {{ $pod }} {{ int $v.agent.port }}
  2. Is it in the right place?
     kubectl --namespace {{ $n }} exec {{ $pod }} -c statewarden -- statewarden preflight
{{- $warnings := list }}
{{- $given := list $v.facts }}
{{- range $_, $facts := $v.applications }}{{ $given = append $given $facts }}{{ end }}
{{- $known := dict }}
{{- range $given }}{{ $known = merge $known . }}{{ end }}
{{- $missing := list }}
{{- range $fact := list "processing_guarantee" "kafka_streams_version" "num_standby_replicas" }}
{{- $elsewhere := $v.agent.propertiesFrom.configMap }}
{{- if eq $fact "kafka_streams_version" }}{{ $elsewhere = or $v.agent.streamsVersionFrom.label $v.agent.streamsVersionFrom.imageTag }}{{ end }}
{{- if not (or (hasKey $known $fact) $elsewhere) }}{{ $missing = append $missing $fact }}{{ end }}
{{- end }}
{{- if $missing }}
{{- $warnings = append $warnings (printf "Not given: %s (facts, agent.propertiesFrom, agent.streamsVersionFrom). None of them is guessed: a verdict that one of them decides is undecided." (join ", " $missing)) }}
{{- end }}
{{- $period := dig "spec" "template" "spec" "terminationGracePeriodSeconds" nil $workload }}
{{- if not $period }}
{{- $warnings = append $warnings "terminationGracePeriodSeconds is not set, so the application is killed after 30 s. A kill leaves stores unclean, and several releases trust them at the next start (KAFKA-20685): give it longer than its longest close in the log." }}
{{- end }}
{{- if not (include "statewarden-sidecar.to" $v) }}
{{- $warnings = append $warnings "Nothing says where events go (objectStore.bucket, ship.to): there is no audit over several pods." }}
{{- end }}
{{- if not $v.image.digest }}
{{- $warnings = append $warnings "The image is named by tag: image.digest would make sure that it stays the same." }}
{{- end }}
{{- with $warnings }}

Warnings:
{{- range . }}
  - {{ . }}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}
