# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for headstart

_headstart_names() {
        headstart list --null -q ${1:+--state "$1"} 2> /dev/null | tr '\0' '\n'
}

_headstart() {
        local cur prev words cword verb= i state= common='--json --null --root --state --quiet --verbose --help'
        _init_completion -n = 2> /dev/null || {
                cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
                words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
        }
        for ((i = 1; i < cword; i++)); do
                case ${words[i]} in
                --) # what follows is the command
                        if declare -F _command_offset > /dev/null; then
                                _command_offset $((i + 1))
                        else
                                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
                        fi
                        return ;;
                --state) state=${words[i+1]} ;;
                -*) ;;
                *) [ -n "$verb" ] || verb=${words[i]} ;;
                esac
        done
        case $prev in
        --root|--state|--cwd) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
        -o|--list|--before) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
        --why-source) mapfile -t COMPREPLY < <(compgen -W 'auto bpf tracefs' -- "$cur"); return ;;
        --by) mapfile -t COMPREPLY < <(compgen -W 'process file directory package' -- "$cur"); return ;;
        --order) mapfile -t COMPREPLY < <(compgen -W 'auto time block random' -- "$cur"); return ;;
        --unit) mapfile -t COMPREPLY < <(compgen -W 'file range auto' -- "$cur"); return ;;
        --method) mapfile -t COMPREPLY < <(compgen -W 'auto move' -- "$cur"); return ;;
        --format)
                case " ${words[*]} " in
                *' export '*) mapfile -t COMPREPLY < <(compgen -W 'list e4rat squashfs-sort nydus-prefetch' -- "$cur") ;;
                *) mapfile -t COMPREPLY < <(compgen -W 'list strace e4rat ureadahead systemd-readahead' -- "$cur") ;;
                esac
                return ;;
        --situation) mapfile -t COMPREPLY < <(compgen -W 'cold whole prefetch relocated warm all' -- "$cur"); return ;;
        --device-model) mapfile -t COMPREPLY < <(compgen -W 'hdd-2006 hdd-laptop hdd-10k hdd ssd-sata nvme sd ebs-gp3' -- "$cur"); return ;;
        --name|--duration|--until|--budget|--deadline|--readahead-kb|--buffer-kb) return ;;
        esac
        if [ -z "$verb" ]; then
                mapfile -t COMPREPLY < <(compgen -W 'record run relocate prefetch measure show list forget import export mark --help --version' -- "$cur")
                return
        fi
        case $cur in
        -*)
                local own=
                case $verb in
                record) own='--system --boot --name --exact --fresh --duration --until --why --why-source --buffer-kb -o --' ;;
                run) own='--name --' ;;
                relocate) own='--dry-run --unit --method --force' ;;
                prefetch) own='--order --budget --deadline --wait' ;;
                measure) own='--list --device-model --order --before --files --situation --readahead-kb' ;;
                show) own='--files --ranges --events --processes --misses --by --before' ;;
                import) own='--format --name --cwd' ;;
                export) own='--format -o' ;;
                esac
                mapfile -t COMPREPLY < <(compgen -W "$own $common" -- "$cur") ;;
        *)
                case $verb in
                relocate|prefetch|show|forget|export) mapfile -t COMPREPLY < <(compgen -W "$(_headstart_names "$state")" -- "$cur") ;;
                measure) mapfile -t COMPREPLY < <(compgen -W "$(_headstart_names "$state")" -- "$cur"; compgen -f -- "$cur") ;;
                import) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
                esac ;;
        esac
}
complete -F _headstart headstart
