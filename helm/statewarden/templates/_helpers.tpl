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

{{/* A place in the object store; called with (dict "context" . "name" NAME). */}}
{{- define "statewarden.stored" -}}
{{- with .context.Values.objectStore -}}
{{- printf "s3a://%s" (list .bucket .prefix $.name | compact | join "/") -}}
{{- end -}}
{{- end -}}

{{/* Where the agents' segments are; empty if nothing says it. */}}
{{- define "statewarden.input" -}}
{{- if .Values.rollup.input -}}
{{- regexReplaceAll "^s3://" .Values.rollup.input "s3a://" -}}
{{- else if .Values.objectStore.bucket -}}
{{- include "statewarden.stored" (dict "context" . "name" "events") -}}
{{- else if include "statewarden.eventsClaim" . -}}
/events
{{- end -}}
{{- end -}}

{{- define "statewarden.bronze" -}}
{{- if .Values.rollup.bronze -}}
{{- regexReplaceAll "^s3://" .Values.rollup.bronze "s3a://" -}}
{{- else if .Values.objectStore.bucket -}}
{{- include "statewarden.stored" (dict "context" . "name" "bronze") -}}
{{- else -}}
/results/bronze
{{- end -}}
{{- end -}}

{{/* Buckets that the rollup uses, as a YAML list. */}}
{{- define "statewarden.buckets" -}}
{{- $found := list -}}
{{- range list (include "statewarden.input" .) (include "statewarden.bronze" .) -}}
{{- if hasPrefix "s3a://" . -}}{{- $found = append $found (trimPrefix "s3a://" . | splitList "/" | first) -}}{{- end -}}
{{- end -}}
{{- uniq $found | toYaml -}}
{{- end -}}

{{/* Options of every command that reaches the object store, as entries of `args`. */}}
{{- define "statewarden.storeArgs" -}}
{{- if include "statewarden.buckets" . | fromYamlArray -}}
{{- with .Values.objectStore.endpoint }}
- --endpoint={{ . }}
{{- end }}
{{- with .Values.objectStore.region }}
- --region={{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Port of an http(s) address. */}}
{{- define "statewarden.port" -}}
{{- $url := urlParse . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "80" "443" (eq $url.scheme "http")) -}}
{{- end -}}

{{/* Ports that the rollup must reach wherever they are, as a YAML list. */}}
{{- define "statewarden.egressPorts" -}}
{{- $ports := list -}}
{{- if include "statewarden.buckets" . | fromYamlArray -}}
{{- $ports = append $ports (include "statewarden.port" (.Values.objectStore.endpoint | default "https:") | int) -}}
{{- if hasKey .Values.serviceAccount.annotations "eks.amazonaws.com/role-arn" -}}{{- $ports = append $ports 443 -}}{{- end -}}
{{- end -}}
{{- if hasPrefix "kafka://" .Values.rollup.input -}}
{{- range trimPrefix "kafka://" .Values.rollup.input | splitList "/" | first | splitList "," -}}
{{- $ports = append $ports (regexFind "[0-9]+$" . | int) -}}
{{- end -}}
{{- end -}}
{{- with .Values.rollup.pushgatewayUrl -}}{{- $ports = append $ports (include "statewarden.port" . | int) -}}{{- end -}}
{{- range .Values.networkPolicy.egressPorts -}}{{- $ports = append $ports (int .) -}}{{- end -}}
{{- uniq $ports | toYaml -}}
{{- end -}}

{{/*
Whether credentials of the object store come from an address of the cloud: no Secret has them, and no service account's
token is traded for them (which is done at STS, on 443).
*/}}
{{- define "statewarden.asksForCredentials" -}}
{{- $named := or .Values.objectStore.credentialsSecret .Values.rollup.environmentSecret -}}
{{- $traded := hasKey .Values.serviceAccount.annotations "eks.amazonaws.com/role-arn" -}}
{{- if and (include "statewarden.buckets" . | fromYamlArray) (not $named) (not $traded) -}}true{{- end -}}
{{- end -}}

{{- define "statewarden.eventsClaim" -}}
{{- .Values.events.existingClaim | default (ternary (printf "%s-events" (include "statewarden.fullname" .)) "" .Values.events.create.enabled) -}}
{{- end -}}

{{- define "statewarden.resultsClaim" -}}
{{- .Values.results.existingClaim | default (printf "%s-results" (include "statewarden.fullname" .)) -}}
{{- end -}}

{{/* Everything that a wrong combination of values could break silently. */}}
{{- define "statewarden.check" -}}
{{- if .Values.rollup.enabled -}}{{- include "statewarden.checkImage" .Values.image -}}{{- include "statewarden.checkPlaces" . -}}{{- end -}}
{{- if and .Values.events.existingClaim .Values.events.create.enabled -}}
{{- fail "events.existingClaim and events.create.enabled exclude each other" -}}
{{- end -}}
{{- if and .Values.rollup.pushgatewayUrl .Values.pushgateway.enabled -}}
{{- fail "rollup.pushgatewayUrl and pushgateway.enabled exclude each other: one of them gets the counts" -}}
{{- end -}}
{{- end -}}

