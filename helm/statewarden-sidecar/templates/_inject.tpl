{{/*
The one include: takes a rendered workload and gives it back with the sidecar in it.

Called with (dict "context" . "workload" (include "my.statefulset" .) ["values" ...]), where the workload is the text
of one StatefulSet, Deployment or DaemonSet. Adds the sidecar (native: as first init container), its volumes and
its label. Fails with a sentence if the sidecar could not see the state directory.
*/}}
{{- define "statewarden-sidecar.inject" -}}
{{- $v := include "statewarden-sidecar.values" . | fromYaml -}}
{{- $workload := fromYaml .workload -}}
{{- if or (hasKey $workload "Error") (not (hasKey $workload "kind")) -}}
{{- fail (printf "statewarden-sidecar: \"workload\" must be the text of one StatefulSet, Deployment or DaemonSet%s" (ternary (printf "; it is not YAML: %s" $workload.Error) "" (hasKey $workload "Error"))) -}}
{{- end -}}
{{- if $v.enabled -}}
{{- $name := printf "%s %s" $workload.kind (dig "metadata" "name" "(unnamed)" $workload) -}}
{{- $template := dig "spec" "template" dict $workload -}}
{{- $pod := dig "spec" dict $template -}}
{{- if not $pod.containers -}}
{{- fail (printf "statewarden-sidecar: %s has no spec.template.spec.containers: only StatefulSet, Deployment and DaemonSet can carry the sidecar" $name) -}}
{{- end -}}
{{- $templates := dig "spec" "volumeClaimTemplates" list $workload | default list -}}
{{- if and (not $v.state.volume) (eq (len $templates) 1) -}}{{- $_ := set $v.state "volume" (first $templates).metadata.name -}}{{- end -}}
{{- $found := include "statewarden-sidecar.find" (dict "values" $v "workload" $workload "pod" $pod "name" $name) | fromYaml -}}
{{- $call := dict "context" .context "values" $v "mountPath" $found.mountPath "subPath" $found.subPath "subPathExpr" $found.subPathExpr "env" $found.env "group" $found.group "image" $found.image -}}
{{- $container := include "statewarden-sidecar.container" $call | fromYaml -}}
{{- if eq $v.variant "native" -}}
{{- $_ := set $pod "initContainers" (prepend ($pod.initContainers | default list) $container) -}}
{{- else -}}
{{- $_ := set $pod "containers" (append $pod.containers $container) -}}
{{- end -}}
{{- with include "statewarden-sidecar.volumes" $call | fromYamlArray -}}
{{- $_ := set $pod "volumes" (concat ($pod.volumes | default list) .) -}}
{{- end -}}
{{- if $v.shareProcessNamespace -}}{{- $_ := set $pod "shareProcessNamespace" true -}}{{- end -}}
{{- if $v.spool.claimTemplate.enabled -}}
{{- $claim := include "statewarden-sidecar.spool-claim" $call | fromYaml -}}
{{- $_ := set $workload.spec "volumeClaimTemplates" (append ($workload.spec.volumeClaimTemplates | default list) $claim) -}}
{{- end -}}
{{- $metadata := $template.metadata | default dict -}}
{{- $_ := set $metadata "labels" (merge (include "statewarden-sidecar.labels" . | fromYaml) ($metadata.labels | default dict)) -}}
{{- $_ := set $template "metadata" $metadata -}}
{{- end -}}
{{- toYaml $workload -}}
{{- end -}}

