# SPDX-License-Identifier: GPL-2.0-or-later
# A Debian tree with real programs on an ext4 image of the simulated drives' size, made once and kept
# in $BUILD/images. Source after lib.sh.

TREE_IMAGE=$BUILD/images/tree.img
TREE_BYTES=80000000000
TREE_PACKAGES=libreoffice-writer,fontconfig
# what the tree is made from; another recipe makes it anew
TREE_RECIPE="1 bookworm $TREE_PACKAGES"

# The host's Debian sources, so that a local mirror is used where there is one
tree_sources() {
        local file
        for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
                [ -s "$file" ] || continue
                if grep -qE '(^|[[:space:]])bookworm([[:space:]]|$)' "$file" && ! grep -q nodesource "$file"; then
                        case $file in
                        *.sources) grep -q '^Suites:.*bookworm' "$file" || continue ;;
                        esac
                        printf '%s\n' "$file"
                        return
                fi
        done
}

# tree_chroot MNT WORD...: inside the tree, with /proc, /dev and a /tmp of its own
tree_bind() {
        mount -t proc proc "$1/proc" && mount --rbind --make-rslave /dev "$1/dev" &&
                mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
}
tree_unbind() {
        local part
        for part in tmp dev proc; do
                mountpoint -q "$1/$part" && { umount -R "$1/$part" 2> /dev/null || umount -R -l "$1/$part"; }
        done
        return 0
}
tree_env() { env -i HOME=/root USER=root LOGNAME=root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"; }
tree_chroot() {
        local mnt=$1
        shift
        tree_env chroot "$mnt" "$@"
}

# Makes $TREE_IMAGE when it is not there; about a minute and a half. Messages on standard error.
tree_make() {
        local sources loop mnt=$BUILD/images/tree-mnt work=$TREE_IMAGE.new
        if [ -e "$TREE_IMAGE" ] && [ "$(cat "$TREE_IMAGE.recipe" 2> /dev/null)" = "$TREE_RECIPE" ]; then
                return 0
        fi
        mkdir -p "$mnt"
        rm -f "$TREE_IMAGE" "$TREE_IMAGE.recipe" "$work"
        sources=$(tree_sources)
        truncate -s $TREE_BYTES "$work" || return 1
        mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$work" || return 1
        loop=$(attach "$work") || return 1
        mount "$loop" "$mnt" || return 1
        undo umount -R -l "$mnt"
        # shellcheck disable=SC2086
        mmdebstrap --variant=minbase --skip=check/empty --aptopt='Acquire::Languages "none"' \
                --include=$TREE_PACKAGES bookworm "$mnt" $sources > "$BUILD/images/mmdebstrap.log" 2>&1 || {
                tail -5 "$BUILD/images/mmdebstrap.log" >&2
                echo "the Debian tree could not be made; the log is $BUILD/images/mmdebstrap.log" >&2
                return 1
        }
        mkdir -p "$mnt/srv/headstart"
        cat > "$mnt/srv/headstart/page.html" <<'PAGE'
<!DOCTYPE html><html><head><meta charset="utf-8"><title>A page</title>
<style>body { font: 16px sans-serif; margin: 3em } td { border: 1px solid; padding: .3em }</style></head>
<body><h1>A page for the demonstration</h1><p>Some text, a table, a drawing.</p>
<table><tr><td>one</td><td>two</td></tr><tr><td>three</td><td>four</td></tr></table>
<svg width="200" height="100"><circle cx="50" cy="50" r="40" fill="teal"/></svg></body></html>
PAGE
        umount "$mnt" && losetup -d "$loop" || return 1
        mv "$work" "$TREE_IMAGE" && echo "$TREE_RECIPE" > "$TREE_IMAGE.recipe"
}

# tree_install MNT PROGRAM: installs the package that holds PROGRAM when the tree lacks it
tree_install() {
        local mnt program=$2 package= sources apt
        mnt=$(realpath "$1")
        tree_chroot "$mnt" sh -c "command -v -- '$program'" > /dev/null 2>&1 && return 0
        if command -v "$program" > /dev/null; then
                package=$(dpkg-query -S "$(readlink -f "$(command -v "$program")")" 2> /dev/null | head -1 | cut -d: -f1)
        fi
        package=${package:-$program}
        echo "installing $package into the tree" >&2
        # apt and the sources of this machine, working on the tree's dpkg
        sources=$(tree_sources)
        apt=(env DEBIAN_FRONTEND=noninteractive apt-get
                -o "Dir::State=$mnt/var/lib/apt" -o "Dir::State::status=$mnt/var/lib/dpkg/status"
                -o "Dir::Cache=$mnt/var/cache/apt" -o "Dir::Etc::sourcelist=$sources"
                -o Dir::Etc::sourceparts=- -o "DPkg::Options::=--root=$mnt"
                -o DPkg::Chroot-Directory=/ -o APT::Sandbox::User=root)
        mkdir -p "$mnt/var/lib/apt/lists/partial" "$mnt/var/cache/apt/archives/partial"
        if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$package" &&
                "${apt[@]}" clean; } > "$BUILD/images/install.log" 2>&1; then
                tail -5 "$BUILD/images/install.log" >&2
                echo "no package $package could be installed into the tree" >&2
                return 1
        fi
        tree_chroot "$mnt" sh -c "command -v -- '$program'" > /dev/null 2>&1 || {
                echo "the package $package has no program $program" >&2
                return 1
        }
}
