#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the life of the Debian package in a chroot that debootstrap makes: install, start as
# the package's user, quantize, upgrade over a populated state folder, continue, remove,
# purge. Also checks the unit with systemd's tools, and repeats the tests under a systemd in
# a container where systemd-nspawn can boot one (tests/package-systemd.sh).
#
#   sudo tests/package.sh [CHROOT]
#
# Run it by hand, as root, after tools/build. It downloads some hundred MB from Debian's
# archive and takes minutes. CHROOT is a folder that debootstrap has made before
# (--variant=minbase); it is copied, not changed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
base=${1:-}
. /etc/os-release
[ "$(id -u)" = 0 ] || { echo "package.sh: has to be root" >&2; exit 2; }
port=18383
pid=
work=$(mktemp -d)
inside=$work/chroot
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

finish() {
    [ -z "$pid" ] || { kill "$pid" && wait "$pid"; } 2>/dev/null || true
    ! mountpoint -q "$inside/proc" || umount "$inside/proc"
    rm -rf --one-file-system "$work"
}
trap finish EXIT

passed=0 skipped=0
ok() {
    echo "ok - $*"
    passed=$((passed + 1))
}
not_tried() {
    echo "# not tried: $*"
    skipped=$((skipped + 1))
}
fail() { echo "not ok - $*"; exit 1; }
in_chroot() { chroot "$inside" "$@"; }

start() {
    # Uses the unit's user and command line, without systemd. Each command executes the next,
    # so this is the daemon's own process.
    chroot "$inside" setpriv --reuid qdqd --regid qdqd --clear-groups \
        qdqd --listen "127.0.0.1:$port" --state-dir /var/lib/qdqd \
        >>"$work/log" 2>&1 &
    pid=$!
    for _ in $(seq 200); do
        if curl -sf -o "$work/ready" "http://127.0.0.1:$port/readyz"; then return; fi
        sleep 0.1
    done
    cat "$work/log"
    fail "the daemon does not become ready"
}

stop() {
    kill "$pid"
    wait "$pid" || fail "the daemon ended with $?"
    pid=
}

install_package() {
    cp "$1" "$inside/tmp/qdqd.deb"
    in_chroot apt-get -qq -y -o Dpkg::Options::=--force-confold \
        --no-install-recommends --allow-downgrades install /tmp/qdqd.deb >"$work/apt.log" 2>&1 ||
        { tail -20 "$work/apt.log"; fail "installing ${1##*/}"; }
}

"$root/tools/package" 2>"$work/package.log" || { cat "$work/package.log"; exit 1; }
"$root/tools/package" +1 2>>"$work/package.log"
old=$(ls "$root"/build/qdqd_*[0-9]_"$(dpkg --print-architecture)".deb | grep -v '+1_')
new=$(ls "$root"/build/qdqd_*+1_"$(dpkg --print-architecture)".deb)

# --- the unit ------------------------------------------------------------------------
if command -v systemd-analyze >/dev/null; then
    mkdir -p "$work/unit"
    dpkg-deb -x "$old" "$work/unpacked"
    cp "$work/unpacked/usr/lib/systemd/system/qdqd.service" "$work/unit/"
    score=$(systemd-analyze security --offline=true "$work/unit/qdqd.service" 2>/dev/null |
        sed -n 's/.*exposure level for .*: \([0-9.]*\).*/\1/p')
    awk -v score="$score" 'BEGIN { exit !(score > 0 && score <= 2.0) }' ||
        fail "systemd-analyze security: $score"
    ok "systemd-analyze security: $score"
    ! systemd-analyze verify "$work/unit/qdqd.service" 2>&1 |
        grep -v 'is not executable\|Command .man' | grep 'qdqd.service:' || fail "systemd-analyze verify"
    ok "systemd-analyze verify"
else
    not_tried "the unit, because there is no systemd-analyze here"
fi

# --- install -------------------------------------------------------------------------
if [ -z "$base" ]; then
    base=$work/base
    debootstrap --variant=minbase "$VERSION_CODENAME" "$base" >"$work/debootstrap.log"
