# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers of the root tests and of the demonstration. Source it from the repository's top:
#
#   . tests/lab/lib.sh
#   need_root                 # prints "1..0 # SKIP reason" and exits 0 for a normal user
#   plan 12
#   lab_begin                 # makes $LAB, a folder of its own below $BUILD/tmp; cleaned up on exit
#   image=$(new_image NAME SIZE [mkfs.ext4 options...])
#   loop=$(attach "$image")   # detached on exit
#   lab_mount "$loop" "$LAB/mnt" [mount options...]    # unmounted on exit
#   check "what is tested" command...                  # ok when the command succeeds
#   is "what is tested" GOT EXPECTED
#
# What was attached, mounted or started is remembered in files below $LAB, so that subshells count,
# and undone in the opposite order by the exit trap: also after a failure or a signal.

# Everything runs in a mount namespace of its own: nobody else's namespace can keep an image mounted (then a
# start after a fresh mount would not be cold), and whatever is still mounted goes with the last process.

if [ "$(id -u)" -eq 0 ] && [ -z "${LAB_NAMESPACE:-}" ] && [ "${BASH_SOURCE[0]}" != "$0" ]; then
        LAB_NAMESPACE=1 exec unshare --mount --propagation private bash "$0" "$@"
fi

set -u
BUILD=${BUILD:-build}
# a machine that nobody has traced on yet; in this namespace only
if [ -n "${LAB_NAMESPACE:-}" ] && [ ! -d /sys/kernel/tracing/events ]; then
        mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null
fi
HEADSTART=$BUILD/headstart
lab_count=0
export LC_ALL=C.UTF-8

plan() { echo "1..$1"; }
pass() { lab_count=$((lab_count + 1)); echo "ok $lab_count - $1"; }
fail() {
        lab_count=$((lab_count + 1))
        echo "not ok $lab_count - $1"
        [ $# -gt 1 ] && printf '%s\n' "$2" | sed 's/^/# /'
        return 0
}
skip() { lab_count=$((lab_count + 1)); echo "ok $lab_count - $1 # SKIP $2"; }
check() {
        local text=$1 output status
        shift
        output=$("$@" 2>&1); status=$?
        if [ $status -eq 0 ]; then pass "$text"; else fail "$text" "status $status of: $*
$output"; fi
}
is() {
        if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:      $2
expected: $3"; fi
}
# like TEXT GOT REGEX
like() {
        if printf '%s' "$2" | grep -qE -- "$3"; then pass "$1"; else fail "$1" "got:     $2
pattern: $3"; fi
}

need_root() {
        if [ "$(id -u)" -ne 0 ]; then echo "1..0 # SKIP needs root (loop devices and mounts)"; exit 0; fi
        if [ ! -e /dev/loop-control ]; then echo "1..0 # SKIP needs loop devices"; exit 0; fi
}

lab_begin() {
        mkdir -p "$BUILD/tmp"
        LAB=$(mktemp -d "$(realpath "$BUILD")/tmp/lab-XXXXXX") || exit 1
        LAB_PID=$BASHPID
        : > "$LAB/.undo"
        trap lab_end EXIT
        trap 'exit 130' INT TERM HUP
}
# undo WORD...: a command run on exit, last first
undo() { printf '%q ' "$@" >> "$LAB/.undo"; printf '\n' >> "$LAB/.undo"; }
lab_end() {
        local status=$?
        # a subshell that a signal met before it had put the traps away
        [ "$BASHPID" = "$LAB_PID" ] || exit $status
        trap - EXIT INT TERM HUP
        tac "$LAB/.undo" | while IFS= read -r line; do eval "$line" > /dev/null 2>&1; done
        if awk -v lab="$LAB/" 'index($5, lab) == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo; then
                echo "# something is still mounted below $LAB, left there" >&2
        else
                rm -rf "$LAB"
        fi
        exit $status
}

new_image() {
        local image=$LAB/$1.img size=$2
        shift 2
        truncate -s "$size" "$image" && mkfs.ext4 -q -F "$@" "$image" > /dev/null 2>&1 && echo "$image"
}
attach() {
        local loop
        loop=$(losetup -f --show "$@") || return 1
        undo lab_detach "$loop" "$(losetup -nO BACK-FILE "$loop")"
        echo "$loop"
}
# lab_detach LOOP BACKING: only while it is still ours; a number that was given back may be another's by now
lab_detach() { [ "$(losetup -nO BACK-FILE "$1" 2> /dev/null)" != "$2" ] || losetup -d "$1"; }
lab_mount() {
        local device=$1 dir=$2
        shift 2
        mkdir -p "$dir" && mount "$@" "$device" "$dir" && undo umount -l "$dir"
}
# A cold page cache for one file system: unmounted everywhere, then mounted again. A process that is just
# ending (a replay behind a start) may keep it busy for a moment.
lab_remount() {
        local device=$1 dir=$2 try
        shift 2
        for try in $(seq 50); do
                umount "$dir" 2> /dev/null && break
                mountpoint -q "$dir" || break
                sleep 0.1
        done
        "$BUILD/lab/wait-free" "$device" && mount "$@" "$device" "$dir" ||
                { echo "# $dir could not be mounted afresh" >&2; return 1; }
}
json() { python3 -c 'import json,sys
d = json.load(sys.stdin)
for k in sys.argv[1].split("."):
    d = d[int(k)] if isinstance(d, list) else d[k]
print(json.dumps(d) if isinstance(d, (dict, list, bool)) or d is None else d)' "$1"; }
