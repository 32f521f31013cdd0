
# --- The state is on the claim of a pod -----------------------------------------------------------------------------

STATE=/volume/$STATE_IN_CLAIM
MAINTENANCE=statewarden-$INCIDENT
HOW_TO_START="Start with: kubectl -n $NAMESPACE delete pod $MAINTENANCE --wait; kubectl -n $NAMESPACE create -f $(printf %q "$KEPT/set.yaml")"
HOW_TO_ASK="kubectl -n $NAMESPACE exec $POD -c $AGENT -- statewarden repaired $(printf '%q ' "$INCIDENT" "${ASKED[@]}")"
PROGRAM=kubectl
k() { kubectl -n "$NAMESPACE" "$@"; }
on_volume() { k exec "$MAINTENANCE" -- "$@"; }
repaired() { k exec "$POD" -c "$AGENT" -- statewarden repaired "$INCIDENT" "${ASKED[@]}" ${BROKERS:+--bootstrap-servers "$BROKERS"}; }
copy() { on_volume tar -C "$STATE" -cf - "$1" | tar -C "$KEPT" -xpf -; }    # cp -a, through the API server

# Pods that mount the claim, other than the one that works for this script.
nobody_works() {
  local others
  others=$(k get pods -o jsonpath='{range .items[*]}{.metadata.name}{range .spec.volumes[*]}{" "}{.persistentVolumeClaim.claimName}{end}{"\n"}{end}' |
    awk -v claim="$CLAIM" -v own="$MAINTENANCE" '$1 != own { for (i = 2; i <= NF; i++) if ($i == claim) print $1 }')
  [ -z "$others" ] || refuse "$others mounts $CLAIM: a process may work there"
}

claims_of() { k get pod "$1" -o jsonpath='{.spec.volumes[*].persistentVolumeClaim.claimName}'; }

stop() {
  local ready wanted security
  # Another pod's claim would be another pod's state. A pod that is gone cannot be asked.
  if k get pod "$POD" >/dev/null 2>&1; then
    [[ " $(claims_of "$POD") " == *" $CLAIM "* ]] || refuse "$POD does not mount $CLAIM, it mounts: $(claims_of "$POD")"
  fi
  ready=$(k get statefulset "$SET" -o jsonpath='{.status.readyReplicas}')
  wanted=$(k get statefulset "$SET" -o jsonpath='{.spec.replicas}')
  # The other copies first: the tasks of this pod are restored or taken over there meanwhile.
  [ "${ready:-0}" -ge "$((wanted - 1))" ] || refuse "$ready of $wanted pods of $SET are ready: repair the others first"
  security=$(k get statefulset "$SET" -o jsonpath='{.spec.template.spec.securityContext}')
  security=${security:-'{}'}
  # The set as it is, to make it again; with its resourceVersion the API server would refuse that.
  k get statefulset "$SET" -o yaml | grep -v '^  resourceVersion:' >"$KEPT/set.yaml"
  # The controller alone goes, every pod runs on: it would bring this pod back at once, and to scale stops others, too.
  left="The set is deleted, its pods run on. Nothing was removed. $HOW_TO_START"
  k delete statefulset "$SET" --cascade=orphan
  # In order, within its grace period, never --force: a kill leaves uncommitted records in the other tasks.
  k delete pod "$POD" --ignore-not-found --wait --timeout=15m
  nobody_works
  # A pod with a shell on the same claim, as the same user; the agent's container sees the volume read-only.
  k apply -f - <<POD
apiVersion: v1
kind: Pod
metadata: {name: "$MAINTENANCE"}
spec:
  restartPolicy: Never
  securityContext: $security
  containers:
  - name: maintenance
    image: "$IMAGE"
    command: [sleep, "86400"]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: state, mountPath: /volume}]
  volumes: [{name: state, persistentVolumeClaim: {claimName: "$CLAIM"}}]
POD
  k wait --for=condition=Ready "pod/$MAINTENANCE" --timeout=10m
}

start() {
  k delete pod "$MAINTENANCE" --wait    # a claim of one node would keep the pod waiting
  k create -f "$KEPT/set.yaml"          # takes over the pods that run, and makes the missing one
}
