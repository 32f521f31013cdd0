
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

# Kafka Streams and RocksDB lock their files as long as they work; the kernel lists who is locked by inode.
nobody_works() {
  [ -r /proc/locks ] || refuse "/proc/locks cannot be read: whether a process works there is not known"
  local file
  while IFS= read -r -d '' file; do
    ! grep -q ":$(stat -c %i -- "$file") " /proc/locks || refuse "$file is locked: a process works there"
  done < <(find "$STATE/$APPLICATION" \( -name .lock -o -name LOCK \) -print0)
}