fi
cp -a --reflink=auto "$base" "$inside"
mount -t proc proc "$inside/proc"
cp /etc/resolv.conf "$inside/etc/" 2>/dev/null || true
in_chroot apt-get -qq update
install_package "$old"
[ "$(in_chroot stat -c '%U:%G %a' /var/lib/qdqd)" = "qdqd:qdqd 700" ] || fail "the state folder"
in_chroot qdqd --check-config || fail "the installed settings"
for path in /usr/lib/systemd/system/qdqd.service /usr/lib/sysusers.d/qdqd.conf \
    /usr/lib/tmpfiles.d/qdqd.conf /usr/share/man/man8/qdqd.8.gz \
    /usr/share/man/man5/qdqd.conf.5.gz /etc/qdqd.conf; do
    [ -e "$inside$path" ] || fail "$path is not there"
done
! in_chroot ldd /usr/sbin/qdqd /usr/bin/qdq /usr/lib/qdqd/libonnxruntime.so.1 |
    grep 'not found' || fail "a library is missing"
while read -r name; do
    in_chroot sh -c "ldconfig -p | grep -qw '$name'" || fail "$name, which qdq loads, is missing"
done < <(sed -n 's/^#define SONAME_[A-Z0-9]* "\(.*\)"/\1/p' "$root/build-package/generated/config.h")
ok "installed, with what it depends on"

# --- start and quantize --------------------------------------------------------------
url=http://127.0.0.1:$port
quantize() {
    curl -sS --fail-with-body -D "$work/head" -o "$work/$1" \
        --form model=@"$root/tests/data/glyph_resnet.onnx" \
        --form calibration=@"$root/tests/data/calib_256.npz" "$url/v1/quantize?wait=120" ||
        { cat "$work/$1" "$work/log"; fail "quantizing"; }
}
start
curl -sf "$url/version"
echo
quantize first.onnx
job=$(sed -n 's/^[Ll]ocation: \(.*\)\r$/\1/p' "$work/head")
ok "started and quantized: $(stat -c %s "$work/first.onnx") bytes, $job"

# --- upgrade -------------------------------------------------------------------------
sed -i 's/^#max = .*/max = 77/' "$inside/etc/qdqd.conf"
stop
install_package "$new"
start
curl -sf "$url$job/model" -o "$work/kept.onnx" || fail "the job is gone"
cmp "$work/first.onnx" "$work/kept.onnx" || fail "the job's model is another"
in_chroot qdqd --check-config --print | grep '^queue.max = 77' >/dev/null || fail "the changed setting"
quantize second.onnx
cmp "$work/first.onnx" "$work/second.onnx" || fail "the new version makes another model"
ok "upgraded to $(in_chroot dpkg-query -W -f '${Version}' qdqd): jobs and settings are there"

# --- and back ------------------------------------------------------------------------
stop
install_package "$old"
start
curl -sf "$url$job/model" -o "$work/kept.onnx" && cmp "$work/first.onnx" "$work/kept.onnx" ||
    fail "after going back the job is gone"
stop
ok "went back"

# --- remove, purge -------------------------------------------------------------------
in_chroot apt-get -qq -y remove qdqd >/dev/null 2>&1
[ ! -e "$inside/usr/sbin/qdqd" ] && [ -e "$inside/var/lib/qdqd/qdqd.sqlite3" ] &&
    [ -e "$inside/etc/qdqd.conf" ] || fail "remove"
ok "removed; what was kept is there"
in_chroot apt-get -qq -y purge qdqd >/dev/null 2>&1
[ ! -e "$inside/var/lib/qdqd" ] && [ ! -e "$inside/etc/qdqd.conf" ] || fail "purge"
! in_chroot getent passwd qdqd || fail "the user is still there"
left=$(find "$inside/usr" "$inside/etc" -name '*qdq*' | head -5)
[ -z "$left" ] || fail "left behind: $left"
ok "purged; nothing is left"

# --- under systemd -------------------------------------------------------------------
status=0
"$root/tests/package-systemd.sh" "$base" "$old" "$new" || status=$?
case $status in
0) ok "under systemd" ;;
77) not_tried "the package under systemd" ;;
*) exit "$status" ;;
esac
# As pytest's last line, for the sums of tools/check.
echo "$passed passed, $skipped skipped"
