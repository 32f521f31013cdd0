#compdef statewarden
# Completion of statewarden for zsh, generated from its options (make docs).
_statewarden() {
    local context state line
    local -a commands=(
        'scan:read a state directory (or a copy of one) once'
        'explain:print a runbook, or the story of a finding'
        'detectors:list the detectors'
        'run:watch a state directory until SIGTERM (the sidecar)'
        'preflight:check rights, mounts, limits, clock, spool and sink'
        'check-config:print the effective settings, each with its origin'
        'spool:say what waits in an agent'\''s spool'
        'verify:compare stores with their changelogs, key by key'
        'digest:write fingerprints of stores for `statewarden-rollup verify`'
        'diff:compare two state directories, store by store'
        'replay:run a recorded trace through the same rules'
        'bundle:pack metadata for a bug report (never record content)'
        'completion:print the completion script of a shell'
    )
    typeset -A opt_args
    _arguments -C \
        '--help[show this help message and exit]' \
        '--version[show version, commit, extras; then exit]' \
        '1:command:->command' \
        '*::argument:->argument'
    case $state in
        command) _describe -t commands command commands ;;
        argument)
            case $words[1] in
                scan)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--may-be-empty[accept a missing or empty directory\: no instance has started there yet]' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: ' \
                        '--json[a line per finding, per incident, and a summary]' \
                        '--fail-on[exit 1 if an open finding is at least this severe\: info, warning, critical (default)]:SEVERITY:(info warning critical)' \
                        '--verbose[remarks, too, and every finding with its evidence]' \
                        '--top[print the N worst incidents only; their number is always said]:N: ' \
                        '1:STATE_DIR:_files -/'
                    ;;
                explain)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--events[events that agents have shipped\: *.jsonl, *.jsonl.gz]:DIR:_files -/' \
                        '1:ID:(resurrected-checkpoint carried-checkpoint unowned-task stale-eos-checkpoint skipped-eos-wipe interrupted-wipe unrestored-store startup-lock-leak unclean-store unopenable-task false-clean-store lost-segment stale-segment-offset premature-cleanup frozen-checkpoint malformed-checkpoint overlaid-store skipped-record torn-store zombie-state orphaned-task setup changelog-truncated offset-beyond-durable store-shrank data-beyond-changelog deleted-while-held missing-fact auditor-blind rules/cloned-process rules/cloned-volume rules/diverged-replica rules/missing-standby rules/replicas-differ rules/resurrected-checkpoint rules/split-owner rules/stale-eos-state rules/state-differs rules/task-churn rules/unaudited rules/unprotected-task rules/unrestored-task StatewardenAgentDown StatewardenAgentsAbsent StatewardenAgentStuck StatewardenAgentNotReady StatewardenAgentPreflightFailed StatewardenAgentOftenBlind StatewardenAgentMissesChanges StatewardenAgentUnwatched StatewardenAgentSpoolFilling StatewardenAgentDropsEvents StatewardenAgentSpoolRefused StatewardenAgentDetectorFails StatewardenIncidentsUnlisted StatewardenRollupStale StatewardenRollupBehind StatewardenRollupIncidentsUnlisted StatewardenRollupAbsent StatewardenDeadMan TaskCorruptedException LockException ProcessorStateException TaskMigratedException OffsetOutOfRangeException InvalidStateStoreException stopped-volume)'
                    ;;
                detectors)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--json[one detector per line]' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: '
                    ;;
                run)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--pod[pod (default\: POD_NAME, else the host name)]:NAME: ' \
                        '--pod-uid[uid of the pod (default\: POD_UID, else its name)]:UID: ' \
                        '--namespace[namespace (default\: POD_NAMESPACE)]:NAME: ' \
                        '--node[node (default\: NODE_NAME)]:NAME: ' \
                        '--cluster[cluster or region, where several ship to one place]:NAME: ' \
                        '--listen[serve /metrics and the page here (default \:9464; empty\: do not)]:HOST\:PORT: ' \
                        '--metrics-detail[task (default), or store for series of single stores as well]:DETAIL:(task store)' \
                        '--log-level[DEBUG, INFO (default), WARNING, ERROR]:LEVEL:(DEBUG INFO WARNING ERROR)' \
                        '--spool[own volume for events that wait to be shipped]:DIR:_files -/' \
                        '--home[own volume for baseline and canary (default\: in the spool)]:DIR:_files -/' \
                        '--ship-to[where events go\: a directory, s3\://, gs\://, az\://, kafka\://BROKERS/TOPIC or https\://]:DIR|URL:_files -/' \
                        '--grace-seconds[after SIGTERM\: time for the last flush, seconds (default 10)]:S: ' \
                        '--linger-seconds[after SIGTERM\: watch on while the application holds locks or digests are due, at most so many seconds (default 0)]:S: ' \
                        '--watch-mode[inotify, poll, or auto\: by the volume'\''s file system (default)]:MODE:(auto inotify poll)' \
                        '--rescan-seconds[time between full rescans, seconds (default 60)]:S: ' \
                        '--cpu-share[do less above this share of one core (default 0\: never)]:SHARE: ' \
                        '--memory-mib[do less above this resident memory, MiB (default 0\: never)]:MIB: ' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: ' \
                        '1:STATE_DIR:_files -/'
                    ;;
                preflight)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--state-dir[the same]:DIR:_files -/' \
                        '--spool[the agent'\''s own volume]:DIR:_files -/' \
                        '--ship-to[where sealed segments go]:DIR|URL:_files -/' \
                        '--json[one check per line]' \
                        '*--if[a setting that is to be changed\: say first what of the state on disk is in the way; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: ' \
                        '1:STATE_DIR:_files -/'
                    ;;
                check-config)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: '
                    ;;
                spool)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '1:SPOOL_DIR:_files -/'
                    ;;
                verify)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--bootstrap-servers[brokers of the application'\''s cluster]:HOST\:PORT,...: ' \
                        '--client-config[key=value lines by librdkafka'\''s names\: TLS, SASL]:FILE:_files' \
                        '--application[only this application.id]:ID: ' \
                        '--task[only this task, for example 0_1]:N_M: ' \
                        '--store[only stores of this name]:NAME: ' \
                        '*--topic[its changelog]:STORE=TOPIC: ' \
                        '*--kind[its kind, one that the error names]:STORE=KIND: ' \
                        '*--retention[its retention, milliseconds]:STORE=MS: ' \
                        '--json[one store per line]' \
                        '--fail-on[words of a store that make the exit code 1 (default missing,extra,different)]:WORDS: ' \
                        '--explain[show up to N keys of each bad word, as hashes]:N: ' \
                        '--show-keys[show these keys in the clear]' \
                        '--work[place for the private directory (default\: temporary)]:DIR:_files -/' \
                        '1:STATE_DIR:_files -/'
                    ;;
                digest)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--output[*.jsonl or *.jsonl.gz; a file that is there is replaced]:FILE:_files' \
                        '--application[only this application.id]:ID: ' \
                        '--task[only this task, for example 0_1]:N_M: ' \
                        '--store[only stores of this name]:NAME: ' \
                        '*--kind[kind of a store that has no entry to show it; may be repeated]:STORE=KIND: ' \
                        '--buckets[buckets of each database, a power of two up to 1048576 (default 4096)]:N: ' \
                        '--pod[pod (default\: POD_NAME, else the host name)]:NAME: ' \
                        '--namespace[namespace (default\: POD_NAMESPACE)]:NAME: ' \
                        '--cluster[cluster or region]:NAME: ' \
                        '--work[place for the private directory (default\: temporary)]:DIR:_files -/' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: ' \
                        '1:STATE_DIR:_files -/'
                    ;;
                diff)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--json[one store per line]' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: ' \
                        '1:DIR_A:_files -/' \
                        '2:DIR_B:_files -/'
                    ;;
                replay)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--pod[pod that events carry (default\: pod)]:NAME: ' \
                        '--events[write what the agent would have shipped]:DIR:_files -/' \
                        '--quiet-period[how long the clock runs on after the last operation\: 90s, 20m (default), 1h]:TIME: ' \
                        '--process-visible[let detectors see the process and its release, as with a shared process namespace]' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: ' \
                        '--json[a line per finding, per incident, and a summary]' \
                        '--fail-on[exit 1 if an open finding is at least this severe\: info, warning, critical (default)]:SEVERITY:(info warning critical)' \
                        '--verbose[remarks, too, and every finding with its evidence]' \
                        '--top[print the N worst incidents only; their number is always said]:N: ' \
                        '1:TRACE.jsonl.gz:_files'
                    ;;
                bundle)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '*--set[a setting of all applications, or of APP\: processing_guarantee, kafka_streams_version, num_standby_replicas, ...; may be repeated]:\[APP\:\]KEY=VALUE: ' \
                        '--properties[the application'\''s own .properties file\: its settings count where --set and --config say nothing]:FILE:_files' \
                        '--config[all settings\: \[agent\], \[application\], \[application."ID"\], \[detectors\], ...]:FILE.toml:_files' \
                        '*--disable-detector[open no finding of this detector, and say so wherever findings are shown; may be repeated]:ID=REASON: ' \
                        '1:STATE_DIR:_files -/' \
                        '2:OUT.tar.gz:_files'
                    ;;
                completion)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '1:SHELL:(bash zsh fish)'
                    ;;
            esac
            ;;
    esac
}
if [[ $funcstack[1] == _statewarden ]]; then _statewarden "$@"; else compdef _statewarden statewarden; fi