{{/* Where the application has its state, and by which group, as YAML: {mountPath, subPath, subPathExpr, env, group, image}. */}}
{{- define "statewarden-sidecar.find" -}}
{{- $v := .values -}}
{{- $volumes := list -}}
{{- range .pod.volumes -}}{{- $volumes = append $volumes .name -}}{{- end -}}
{{- range .workload.spec.volumeClaimTemplates -}}{{- $volumes = append $volumes .metadata.name -}}{{- end -}}
{{- if not $v.state.volume -}}
{{- fail (printf "statewarden-sidecar: state.volume is empty; name the volume of %s that holds the application's state.dir. It has: %s" .name (join ", " $volumes | default "none")) -}}
{{- end -}}
{{- if not (has $v.state.volume $volumes) -}}
{{- fail (printf "statewarden-sidecar: state.volume %q is no volume or claim template of %s. It has: %s" $v.state.volume .name (join ", " $volumes | default "none")) -}}
{{- end -}}
{{- range concat .pod.containers (.pod.initContainers | default list) -}}
{{- if eq .name "statewarden" -}}{{- fail (printf "statewarden-sidecar: %s has a container named statewarden already" $.name) -}}{{- end -}}
{{- end -}}
{{- $mount := dict -}}
{{- $owner := dict -}}
{{- range $container := .pod.containers -}}
{{- range $container.volumeMounts -}}
{{- if and (eq .name $v.state.volume) (not $mount) (or (not $v.state.mountPath) (eq .mountPath $v.state.mountPath)) -}}
{{- $mount = . -}}{{- $owner = $container -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $mount -}}
{{- fail (printf "statewarden-sidecar: no container of %s mounts volume %q%s, so the application's state.dir cannot be on it" .name $v.state.volume (ternary (printf " at %s" $v.state.mountPath) "" (ne "" $v.state.mountPath))) -}}
{{- end -}}
{{- $group := $v.group -}}
{{- range $context := list ($owner.securityContext | default dict) (.pod.securityContext | default dict) -}}
{{- if and (eq (toString $group) "") (hasKey $context "runAsGroup") -}}{{- $group = $context.runAsGroup -}}{{- end -}}
{{- end -}}
{{- if eq (toString $group) "" -}}
{{- fail (printf "statewarden-sidecar: %s does not say the group of container %s. Kafka Streams makes its directories 0750: set securityContext.runAsGroup there, or group of the sidecar to the group id that the image runs with (fsGroup is not enough: Kafka Streams clears the set-group-id bit of what it makes)" .name $owner.name) -}}
{{- end -}}
{{- $period := int (.pod.terminationGracePeriodSeconds | default 30) -}}
{{- $needed := int $v.agent.graceSeconds -}}
{{- if eq $v.variant "plain" -}}{{- $needed = add $needed (int $v.agent.lingerSeconds) | int -}}{{- end -}}
{{- if ge $needed $period -}}
{{- fail (printf "statewarden-sidecar: terminationGracePeriodSeconds %d of %s leaves no room for the agent's %d s; raise it, or lower agent.graceSeconds and agent.lingerSeconds" $period .name $needed) -}}
{{- end -}}
{{- if and $v.spool.claimTemplate.enabled (ne .workload.kind "StatefulSet") -}}
{{- fail (printf "statewarden-sidecar: spool.claimTemplate needs a StatefulSet; %s is none" .name) -}}
{{- end -}}
mountPath: {{ $mount.mountPath }}
subPath: {{ $mount.subPath | default "" | quote }}
subPathExpr: {{ $mount.subPathExpr | default "" | quote }}
env:
  {{- include "statewarden-sidecar.variables" (dict "values" $v "expression" $mount.subPathExpr "owner" $owner "name" .name) | nindent 2 }}
group: {{ int64 $group }}
image: {{ $owner.image | default "" | quote }}
{{- end -}}

{{/*
What the sidecar lacks of the variables that `subPathExpr` is made of, as entries of `env`: the kubelet does not start a
container that has one of them not, and with another value it would show another directory.
*/}}
{{- define "statewarden-sidecar.variables" -}}
{{- $where := printf "subPathExpr %s of container %s (%s)" .expression .owner.name .name -}}
{{- $ours := include "statewarden-sidecar.downward" . | fromYaml -}}
{{- $given := list -}}
{{- range .values.extraEnv -}}{{- $given = append $given .name -}}{{- end -}}
{{- $needed := include "statewarden-sidecar.names" .expression | fromYamlArray -}}
{{- $found := list -}}
{{- $copied := list -}}
{{- range $entry := .owner.env | default list | reverse -}}
{{- if and (has $entry.name $needed) (not (has $entry.name $found)) (not (has $entry.name $given)) -}}
{{- $found = append $found $entry.name -}}
{{- $from := $entry.valueFrom | default dict -}}
{{- range $kind := keys $from -}}
{{- if not (has $kind (list "fieldRef" "configMapKeyRef" "secretKeyRef")) -}}
{{- fail (printf "statewarden-sidecar: %s needs $(%s), whose %s is about that container only: use a fieldRef, or give the variable in extraEnv of the sidecar" $where $entry.name $kind) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $ours $entry.name -}}
{{- if ne (dig "fieldRef" "fieldPath" "" $from) (get $ours $entry.name) -}}
{{- fail (printf "statewarden-sidecar: %s needs $(%s), which is %s in the sidecar and something else there: give that variable another name" $where $entry.name (get $ours $entry.name)) -}}
{{- end -}}
{{- else if hasPrefix "STATEWARDEN_" $entry.name -}}
{{- fail (printf "statewarden-sidecar: %s needs $(%s), a name that is the sidecar's: give that variable another one" $where $entry.name) -}}
{{- else -}}
{{- $copied = prepend $copied $entry -}}
{{- $needed = concat $needed (include "statewarden-sidecar.names" $entry.value | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $needed -}}
{{- if not (or (has . $found) (has . $given)) -}}
{{- fail (printf "statewarden-sidecar: %s needs $(%s), which env of that container does not have%s: give it there, or in extraEnv of the sidecar" $where . (ternary " (envFrom may, but its content is in the cluster)" "" (not (empty $.owner.envFrom)))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $copied -}}
{{- end -}}

{{/* Names of the variables that a text is made of, as a YAML array: `$(NAME)`, but not `$$(NAME)`. */}}
{{- define "statewarden-sidecar.names" -}}
{{- $names := list -}}
{{- range regexFindAll "\\$\\([A-Za-z_.-][A-Za-z0-9_.-]*\\)" (. | default "" | toString | replace "$$" "") -1 -}}
{{- $names = append $names (. | trimPrefix "$(" | trimSuffix ")") -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}
