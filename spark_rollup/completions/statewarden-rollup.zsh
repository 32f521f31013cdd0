#compdef statewarden-rollup
# Completion of statewarden-rollup for zsh, generated from its options (make docs).
_statewarden-rollup() {
    local context state line
    local -a commands=(
        'audit:correlate all events; write tables, JSON lines and a report'
        'safe-to-restart:may this pod be restarted?'
        'why:one task across pods\: what is wrong, what to do, its story'
        'coverage:which pods and times were watched'
        'ingest:add agents'\'' events to bronze (Delta tables, by day)'
        'compact:once a day\: join small files, make snapshots, remove old days'
        'verify:compare digests of stores with their changelogs'
        'forget:remove events from bronze, into its quarantine'
        'jars:fetch the jars that Spark needs for bronze or a source'
        'completion:print the completion script of a shell'
    )
    typeset -A opt_args
    _arguments -C \
        '--help[show this help message and exit]' \
        '--version[show version, commit, Spark; then exit]' \
        '1:command:->command' \
        '*::argument:->argument'
    case $state in
        command) _describe -t commands command commands ;;
        argument)
            case $words[1] in
                audit)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--input[a directory with segments, or bronze]:WHERE:_files -/' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]' \
                        '--as-of[ignore what is later than this (default\: the newest event)]:ISO8601: ' \
                        '*--set[override what the agents reported, for application ID or for all; may be repeated]:\[ID\:\]KEY=VALUE: ' \
                        '--look-back[leave out what ended before (midnight UTC, so many days before today), and read a snapshot instead if `compact --snapshots` made one (default\: all, which leaves nothing out)]:DAYS: ' \
                        '--verified[an output of `verify`\: what it proves and refutes is shown with what the rules find]:DIR:_files -/' \
                        '--output[where tables and report go]:DIR:_files -/' \
                        '--json[print one finding per line on stdout]' \
                        '--verbose[print remarks, too, and the findings of each incident]' \
                        '--top[print the N worst incidents (default\: all)]:N: ' \
                        '--textfile[write the metrics there, too (they are always in OUTPUT/metrics.prom)]:FILE:_files' \
                        '--pushgateway[push the metrics there, too]:URL: ' \
                        '--fail-on[exit with 1 if an open finding is at least this severe\: info, warning, critical (default\: critical)]:SEVERITY:(info warning critical)'
                    ;;
                safe-to-restart)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--input[a directory with segments, or bronze]:WHERE:_files -/' \
                        '--from[answer from the last audit'\''s --output\: at once, without Java; it is as old as that audit]:OUT:_files -/' \
                        '--pod[this pod only, task by task]:POD: ' \
                        '--max-age[the answer is `unknown` if the newest event is older\: 90s, 15m, 2h, 1d, or any (default\: 15m)]:AGE: ' \
                        '--namespace[only this namespace, where there are several]:NAME: ' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]' \
                        '--as-of[ignore what is later than this (default\: the newest event)]:ISO8601: ' \
                        '*--set[override what the agents reported, for application ID or for all; may be repeated]:\[ID\:\]KEY=VALUE: ' \
                        '--verified[an output of `verify`\: what it proves and refutes is considered]:DIR:_files -/' \
                        '--look-back[leave out what ended before (midnight UTC, so many days before today), and read a snapshot instead if `compact --snapshots` made one (default\: all, which leaves nothing out)]:DAYS: '
                    ;;
                why)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--application[application, where several have this task]:ID: ' \
                        '--input[a directory with segments, or bronze]:WHERE:_files -/' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]' \
                        '--as-of[ignore what is later than this (default\: the newest event)]:ISO8601: ' \
                        '*--set[override what the agents reported, for application ID or for all; may be repeated]:\[ID\:\]KEY=VALUE: ' \
                        '--namespace[only this namespace, where there are several]:NAME: ' \
                        '1:TASK: '
                    ;;
                coverage)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--input[a directory with segments, or bronze]:WHERE:_files -/' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]' \
                        '--as-of[ignore what is later than this (default\: the newest event)]:ISO8601: ' \
                        '*--set[override what the agents reported, for application ID or for all; may be repeated]:\[ID\:\]KEY=VALUE: ' \
                        '--namespace[only this namespace, where there are several]:NAME: '
                    ;;
                ingest)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--input[directory with *.jsonl(.gz) segments, s3a\://bucket/prefix, or kafka\://host\:port,host\:port/topic]:WHERE:_files -/' \
                        '--bronze[bronze\: a directory, or s3a\://bucket/prefix]:WHERE:_files -/' \
                        '--cluster[the cluster (or region) of the events whose agents name none]:NAME: ' \
                        '--kafka-config[settings of Kafka'\''s Java client]:FILE:_files' \
                        '--trigger[as a stream\: availableNow, or until it is stopped\: '\''processing 60 seconds'\'']:WHEN: ' \
                        '--checkpoint[where the stream keeps its position (default\: in bronze)]:DIR:_files -/' \
                        '--again[ingest again what was ingested already\: this file or directory, or everything; nothing is stored twice]:PATH:_files' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]'
                    ;;
                compact)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--bronze[bronze\: a directory, or s3a\://bucket/prefix]:WHERE:_files -/' \
                        '--retain[remove the events of older days, as far as a snapshot covers them]:DAYS: ' \
                        '--snapshots[also write the snapshots that `audit --look-back` reads instead of finished days]' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]'
                    ;;
                verify)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--digests[what `statewarden digest` wrote (*.jsonl, *.jsonl.gz below a directory or s3a\://bucket/prefix), or bronze, for what agents shipped]:WHERE:_files -/' \
                        '--kafka[host\:port,host\:port of the applications'\'' cluster; without it, copies are only compared with each other]:BROKERS: ' \
                        '--kafka-config[settings of Kafka'\''s Java client]:FILE:_files' \
                        '--events[bronze, or a directory with agents'\'' segments\: what agents suspect is proved or refuted (default\: the bronze of --digests)]:WHERE:_files -/' \
                        '--keep[where what changelogs said is kept\: a copy that is still at its offset is compared without reading again]:DIR:_files -/' \
                        '--output[where tables go]:DIR:_files -/' \
                        '--json[print one finding per line on stdout]' \
                        '--fail-on[exit with 1 if a finding is at least this severe\: info, warning, critical (default\: critical)]:SEVERITY:(info warning critical)' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]'
                    ;;
                forget)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--bronze[bronze\: a directory, or s3a\://bucket/prefix]:WHERE:_files -/' \
                        '*--file[a damaged file of bronze, as an error named it; `ingest --again` brings its events back]:PATH:_files' \
                        '*--id[an event; may be repeated]:ID: ' \
                        '*--pod[all events of a pod; may be repeated]:POD: ' \
                        '--namespace[of these pods\: where several namespaces have one]:NAME: ' \
                        '--since[of these pods\: from this time on]:ISO8601: ' \
                        '--until[of these pods\: before this time]:ISO8601: ' \
                        '--endpoint[object store that is not AWS'\''s own]:URL: ' \
                        '--region[the object store'\''s region]:REGION: ' \
                        '--jars[where jars are (see `jars`)]:DIR:_files -/' \
                        '*--spark-conf[a setting of Spark; may be repeated]:KEY=VALUE: ' \
                        '--progress[show Spark'\''s progress on stderr]' \
                        '--debug[show the trace of a failure, and what Spark logs]'
                    ;;
                jars)
                    _arguments \
                        '--help[show this help message and exit]' \
                        '--jars[where to (default\: the user'\''s cache directory)]:DIR:_files -/' \
                        '--repository[Maven repository (default\: what Maven is set up for)]:URL: ' \
                        '--names[print the Maven coordinates and fetch nothing]' \
                        '1:KIND:(delta s3a kafka)'
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
if [[ $funcstack[1] == _statewarden-rollup ]]; then _statewarden-rollup "$@"; else compdef _statewarden-rollup statewarden-rollup; fi
