
# --- The work -------------------------------------------------------------------------------------------------------

step="before anything was done" left="Nothing was stopped, copied or removed."
say() { step=$1; printf '\n== %s\n' "$1"; }
refuse() { printf 'stopped: %s\n' "$*" >&2; exit 1; }
trap 'code=$?; if [ "$code" -ne 0 ]; then printf "\nEnded at: %s. %s\n" "$step" "$left" >&2; fi' EXIT

# Nothing is guessed.
for name in "${NEEDED[@]}"; do [ -n "${!name:-}" ] || refuse "$name is empty: fill it in at the top"; done
command -v "$PROGRAM" >/dev/null || refuse "$PROGRAM is not on the PATH: the script needs it"
[ -z "$(ls -A "$KEPT" 2>/dev/null)" ] || refuse "$KEPT is not empty: no copy is overwritten, choose another COPY_TO"

# Content of every file below a task's directory, there and in the copy: equal sums are equal files, a failure is none.
SUMS='cd "$1" && { find "$2" -type f -exec cksum {} + || echo "$1"; } | LC_ALL=C sort'
sums_there() { on_volume sh -c "$SUMS" sh "$STATE" "$1"; }
sums_kept() { sh -c "$SUMS" sh "$KEPT" "$1"; }
# Names, inodes, sizes and times: any work of a process changes one of them.
MARKS='cd "$1" && shift && find "$@" -exec stat -c "%n %i %s %Y %Z" {} + | LC_ALL=C sort'
marks() { on_volume sh -c "$MARKS" sh "$STATE" "${PATHS[@]}"; }
PATHS=()
for task in "${TASKS[@]}"; do PATHS+=("$APPLICATION/$task"); done

say "stop the instance on $POD, and keep it stopped"
mkdir -p "$KEPT"  # first, so that no copy fails for lack of a directory
stop
left="The instance is stopped. Nothing was removed. A start takes the state as it is. $HOW_TO_START"

say "look before anything is touched"
nobody_works  # a process at work there would undo the repair
for path in "${PATHS[@]}"; do
  on_volume test -d "$STATE/$path" || refuse "$STATE/$path is not a directory: this is not what was found"
  on_volume test ! -L "$STATE/$path" || refuse "$STATE/$path is a symlink: its target is not what was found"
  on_volume test ! -e "$STATE/$path.removed" || refuse "remove $STATE/$path.removed first: an earlier run left it"
done
for found in ${STORES[@]+"${STORES[@]}"}; do  # another IDENTITY is another life of the store
  on_volume grep -rqsF --include=IDENTITY -- "${found#* }" "$STATE/$APPLICATION/${found%% *}" ||
    refuse "the damaged store of task ${found%% *} is gone, its IDENTITY was ${found#* }: look again before you remove"
done
if [ -n "$SEEN_AT" ]; then  # a start since then has made it another incident
  later=$(on_volume find "${PATHS[@]/#/$STATE/}" -newermt "$SEEN_AT" -print)
  [ -z "$later" ] || refuse "changed since $SEEN_AT, look again: $later"
fi
before=$(marks)
[ -n "$before" ] || refuse "its files cannot be listed: whether they change could not be told"

say "copy to $KEPT"
for path in "${PATHS[@]}"; do
  copy "$path"
  [ "$(sums_there "$path")" = "$(sums_kept "$path")" ] || refuse "the copy of $path is not equal to it"
done

say "remove ${PATHS[*]}, and nothing else"
nobody_works                                              # nobody came while it was copied
[ "$(marks)" = "$before" ] || refuse "a directory changed while it was copied"
# Each is renamed first: a start on half a directory would trust what is left of it.
left="The instance is stopped. Do not start before all of these are gone: ${PATHS[*]}. Copies of all are in $KEPT. $HOW_TO_START"
for path in "${PATHS[@]}"; do on_volume mv -T -- "$STATE/$path" "$STATE/$path.removed"; done
left="The instance is stopped, and the directories are out of its way; their copies are in $KEPT. $HOW_TO_START"
for path in "${PATHS[@]}"; do on_volume rm -r -- "$STATE/$path.removed"; done
for path in "${PATHS[@]}"; do
  on_volume test ! -e "$STATE/$path" || refuse "$STATE/$path is still there"
  [ -d "$KEPT/$path" ] || refuse "$KEPT/$path is not there"
done

say "start: only now, with all of them gone"
start
left="It is started. The copy is in $KEPT: keep it until the application's owner has seen the results."

say "watch the restoration, and prove it: at most $WATCH_FOR_S s"
until_s=$((SECONDS + WATCH_FOR_S))
while :; do
  code=0 && repaired || code=$?
  case $code in
    0) break ;;
    1 | 3) ;;  # not yet
    *) refuse "statewarden repaired ended with $code" ;;
  esac
  [ "$SECONDS" -lt "$until_s" ] || refuse "not proved in time; ask again: $HOW_TO_ASK"
  sleep 15
done
printf '\n%s\n' "$left"
