# Completion of statewarden-rollup for bash, generated from its options (make docs).
_statewarden_rollup() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i
    COMPREPLY=()
    # bash splits --option=value into three words
    if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi
    done
    local options='--help --version' kind=words words='audit safe-to-restart why coverage ingest compact verify forget jars completion'
    case $command in
        audit) options='--help --input --endpoint --region --jars --spark-conf --progress --debug --as-of --set --look-back --verified --output --json --verbose --top --textfile --pushgateway --fail-on' kind=nothing ;;
        safe-to-restart) options='--help --input --from --pod --max-age --namespace --endpoint --region --jars --spark-conf --progress --debug --as-of --set --verified --look-back' kind=nothing ;;
        why) options='--help --application --input --endpoint --region --jars --spark-conf --progress --debug --as-of --set --namespace' kind=nothing ;;
        coverage) options='--help --input --endpoint --region --jars --spark-conf --progress --debug --as-of --set --namespace' kind=nothing ;;
        ingest) options='--help --input --bronze --cluster --kafka-config --trigger --checkpoint --again --endpoint --region --jars --spark-conf --progress --debug' kind=nothing ;;
        compact) options='--help --bronze --retain --snapshots --endpoint --region --jars --spark-conf --progress --debug' kind=nothing ;;
        verify) options='--help --digests --kafka --kafka-config --events --keep --output --json --fail-on --endpoint --region --jars --spark-conf --progress --debug' kind=nothing ;;
        forget) options='--help --bronze --file --id --pod --namespace --since --until --endpoint --region --jars --spark-conf --progress --debug' kind=nothing ;;
        jars) options='--help --jars --repository --names' kind=words words='delta s3a kafka' ;;
        completion) options='--help' kind=words words='bash zsh fish' ;;
    esac
    case "$command $prev" in
        'audit --input' | 'audit --jars' | 'audit --verified' | 'audit --output' | 'safe-to-restart --input' | 'safe-to-restart --from' | 'safe-to-restart --jars' | 'safe-to-restart --verified' | 'why --input' | 'why --jars' | 'coverage --input' | 'coverage --jars' | 'ingest --input' | 'ingest --bronze' | 'ingest --checkpoint' | 'ingest --jars' | 'compact --bronze' | 'compact --jars' | 'verify --digests' | 'verify --events' | 'verify --keep' | 'verify --output' | 'verify --jars' | 'forget --bronze' | 'forget --jars' | 'jars --jars') kind=directories ;;
        'audit --endpoint' | 'audit --region' | 'audit --spark-conf' | 'audit --as-of' | 'audit --set' | 'audit --look-back' | 'audit --top' | 'audit --pushgateway' | 'safe-to-restart --pod' | 'safe-to-restart --max-age' | 'safe-to-restart --namespace' | 'safe-to-restart --endpoint' | 'safe-to-restart --region' | 'safe-to-restart --spark-conf' | 'safe-to-restart --as-of' | 'safe-to-restart --set' | 'safe-to-restart --look-back' | 'why --application' | 'why --endpoint' | 'why --region' | 'why --spark-conf' | 'why --as-of' | 'why --set' | 'why --namespace' | 'coverage --endpoint' | 'coverage --region' | 'coverage --spark-conf' | 'coverage --as-of' | 'coverage --set' | 'coverage --namespace' | 'ingest --cluster' | 'ingest --trigger' | 'ingest --endpoint' | 'ingest --region' | 'ingest --spark-conf' | 'compact --retain' | 'compact --endpoint' | 'compact --region' | 'compact --spark-conf' | 'verify --kafka' | 'verify --endpoint' | 'verify --region' | 'verify --spark-conf' | 'forget --id' | 'forget --pod' | 'forget --namespace' | 'forget --since' | 'forget --until' | 'forget --endpoint' | 'forget --region' | 'forget --spark-conf' | 'jars --repository') kind=nothing ;;
        'audit --textfile' | 'ingest --kafka-config' | 'ingest --again' | 'verify --kafka-config' | 'forget --file') kind=files ;;
        'audit --fail-on' | 'verify --fail-on') kind=words words='info warning critical' ;;
        *) if [[ $cur == -* ]]; then kind=words words=$options; fi ;;
    esac
    case $kind in
        words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
        files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
}
complete -F _statewarden_rollup statewarden-rollup
