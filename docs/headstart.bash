# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for headstart

_headstart_names() {
        headstart list --null -q ${1:+--state "$1"} 2> /dev/null | tr '\0' '\n'
}

_headstart_words() {
        mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_headstart_paths() { # -f files, -d folders
        compopt -o filenames 2> /dev/null
        mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

# words[$1] begins the command of record and run.
_headstart_command() {
        if declare -F _comp_command_offset > /dev/null; then
                _comp_command_offset "$1"
        elif declare -F _command_offset > /dev/null; then
                _command_offset "$1"
        elif ((cword == $1)) && [[ $cur != */* ]]; then
                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        else
                _headstart_paths -f
        fi
}

_headstart_value() {
        case $verb:$1 in
        *:--root|*:--state|*:--cwd|*:--cached) _headstart_paths -d ;;
        *:-o|*:--output|*:--list|measure:--before) _headstart_paths -f ;;
        show:--before)
                compopt -o filenames 2> /dev/null
                mapfile -t COMPREPLY < <(compgen -W "$(_headstart_names "$state")" -- "$cur"; compgen -f -- "$cur") ;;
        *:--by) _headstart_words 'process file directory package' ;;
        prefetch:--order) _headstart_words 'auto time block' ;;
        *:--order) _headstart_words 'auto time block random' ;;
        *:--unit) _headstart_words 'auto range file' ;;
        *:--method) _headstart_words 'auto move' ;;
        *:--why-source) _headstart_words 'auto bpf tracefs' ;;
        export:--format) _headstart_words 'list e4rat squashfs-sort nydus-prefetch' ;;
        *:--format) _headstart_words 'list strace e4rat ureadahead systemd-readahead' ;;
        *:--situation) _headstart_words 'cold cold-1024 cold-8192 whole-files prefetch relocated relocated-prefetch warm all' ;;
        *:--device-model) _headstart_words 'hdd-2006 hdd-laptop hdd-10k hdd ssd-sata nvme sd ebs-gp3 ebs' ;;
        *:--name) _headstart_words "$(_headstart_names "$state")" ;;
        *:--duration|*:--until|*:--budget|*:--deadline|*:--readahead-kb|*:--warm-ms|*:--buffer-kb) ;;
        *) return 1 ;;
        esac
}

# The options of a verb that want a value as the next word.
_headstart_takes_value() {
        [[ $1 == -o || $1 == --@(root|state|cwd|cached|output|list|before|by|order|unit|method|why-source|format|situation|device-model|name|duration|until|budget|deadline|readahead-kb|warm-ms|buffer-kb) ]]
}

_headstart() {
        local cur prev words cword verb= i state= command=
        local common='--json --null --root --state --quiet --verbose --help' own=
        _init_completion -n = 2> /dev/null || {
                cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
                words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
        }
        for ((i = 1; i < cword; i++)); do
                if _headstart_takes_value "${words[i]}"; then
                        # without bash-completion the = of --state=DIR is a word of its own
                        [ "${words[i+1]}" != = ] || ((++i))
                        [[ ${words[i]} != --state && ${words[i-1]} != --state ]] || state=${words[i+1]}
                        ((++i))
                        continue
                fi
                case ${words[i]} in
                --state=*) state=${words[i]#*=} ;;
                --) [[ $verb != @(record|run) ]] || command=$((i + 1)); break ;;
                -*) ;;
                *)
                        if [ -z "$verb" ]; then
                                verb=${words[i]}
                        elif [[ $verb == @(record|run) ]]; then
                                command=$i
                                break
                        fi ;;
                esac
        done
        if [ -n "$command" ]; then # after -- or after the command's first word
                _headstart_command "$command"
                return
        fi
        if [[ $cur == --*=* ]]; then
                prev=${cur%%=*} cur=${cur#*=}
        elif [[ $cur == = ]]; then
                cur=
        elif [[ $prev == = ]]; then
                prev=${words[cword-2]}
        fi
        ! _headstart_value "$prev" || return
        if [ -z "$verb" ]; then
                _headstart_words 'record run relocate prefetch measure show list forget import export mark --help --version'
                return
        fi
        case $verb in
        record) own='--name --exact --system --boot --why --why-source --fresh --duration --until --buffer-kb --output -o --' ;;
        run) own='--name --' ;;
        relocate) own='--dry-run --unit --method --force' ;;
        prefetch) own='--order --budget --deadline --wait --no-uring' ;;
        measure) own='--list --device-model --order --before --files --situation --cached --readahead-kb --warm-ms' ;;
        show) own='--files --ranges --events --processes --misses --by --before' ;;
        list|forget|mark) ;;
        import) own='--format --name --cwd' ;;
        export) own='--format --output -o' ;;
        *) return ;;
        esac
        if [[ $cur == -* ]]; then
                _headstart_words "$own $common"
                return
        fi
        case $verb in
        record|run) _headstart_command "$cword" ;;
        relocate|prefetch|forget|export) _headstart_words "$(_headstart_names "$state")" ;;
        measure|show)
                compopt -o filenames 2> /dev/null
                mapfile -t COMPREPLY < <(compgen -W "$(_headstart_names "$state")" -- "$cur"; compgen -f -- "$cur") ;;
        import) _headstart_paths -f ;;
        esac
}
complete -F _headstart headstart
