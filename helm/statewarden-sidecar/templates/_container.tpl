{{/*
The sidecar as one entry of `initContainers` (native) or `containers` (plain).

Called with (dict "context" . ["values" ...] ["mountPath" PATH] ["subPath" PATH] ["subPathExpr" PATH] ["env" LIST] ["group" GID]
["image" IMAGE]), where `env` has what `subPathExpr` is made of.
*/}}
{{- define "statewarden-sidecar.container" -}}
{{- $v := include "statewarden-sidecar.values" . | fromYaml -}}
{{- $native := eq $v.variant "native" -}}
{{- if and $native (semverCompare "<1.29.0-0" .context.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "statewarden-sidecar: Kubernetes %s has no native sidecars (1.29 is the first); set variant: plain" .context.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if not $v.state.volume -}}
{{- fail "statewarden-sidecar: state.volume is empty; name the pod's volume that holds the application's state.dir" -}}
{{- end -}}
{{- if lt (include "statewarden-sidecar.mib" $v.spool.sizeLimit | int) (div (mul 5 (int $v.spool.capMib)) 4 | int) -}}
{{- fail (printf "statewarden-sidecar: spool.sizeLimit %s is less than 5/4 of spool.capMib %d MiB: the kubelet would evict the pod" $v.spool.sizeLimit (int $v.spool.capMib)) -}}
{{- end -}}
{{- if and $v.agent.memoryMib $v.resources.limits.memory (ge (int $v.agent.memoryMib) (include "statewarden-sidecar.mib" $v.resources.limits.memory | int)) -}}
{{- fail (printf "statewarden-sidecar: agent.memoryMib %d is not below resources.limits.memory %s: the kernel would kill the agent before it does less" (int $v.agent.memoryMib) $v.resources.limits.memory) -}}
{{- end -}}
{{- $mountPath := $v.state.mountPath | default .mountPath | default "/state" -}}
{{- $group := $v.group -}}
{{- if eq (toString $group) "" -}}{{- $group = get . "group" -}}{{- end -}}
{{- $downward := include "statewarden-sidecar.downward" . | fromYaml -}}
{{- $variables := keys $downward -}}
{{- range concat (get . "env" | default list) ($v.extraEnv | default list) -}}{{- $variables = append $variables .name -}}{{- end -}}
{{- range include "statewarden-sidecar.names" (get . "subPathExpr") | fromYamlArray -}}
{{- if not (has . $variables) -}}
{{- fail (printf "statewarden-sidecar: subPathExpr %s needs $(%s), which the sidecar does not have: give it in extraEnv" $.subPathExpr .) -}}
{{- end -}}
{{- end -}}
name: statewarden
image: {{ include "statewarden-sidecar.image" (dict "values" $v) }}
imagePullPolicy: {{ $v.image.pullPolicy }}
{{- if $native }}
restartPolicy: Always
{{- end }}
args:
  - run
  {{- range $key, $value := $v.facts }}
  - --set={{ $key }}={{ include "statewarden-sidecar.fact" $value }}
  {{- end }}
  {{- range $id, $facts := $v.applications }}
  {{- range $key, $value := $facts }}
  - --set={{ $id }}:{{ $key }}={{ include "statewarden-sidecar.fact" $value }}
  {{- end }}
  {{- end }}
env:
  {{- range $name, $path := $downward }}
  - {name: {{ $name }}, valueFrom: {fieldRef: {fieldPath: {{ $path }}}}}
  {{- end }}
  {{- with get . "env" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- range $name, $value := include "statewarden-sidecar.settings" (dict "values" $v "mountPath" $mountPath) | fromYaml }}
  - {name: STATEWARDEN_{{ $name }}, value: {{ $value | quote }}}
  {{- end }}
  {{- with $v.agent.streamsVersionFrom.label }}
  - {name: STATEWARDEN_STREAMS_VERSION, valueFrom: {fieldRef: {fieldPath: "metadata.labels['{{ . }}']"}}}
  {{- end }}
  {{- if $v.agent.streamsVersionFrom.imageTag }}
  - {name: STATEWARDEN_STREAMS_VERSION, value: {{ include "statewarden-sidecar.streamsVersion" (dict "from" $v.agent.streamsVersionFrom "image" (get . "image")) | quote }}}
  {{- end }}
  {{- with $v.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - {name: statewarden, containerPort: {{ int $v.agent.port }}, protocol: TCP}
{{- if and $native $v.probes.waitForAgent }}
startupProbe:
  httpGet: {path: /readyz, port: statewarden}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: {{ int $v.probes.startupSeconds }}
{{- end }}
livenessProbe:
  httpGet: {path: /healthz, port: statewarden}
  {{- if not (and $native $v.probes.waitForAgent) }}
  initialDelaySeconds: 30
  {{- end }}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
resources:
  {{- toYaml $v.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
  {{- if ne (toString $group) "" }}
  runAsGroup: {{ int64 $group }}
  {{- end }}
  runAsNonRoot: true
  {{- if ne (toString $v.user) "" }}
  runAsUser: {{ int64 $v.user }}
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  - name: {{ $v.state.volume }}
    mountPath: {{ $mountPath }}
    {{- with .subPath }}
    subPath: {{ . }}
    {{- end }}
    {{- with .subPathExpr }}
    subPathExpr: {{ . }}
    {{- end }}
    readOnly: true
  - {name: statewarden-spool, mountPath: /var/lib/statewarden}
  {{- with $v.ship.claim }}
  - {name: statewarden-ship, mountPath: {{ $v.ship.to }}}
  {{- end }}
  {{- range $file := include "statewarden-sidecar.files" (dict "values" $v) | fromYamlArray }}
  - {name: {{ $file.volume }}, mountPath: {{ $file.mountPath }}, readOnly: true}
  {{- end }}
{{- end -}}

{{/* A fact as text; Helm reads each number as a float and would write 604800000 as 6.048e+08, which the agent refuses. */}}
{{- define "statewarden-sidecar.fact" -}}
{{- if kindIs "slice" . -}}{{- join "," . -}}{{- else if kindIs "float64" . -}}{{- int64 . -}}{{- else -}}{{- . -}}{{- end -}}
{{- end -}}

{{/* Variables that the sidecar has of its pod: name -> field. */}}
{{- define "statewarden-sidecar.downward" -}}
POD_NAME: metadata.name
POD_NAMESPACE: metadata.namespace
POD_UID: metadata.uid
NODE_NAME: spec.nodeName
{{- end -}}

{{/* Settings of the agent that become environment variables: name without prefix -> value. */}}
{{- define "statewarden-sidecar.settings" -}}
{{- $v := .values -}}
{{- $agent := $v.agent -}}
{{- include "statewarden-sidecar.checkSink" $v -}}
STATE_DIR: {{ if $v.state.directory }}{{ printf "%s/%s" .mountPath $v.state.directory | quote }}{{ else }}{{ .mountPath | quote }}{{ end }}
SPOOL: /var/lib/statewarden/spool
LISTEN: {{ printf ":%d" (int $agent.port) | quote }}
LOG_LEVEL: {{ $agent.logLevel | quote }}
WATCH_MODE: {{ $agent.watchMode | quote }}
RESCAN_SECONDS: {{ $agent.rescanSeconds | toString | quote }}
METRICS_DETAIL: {{ $agent.metricsDetail | quote }}
CPU_SHARE: {{ $agent.cpuShare | toString | quote }}
MEMORY_MIB: {{ $agent.memoryMib | toString | quote }}
GRACE_SECONDS: {{ $agent.graceSeconds | toString | quote }}
LINGER_SECONDS: {{ ternary "0" ($agent.lingerSeconds | toString) (eq $v.variant "native") | quote }}
SHIP_CAP_MIB: {{ $v.spool.capMib | toString | quote }}
SHIP_SEAL_SECONDS: {{ $v.ship.sealSeconds | toString | quote }}
{{- with $agent.runbooks }}
RUNBOOKS: {{ . | quote }}
{{- end }}
{{- with ($v.detectors | default dict).disabled }}
{{- $rows := list }}
{{- range $id, $reason := . }}{{ $rows = append $rows (printf "%s=%s" $id $reason) }}{{ end }}
DETECTORS_DISABLED: {{ join "; " $rows | quote }}
{{- end }}
{{- with include "statewarden-sidecar.to" $v }}
SHIP_TO: {{ . | quote }}
{{- end }}
{{- with $v.objectStore.endpoint }}
SHIP_ENDPOINT: {{ . | quote }}
{{- end }}
{{- with $v.objectStore.region }}
SHIP_REGION: {{ . | quote }}
{{- end }}
{{- if $v.ship.allowHttp }}
SHIP_ALLOW_HTTP: "true"
{{- end }}
{{- if ne (toString $v.kubernetesEvents.level) "off" }}
KUBERNETES_EVENTS: {{ $v.kubernetesEvents.level | quote }}
{{- end }}
{{- range $file := include "statewarden-sidecar.files" (dict "values" $v) | fromYamlArray }}
{{ $file.setting }}: {{ $file.value }}
{{- end }}
{{- end -}}
