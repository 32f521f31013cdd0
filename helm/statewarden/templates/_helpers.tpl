{{- define "statewarden.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that select; called with (dict "context" . "component" NAME). */}}
{{- define "statewarden.selector" -}}
app.kubernetes.io/name: {{ .context.Values.nameOverride | default .context.Chart.Name }}
app.kubernetes.io/instance: {{ .context.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of every object; called with (dict "context" . "component" NAME). */}}
{{- define "statewarden.labels" -}}
{{ include "statewarden.selector" . }}
app.kubernetes.io/part-of: statewarden
app.kubernetes.io/version: {{ .context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .context.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name .context.Chart.Version | replace "+" "_" }}
{{- with .context.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Reference of an image; called with (dict "image" VALUES "tag" DEFAULT). */}}
{{- define "statewarden.image" -}}
{{- $name := .image.repository -}}
{{- if .image.registry -}}{{- $name = printf "%s/%s" .image.registry .image.repository -}}{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (.image.tag | default .tag) -}}
{{- end -}}
{{- end -}}

{{- define "statewarden.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "statewarden.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "statewarden.pushgatewayUrl" -}}
{{- if .Values.rollup.pushgatewayUrl -}}
{{- .Values.rollup.pushgatewayUrl -}}
{{- else if .Values.pushgateway.enabled -}}
{{- printf "http://%s-pushgateway:9091" (include "statewarden.fullname" .) -}}
{{- end -}}
{{- end -}}

{{- define "statewarden.eventsClaim" -}}
{{- .Values.events.existingClaim | default (ternary (printf "%s-events" (include "statewarden.fullname" .)) "" .Values.events.create.enabled) -}}
{{- end -}}

{{- define "statewarden.resultsClaim" -}}
{{- .Values.results.existingClaim | default (printf "%s-results" (include "statewarden.fullname" .)) -}}
{{- end -}}

{{/* Everything that a wrong combination of values could break silently. */}}
{{- define "statewarden.check" -}}
{{- $remote := not (hasPrefix "/" .Values.rollup.input) -}}
{{- $claim := include "statewarden.eventsClaim" . -}}
{{- if .Values.rollup.enabled -}}
{{- if and (not $remote) (not $claim) -}}
{{- fail (printf "rollup.input %s is a directory, but no claim is mounted there: set events.existingClaim (the sidecars' ship.claim), or events.create.enabled, or let rollup.input be s3a:// or kafka://" .Values.rollup.input) -}}
{{- end -}}
{{- if and $remote $claim -}}
{{- fail (printf "rollup.input %s is no directory, so the claim of events would not be used: leave events.existingClaim and events.create.enabled out" .Values.rollup.input) -}}
{{- end -}}
{{- if and $remote .Values.networkPolicy.enabled (not .Values.networkPolicy.egressPorts) (not .Values.networkPolicy.extraEgress) -}}
{{- fail (printf "networkPolicy would keep the rollup from %s: set networkPolicy.egressPorts (443 for an object store, 9092 for Kafka) or networkPolicy.extraEgress" .Values.rollup.input) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.events.existingClaim .Values.events.create.enabled -}}
{{- fail "events.existingClaim and events.create.enabled exclude each other" -}}
{{- end -}}
{{- if and .Values.rollup.pushgatewayUrl .Values.pushgateway.enabled -}}
{{- fail "rollup.pushgatewayUrl and pushgateway.enabled exclude each other: one of them gets the counts" -}}
{{- end -}}
{{- end -}}

{{/* Pod-level settings that the rollup and its test share. */}}
{{- define "statewarden.rollupPod" -}}
serviceAccountName: {{ include "statewarden.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- /* Files that agents wrote belong to this group; changing all of a large volume would take long. */}}
  fsGroup: {{ int64 .Values.rollup.group }}
  fsGroupChangePolicy: OnRootMismatch
  runAsGroup: {{ int64 .Values.rollup.group }}
  runAsNonRoot: true
  runAsUser: {{ int64 .Values.rollup.user }}
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.rollup.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.rollup.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.rollup.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.rollup.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  {{- with include "statewarden.eventsClaim" . }}
  - name: events
    {{- /* Read-only for the pod, not only for containers: else the kubelet would hand the agents' files to fsGroup. */}}
    persistentVolumeClaim: {claimName: {{ . }}, readOnly: true}
  {{- end }}
  - name: results
    persistentVolumeClaim: {claimName: {{ include "statewarden.resultsClaim" . }}}
  {{- with .Values.rollup.kafkaConfigSecret }}
  - name: kafka-config
    secret: {secretName: {{ . }}}
  {{- end }}
  - name: scratch
    emptyDir: {sizeLimit: {{ .Values.rollup.scratchSize }}}
{{- end -}}

{{/* What every container of the rollup has; called with (dict "context" . "args" LIST). */}}
{{- define "statewarden.rollupContainer" -}}
image: {{ include "statewarden.image" (dict "image" .context.Values.image "tag" .context.Chart.AppVersion) }}
imagePullPolicy: {{ .context.Values.image.pullPolicy }}
{{- with .context.Values.rollup.environmentSecret }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
{{- with .context.Values.rollup.extraEnv }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  {{- if include "statewarden.eventsClaim" .context }}
  - {name: events, mountPath: {{ .context.Values.rollup.input }}, readOnly: true}
  {{- end }}
  - {name: results, mountPath: /results}
  - {name: scratch, mountPath: /tmp}
  {{- if .context.Values.rollup.kafkaConfigSecret }}
  - {name: kafka-config, mountPath: /etc/statewarden/kafka, readOnly: true}
  {{- end }}
{{- end -}}
