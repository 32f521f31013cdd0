# Completion of statewarden for bash, generated from its options (make docs).
_statewarden() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i
    COMPREPLY=()
    # bash splits --option=value into three words
    if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi
    done
    local options='--help --version' kind=words words='scan explain detectors run preflight check-config spool verify digest diff replay bundle completion'
    case $command in
        scan) options='--help --may-be-empty --set --properties --config --disable-detector --json --fail-on --verbose --top' kind=directories ;;
        explain) options='--help --events' kind=words words='resurrected-checkpoint carried-checkpoint unowned-task stale-eos-checkpoint skipped-eos-wipe interrupted-wipe unrestored-store startup-lock-leak unclean-store unopenable-task false-clean-store lost-segment stale-segment-offset premature-cleanup frozen-checkpoint malformed-checkpoint overlaid-store skipped-record torn-store zombie-state orphaned-task setup changelog-truncated offset-beyond-durable store-shrank data-beyond-changelog deleted-while-held missing-fact auditor-blind rules/cloned-process rules/cloned-volume rules/diverged-replica rules/missing-standby rules/replicas-differ rules/resurrected-checkpoint rules/split-owner rules/stale-eos-state rules/state-differs rules/task-churn rules/unaudited rules/unprotected-task rules/unrestored-task StatewardenAgentDown StatewardenAgentsAbsent StatewardenAgentStuck StatewardenAgentNotReady StatewardenAgentPreflightFailed StatewardenAgentOftenBlind StatewardenAgentMissesChanges StatewardenAgentUnwatched StatewardenAgentSpoolFilling StatewardenAgentDropsEvents StatewardenAgentSpoolRefused StatewardenAgentDetectorFails StatewardenIncidentsUnlisted StatewardenRollupStale StatewardenRollupBehind StatewardenRollupIncidentsUnlisted StatewardenRollupAbsent StatewardenDeadMan TaskCorruptedException LockException ProcessorStateException TaskMigratedException OffsetOutOfRangeException InvalidStateStoreException stopped-volume' ;;
        detectors) options='--help --json --set --properties --config --disable-detector' kind=nothing ;;
        run) options='--help --pod --pod-uid --namespace --node --cluster --listen --metrics-detail --log-level --spool --home --ship-to --grace-seconds --linger-seconds --watch-mode --rescan-seconds --cpu-share --memory-mib --set --properties --config --disable-detector' kind=directories ;;
        preflight) options='--help --state-dir --spool --ship-to --json --if --set --properties --config --disable-detector' kind=directories ;;
        check-config) options='--help --set --properties --config --disable-detector' kind=nothing ;;
        spool) options='--help' kind=directories ;;
        verify) options='--help --bootstrap-servers --client-config --application --task --store --topic --kind --retention --json --fail-on --explain --show-keys --work' kind=directories ;;
        digest) options='--help --output --application --task --store --kind --buckets --pod --namespace --cluster --work --set --properties --config --disable-detector' kind=directories ;;
        diff) options='--help --json --set --properties --config --disable-detector' kind=directories ;;
        replay) options='--help --pod --events --quiet-period --process-visible --set --properties --config --disable-detector --json --fail-on --verbose --top' kind=files ;;
        bundle) options='--help --set --properties --config --disable-detector' kind=files ;;
        completion) options='--help' kind=words words='bash zsh fish' ;;
    esac
    case "$command $prev" in
        'scan --set' | 'scan --disable-detector' | 'scan --top' | 'detectors --set' | 'detectors --disable-detector' | 'run --pod' | 'run --pod-uid' | 'run --namespace' | 'run --node' | 'run --cluster' | 'run --listen' | 'run --grace-seconds' | 'run --linger-seconds' | 'run --rescan-seconds' | 'run --cpu-share' | 'run --memory-mib' | 'run --set' | 'run --disable-detector' | 'preflight --if' | 'preflight --set' | 'preflight --disable-detector' | 'check-config --set' | 'check-config --disable-detector' | 'verify --bootstrap-servers' | 'verify --application' | 'verify --task' | 'verify --store' | 'verify --topic' | 'verify --kind' | 'verify --retention' | 'verify --fail-on' | 'verify --explain' | 'digest --application' | 'digest --task' | 'digest --store' | 'digest --kind' | 'digest --buckets' | 'digest --pod' | 'digest --namespace' | 'digest --cluster' | 'digest --set' | 'digest --disable-detector' | 'diff --set' | 'diff --disable-detector' | 'replay --pod' | 'replay --quiet-period' | 'replay --set' | 'replay --disable-detector' | 'replay --top' | 'bundle --set' | 'bundle --disable-detector') kind=nothing ;;
        'scan --properties' | 'scan --config' | 'detectors --properties' | 'detectors --config' | 'run --properties' | 'run --config' | 'preflight --properties' | 'preflight --config' | 'check-config --properties' | 'check-config --config' | 'verify --client-config' | 'digest --output' | 'digest --properties' | 'digest --config' | 'diff --properties' | 'diff --config' | 'replay --properties' | 'replay --config' | 'bundle --properties' | 'bundle --config') kind=files ;;
        'scan --fail-on' | 'replay --fail-on') kind=words words='info warning critical' ;;
        'explain --events' | 'run --spool' | 'run --home' | 'run --ship-to' | 'preflight --state-dir' | 'preflight --spool' | 'preflight --ship-to' | 'verify --work' | 'digest --work' | 'replay --events') kind=directories ;;
        'run --metrics-detail') kind=words words='task store' ;;
        'run --log-level') kind=words words='DEBUG INFO WARNING ERROR' ;;
        'run --watch-mode') kind=words words='auto inotify poll' ;;
        *) if [[ $cur == -* ]]; then kind=words words=$options; fi ;;
    esac
    case $kind in
        words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
        files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
}
complete -F _statewarden statewarden
