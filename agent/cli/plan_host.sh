
# --- The state is on this machine -----------------------------------------------------------------------------------

STATE=$STATE_DIR
HOW_TO_START="Start with: $START"
HOW_TO_ASK="statewarden repaired $(printf '%q ' "$INCIDENT" "${ASKED[@]}" --state-dir "$STATE_DIR")"
PROGRAM=statewarden
on_volume() { "$@"; }
stop() { sh -c "$STOP"; }    # cleanly: a kill leaves uncommitted records in the other tasks
start() { sh -c "$START"; }
repaired() { statewarden repaired "$INCIDENT" "${ASKED[@]}" --state-dir "$STATE_DIR" ${BROKERS:+--bootstrap-servers "$BROKERS"}; }
copy() { mkdir -p "$(dirname "$KEPT/$1")" && cp -a -- "$STATE/$1" "$KEPT/$1"; }

# Kafka Streams and RocksDB lock their files as long as they work. The scan asks for each lock, of other PID namespaces, too.
nobody_works() {
  local read in_use
  read=$(statewarden scan "$STATE" --json | tail -n 1) || true  # what it finds is an exit code, too
  [[ $read == *'"in_use": ['* ]] || refuse "statewarden scan $STATE failed: whether a process works there is not known"
  in_use=${read##*'"in_use": ['}
  [[ $in_use != *"\"$APPLICATION\""* ]] || refuse "a process works on $APPLICATION, or may: see statewarden scan $STATE"
}
