{{/*
Role and RoleBinding for `kubernetesEvents`: create events, nothing else.

Called with (dict "context" . "serviceAccount" NAME).
*/}}
{{- define "statewarden-sidecar.events-rbac" -}}
{{- $name := printf "%s-statewarden-events" .context.Release.Name | trunc 63 | trimSuffix "-" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ .context.Release.Namespace }}
rules:
  - apiGroups: [""]
    resources: [events]
    verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ .context.Release.Namespace }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}}
subjects:
  - {kind: ServiceAccount, name: {{ .serviceAccount | default "default" }}, namespace: {{ .context.Release.Namespace }}}
{{- end -}}
