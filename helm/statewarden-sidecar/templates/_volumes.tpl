{{/* Files from Secrets and ConfigMaps, as YAML: [{volume, mountPath, setting, value, source}]. */}}
{{- define "statewarden-sidecar.files" -}}
{{- $v := .values -}}
{{- with $v.objectStore.credentialsSecret | default $v.ship.credentialsSecret }}
- volume: statewarden-credentials
  mountPath: /etc/statewarden/credentials
  setting: SHIP_CREDENTIALS_DIR
  value: /etc/statewarden/credentials
  source: {secret: {secretName: {{ . }}, defaultMode: 292}}
{{- end }}
{{- with $v.ship.tokenSecret }}
- volume: statewarden-bearer
  mountPath: /etc/statewarden/bearer
  setting: SHIP_TOKEN_FILE
  value: /etc/statewarden/bearer/token
  source: {secret: {secretName: {{ . }}, defaultMode: 292}}
{{- end }}
{{- with $v.ship.caConfigMap }}
- volume: statewarden-ca
  mountPath: /etc/statewarden/ca
  setting: SHIP_CA_FILE
  value: /etc/statewarden/ca/ca.crt
  source: {configMap: {name: {{ . }}}}
{{- end }}
{{- with $v.ship.kafkaConfigMap }}
- volume: statewarden-kafka
  mountPath: /etc/statewarden/kafka
  setting: SHIP_KAFKA_CONFIG
  value: /etc/statewarden/kafka/kafka.properties
  source: {configMap: {name: {{ . }}}}
{{- end }}
{{- with $v.agent.propertiesFrom.configMap }}
- volume: statewarden-properties
  mountPath: /etc/statewarden/properties
  {{- /* The agent starts without it, and says so: no pod of the application waits for a ConfigMap or a key. */}}
  setting: PROPERTIES
  value: /etc/statewarden/properties/streams.properties
  source: {configMap: {name: {{ . }}, optional: true, items: [{key: {{ $v.agent.propertiesFrom.key | quote }}, path: streams.properties}]}}
{{- end }}
{{- if ne (toString $v.kubernetesEvents.level) "off" }}
{{- /* A token of the sidecar's own: the application's containers need none for it. */}}
- volume: statewarden-token
  mountPath: /var/run/secrets/statewarden
  setting: KUBERNETES_SERVICE_ACCOUNT_DIR
  value: /var/run/secrets/statewarden
  source:
    projected:
      sources:
        - serviceAccountToken: {path: token, expirationSeconds: 3600}
        - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- end -}}

{{/*
Volumes that the sidecar brings along, as entries of `volumes`.

Called with (dict "context" . ["values" ...]).
*/}}
{{- define "statewarden-sidecar.volumes" -}}
{{- $v := include "statewarden-sidecar.values" . | fromYaml -}}
{{- if not $v.spool.claimTemplate.enabled }}
- name: statewarden-spool
  emptyDir: {sizeLimit: {{ $v.spool.sizeLimit }}}
{{- end }}
{{- with $v.ship.claim }}
- name: statewarden-ship
  persistentVolumeClaim: {claimName: {{ . }}}
{{- end }}
{{- range $file := include "statewarden-sidecar.files" (dict "values" $v) | fromYamlArray }}
- name: {{ $file.volume }}
  {{- toYaml $file.source | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Claim template of the spool, as an entry of `volumeClaimTemplates`. */}}
{{- define "statewarden-sidecar.spool-claim" -}}
{{- $v := include "statewarden-sidecar.values" . | fromYaml -}}
metadata:
  name: statewarden-spool
spec:
  accessModes: [ReadWriteOnce]
  {{- with $v.spool.claimTemplate.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ $v.spool.sizeLimit }}
{{- end -}}