{{/* An image that can be pulled; called with its values. */}}
{{- define "statewarden.checkImage" -}}
{{- if not (or .registry .preloaded (regexMatch "^([^/]*[.:][^/]*|localhost)/" .repository)) -}}
{{- fail (printf "image.registry is empty, and no public registry has %s: every run would stay in ImagePullBackOff. Build and push the image (docs/images.md) and set image.registry; if the nodes find it without one, set image.preloaded=true" .repository) -}}
{{- end -}}
{{- end -}}

{{/* Where segments come from and where bronze goes: one place each, and nothing that would not be used. */}}
{{- define "statewarden.checkPlaces" -}}
{{- $store := .Values.objectStore -}}
{{- $input := include "statewarden.input" . -}}
{{- $claim := include "statewarden.eventsClaim" . -}}
{{- if not $input -}}
{{- fail "nothing says where the agents' events are: set objectStore.bucket to the bucket that the sidecars ship to (their values have the same name), or events.existingClaim to the claim that they share, or rollup.input to a topic (kafka://HOST:PORT/TOPIC). rollup.enabled=false installs monitors, alerts and boards only" -}}
{{- end -}}
{{- if and $store.bucket $claim -}}
{{- fail (printf "objectStore.bucket %s and the claim %s exclude each other: the agents ship to one of them. Leave objectStore.bucket, or events.existingClaim and events.create.enabled, out" $store.bucket $claim) -}}
{{- end -}}
{{- if and (hasPrefix "/" $input) (not $claim) -}}
{{- fail (printf "rollup.input %s is a directory, but no claim is mounted there: set events.existingClaim (the sidecars' ship.claim) or events.create.enabled, or leave rollup.input out and set objectStore.bucket" $input) -}}
{{- end -}}
{{- if and (not (hasPrefix "/" $input)) $claim -}}
{{- fail (printf "rollup.input %s is no directory, so the claim of events would not be used: leave events.existingClaim and events.create.enabled out" $input) -}}
{{- end -}}
{{- if eq $input (include "statewarden.bronze" .) -}}
{{- fail (printf "rollup.input and rollup.bronze are both %s: give bronze a separate place" $input) -}}
{{- end -}}
{{- if not (include "statewarden.buckets" . | fromYamlArray) -}}
{{- range $key := list "endpoint" "region" "credentialsSecret" -}}
{{- if get $store $key -}}
{{- fail (printf "objectStore.%s is set, but nothing is in an object store: set objectStore.bucket, or leave objectStore.%s out" $key $key) -}}
{{- end -}}
{{- end -}}
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
  {{- with .Values.rollup.expectConfigMap }}
  - name: expect
    configMap: {name: {{ . }}}
  {{- end }}
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
{{- $secret := .context.Values.objectStore.credentialsSecret }}
{{- if or $secret .context.Values.rollup.extraEnv }}
env:
  {{- with $secret }}
  - {name: AWS_ACCESS_KEY_ID, valueFrom: {secretKeyRef: {name: {{ . }}, key: access_key_id}}}
  - {name: AWS_SECRET_ACCESS_KEY, valueFrom: {secretKeyRef: {name: {{ . }}, key: secret_access_key}}}
  - {name: AWS_SESSION_TOKEN, valueFrom: {secretKeyRef: {name: {{ . }}, key: session_token, optional: true}}}
  {{- end }}
  {{- with .context.Values.rollup.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  {{- if include "statewarden.eventsClaim" .context }}
  - {name: events, mountPath: {{ include "statewarden.input" .context }}, readOnly: true}
  {{- end }}
  - {name: results, mountPath: /results}
  - {name: scratch, mountPath: /tmp}
  {{- if .context.Values.rollup.expectConfigMap }}
  - {name: expect, mountPath: /etc/statewarden/expect, readOnly: true}
  {{- end }}
  {{- if .context.Values.rollup.kafkaConfigSecret }}
  - {name: kafka-config, mountPath: /etc/statewarden/kafka, readOnly: true}
  {{- end }}
{{- end -}}

{{/* A pod that mounts the results for ten minutes, as the overrides of `kubectl run`; on one line. */}}
{{- define "statewarden.reader" -}}
{{- $container := dict "name" "audit-report" "image" (include "statewarden.image" (dict "image" .Values.image "tag" .Chart.AppVersion)) "command" (list "sleep" "600") -}}
{{- $_ := set $container "securityContext" (dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL"))) -}}
{{- $_ := set $container "volumeMounts" (list (dict "name" "results" "mountPath" "/results" "readOnly" true)) -}}
{{- $pod := include "statewarden.rollupPod" . | fromYaml -}}
{{- $volumes := list (dict "name" "results" "persistentVolumeClaim" (dict "claimName" (include "statewarden.resultsClaim" .))) -}}
{{- $spec := merge (dict "containers" (list $container) "volumes" $volumes) $pod (dict "restartPolicy" "Never" "activeDeadlineSeconds" 600) -}}
{{- dict "spec" $spec | mustToRawJson -}}
{{- end -}}
