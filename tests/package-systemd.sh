#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the life of the Debian package under systemd, which boots in a container of
# systemd-nspawn with a network of its own. tests/package.sh calls it:
#
#   tests/package-systemd.sh CHROOT OLD.deb NEW.deb
#
# CHROOT is copied, not changed. Exits with 77 and the reason where systemd cannot be booted.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
base=$1 old=$2 new=$3
work=$(mktemp -d)
inside=$work/chroot
cgroup=qdqd-test.$$
nspawn=
systemd=
url=http://127.0.0.1:8383
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

ok() { echo "ok - $*"; }
fail() {
    echo "not ok - $*"
    [ -z "$systemd" ] || booted journalctl --no-pager -o short -n 30 || true
    exit 1
}
without() { echo "# not tried under systemd: $*"; exit 77; }

# The cgroup hierarchies of systemd; the first is its own, or the only one.
hierarchies() {
    [ -d /sys/fs/cgroup/systemd ] || { echo /sys/fs/cgroup; return; }
    echo /sys/fs/cgroup/systemd
    [ ! -d /sys/fs/cgroup/unified ] || echo /sys/fs/cgroup/unified
}

finish() {
    local top
    if [ -n "$nspawn" ]; then
        # Ends both processes, so that a container that was killed from outside leaves none behind.
        [ -z "$systemd" ] || kill -KILL "$systemd" 2>/dev/null || true
        for _ in $(seq 50); do kill -0 "$nspawn" 2>/dev/null || break; sleep 0.1; done
        kill -KILL "$nspawn" 2>/dev/null || true
        wait "$nspawn" 2>/dev/null || true
    fi
    for top in $(hierarchies); do
        for _ in $(seq 50); do
            [ -d "$top/$cgroup" ] || break
            find "$top/$cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null || sleep 0.1
        done
    done
    rm -rf --one-file-system "$work"
}
trap finish EXIT

booted() {
    nsenter --target "$systemd" --all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
ask() { nsenter --target "$systemd" --net curl -sS --fail-with-body "$@"; }
property() { booted systemctl show qdqd --property "$1" --value; }
log_has() { booted journalctl --no-pager -o cat | grep "$1" >/dev/null; }
eventually() {
    local what=$1
    shift
    for _ in $(seq 150); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    fail "$what"
}
is() { [ "$(property "$1")" = "$2" ]; }
# set_up NAME LINE...: a drop-in of the unit
set_up() {
    mkdir -p "$inside/etc/systemd/system/qdqd.service.d"
    printf '%s\n' '[Service]' "${@:2}" >"$inside/etc/systemd/system/qdqd.service.d/$1.conf"
    booted systemctl daemon-reload
}

# --- a root with systemd in it -------------------------------------------------------
command -v systemd-nspawn >/dev/null || without "systemd-nspawn is not installed (systemd-container)"
cp -a --reflink=auto "$base" "$inside"
cp /etc/resolv.conf "$inside/etc/" 2>/dev/null || true
# debootstrap makes none, and a carrier looks the name up.
echo '127.0.0.1 localhost' >"$inside/etc/hosts"
chroot "$inside" apt-get -qq update
chroot "$inside" apt-get -qq -y --no-install-recommends install systemd systemd-sysv \
    >"$work/apt.log" 2>&1 || { tail "$work/apt.log"; fail "installing systemd"; }
cp "$old" "$inside/opt/old.deb"
cp "$new" "$inside/opt/new.deb"
# Installs the dependencies now, because there is no network later.
chroot "$inside" apt-get -qq -y --no-install-recommends --download-only \
    -o APT::Keep-Downloaded-Packages=true install /opt/old.deb >"$work/apt.log" 2>&1 ||
    { tail "$work/apt.log"; fail "fetching what the package depends on"; }

# --- boot ----------------------------------------------------------------------------
# Boots in a cgroup of its own. The filter of systemd-nspawn is off, because it lacks some of
# the system calls of a host.
(
    for top in $(hierarchies); do
        mkdir "$top/$cgroup" && echo "$BASHPID" >"$top/$cgroup/cgroup.procs"
    done
    exec env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_SECCOMP=0 setsid systemd-nspawn \
        --quiet --boot --directory="$inside" --keep-unit --register=no --private-network \
        --link-journal=no --console=pipe --resolv-conf=off </dev/null
) >"$work/boot.log" 2>&1 &
nspawn=$!
for _ in $(seq 100); do
    systemd=$(pgrep -P "$nspawn" -x systemd || true)
    [ -z "$systemd" ] || ! booted systemctl is-system-running --wait >"$work/state" 2>&1 || break
    kill -0 "$nspawn" 2>/dev/null || break
    sleep 0.3
done
[ "$(cat "$work/state" 2>/dev/null)" = running ] ||
    { tail -5 "$work/boot.log"; without "systemd does not come up in systemd-nspawn"; }
ok "booted: $(booted systemctl --version | head -1)"

# --- install, start, quantize --------------------------------------------------------
install_package() {
    booted apt-get -qq -y -o Dpkg::Options::=--force-confold --no-install-recommends \
        --allow-downgrades install "/opt/$1.deb" >"$work/apt.log" 2>&1 ||
        { tail -20 "$work/apt.log"; fail "installing $1"; }
}
quantize() {
    ask -D "$work/head" -o "$work/$1" --form fresh=true \
        --form model=@"$root/tests/data/glyph_resnet.onnx" \
        --form calibration=@"$root/tests/data/calib_256.npz" "$url/v1/quantize?wait=120" ||
        { cat "$work/$1"; fail "quantizing"; }
    [ ! -e "$work/first.onnx" ] || cmp "$work/first.onnx" "$work/$1" || fail "another model"
}
install_package old
is ActiveState inactive || fail "the package starts by itself"
# A worker whose cage is incomplete does no work.
sed -i 's/^#cage = .*/cage = require/' "$inside/etc/qdqd.conf"
booted systemctl --quiet enable --now qdqd
is SubState running || fail "not started"
ask -o "$work/ready" "$url/readyz" || fail "not ready when systemd says that it is started"
quantize first.onnx
job=$(sed -n 's/^[Ll]ocation: \(.*\)\r$/\1/p' "$work/head")
log_has "event=job_succeeded job=${job##*/}" || fail "no line about the job in the journal"
ok "Type=notify; quantized with workers.cage = require: $(stat -c %s "$work/first.onnx") bytes"

# --- what the unit takes away --------------------------------------------------------
daemon() { pgrep --ns "$systemd" --nslist pid -x qdqd | head -1; } # its id outside the container
status=$(cat "/proc/$(daemon)/status")
for line in 'CapEff:.0000000000000000' 'CapBnd:.0000000000000000' 'NoNewPrivs:.1' 'Seccomp:.2'; do
    grep -q "^$line" <<<"$status" || fail "$line: $(grep "${line%%:*}" <<<"$status")"
done
hidden() { ! nsenter --target "$(daemon)" --mount "$@" 2>/dev/null; }
hidden touch /usr/x /etc/x /var/x || fail "files of the system can be written"
hidden ls /root/.bashrc || fail "/root is not hidden"
hidden test -e /dev/tty1 || fail "devices are not hidden"
[ "$(readlink "/proc/$(daemon)/ns/user")" != "$(readlink "/proc/$systemd/ns/user")" ] ||
    fail "PrivateUsers= does nothing"
[ "$(stat -c '%U %a' "$inside/var/lib/qdqd" 2>/dev/null | sed 's/^.* //')" = 700 ] || fail "state folder"
ok "no capability, a filter, users of its own; system, homes and devices out of reach"

# Runs the unit program of the cage in the unit's sandbox. Some actions that it tries outside
# a cage (`outside`) are forbidden by the unit, and it expects to see other processes. The process
# that judges makes code, which the drop-in for OpenVINO allows.
walls=$root/build/tests/unit/daemon/test_cage
if [ -x "$walls" ]; then
    install -m 755 "$walls" "$inside/opt/walls"
    ldd "$walls" | awk '/libsubunit/ { print $3 }' | xargs -r cp -t "$inside/opt"
    sed -e 's/^Type=.*/Type=oneshot/; /^WatchdogSec\|^Restart\|^Exec\|Directory\|^ProtectProc/d' \
        -e 's|^UMask|ExecStart=/opt/walls\n&|' \
        -e 's|^User|Environment=CK_TAP_LOG_FILE_NAME=- LD_LIBRARY_PATH=/opt\n&|' \
        "$inside/usr/lib/systemd/system/qdqd.service" >"$inside/etc/systemd/system/walls.service"
    mkdir -p "$inside/etc/systemd/system/walls.service.d"
    cp "$inside/usr/share/qdqd/openvino.conf" "$inside/etc/systemd/system/walls.service.d/"
    booted systemctl daemon-reload
    booted systemctl start walls 2>/dev/null || true
    booted journalctl -u walls -o cat >"$work/walls"
    ! grep '^not ok' "$work/walls" | grep -v ':outside:' || fail "walls of the cage under the unit"
    held=$(grep -c '^ok .*:holds' "$work/walls" || true)
    [ "$held" -ge 50 ] || { cat "$work/walls"; fail "walls of the cage were not tried"; }
    ok "walls of the cage under the unit: $held hold"
else
    echo "# walls of the cage under the unit: not tried, make -C build check builds $(basename "$walls")"
fi

# --- reload --------------------------------------------------------------------------
pid=$(property MainPID)
sed -i 's/^#max = .*/max = 77/' "$inside/etc/qdqd.conf"
booted systemctl reload qdqd || fail "reload"
eventually "reload changes nothing" log_has 'event=setting_changed key=queue.max'
sed -i 's/^max = 77/max = many/' "$inside/etc/qdqd.conf"
! booted systemctl reload qdqd 2>/dev/null || fail "a reload of a file with a mistake succeeds"
log_has 'qdqd.conf.*queue.max' || fail "the journal does not say what is wrong"
booted journalctl --no-pager -u qdqd -p err >"$work/errors"
! grep 'event=setting_changed' "$work/errors" || fail "what is no error has its priority"
[ "$(property MainPID)" = "$pid" ] && is SubState running || fail "the mistake ended the daemon"
! booted systemctl restart qdqd 2>/dev/null || fail "a start with a mistake succeeds"
sleep 4
is NRestarts 0 && is ActiveState failed || fail "a mistake is started again and again"
sed -i 's/^max = many/max = 77/' "$inside/etc/qdqd.conf"
booted systemctl start qdqd || fail "start after the mistake"
ok "reload; a mistake in the settings is said, and costs nothing"

# --- watchdog ------------------------------------------------------------------------
set_up watchdog WatchdogSec=4
booted systemctl restart qdqd
sleep 9
is NRestarts 0 || fail "systemd restarts a daemon that answers"
kill -STOP "$(daemon)"
eventually "a daemon that stands still is not restarted" is NRestarts 1
eventually "not running after the watchdog" is SubState running
log_has 'Watchdog timeout' || fail "it was not the watchdog"
eventually "not ready after the watchdog" ask "$url/readyz"
quantize again.onnx
ok "watchdog: nine seconds of life, then one that was stopped is started again"

# --- stop with a job that runs -------------------------------------------------------
set_up drain TimeoutStopSec=3
sed -i 's/^#drain_timeout = .*/drain_timeout = 60/' "$inside/etc/qdqd.conf"
booted systemctl restart qdqd
quantize again.onnx
# The worker that was started last belongs to the job's lane; it is stopped for a while.
worker=$(pgrep --ns "$systemd" --nslist pid -x qdqd-worker | tail -1)
kill -STOP "$worker"
id() { printf 'sha256:%s' "$(sha256sum <"$root/tests/data/$1" | cut -d ' ' -f 1)"; }
job2=$(ask -o "$work/job" -w '%header{location}' --json \
    "{\"model\": \"$(id glyph_resnet.onnx)\", \"calibration\": \"$(id calib_256.npz)\", \"fresh\": true}" \
    "$url/v1/jobs")
eventually "the job does not start" log_has "event=job_started job=${job2##*/}"
booted systemctl stop --no-block qdqd
sleep 6
is ActiveState deactivating || fail "systemd did not wait for the job"
kill -CONT "$worker"
eventually "the daemon does not end after the job" is ActiveState inactive
is Result success || fail "stop: $(property Result)"
log_has "event=job_succeeded job=${job2##*/}" || fail "the job was not waited for"
booted rm /etc/systemd/system/qdqd.service.d/drain.conf
booted systemctl daemon-reload
ok "stop: systemd waits for the running job, longer than TimeoutStopSec="

# --- sockets -------------------------------------------------------------------------
booted systemctl --quiet enable --now qdqd.socket
is ActiveState inactive || fail "the socket starts the daemon at once"
ask -o "$work/ready" "$url/readyz" || fail "a connection does not start the daemon"
is SubState running || fail "not started by the socket"
quantize again.onnx
booted systemctl restart --no-block qdqd
ask --retry 0 -o "$work/ready" "$url/healthz" || fail "refused while the daemon is restarted"
booted systemctl --quiet disable --now qdqd.socket qdqd
sed -i 's|^#listen = .*|listen = unix:/run/qdqd/qdqd.sock|' "$inside/etc/qdqd.conf"
booted systemctl start qdqd
[ "$(booted stat -c '%G %a' /run/qdqd /run/qdqd/qdqd.sock | tr '\n' ' ')" = "qdqd 750 qdqd 660 " ] ||
    fail "modes of the Unix socket"
ask -o "$work/ready" --unix-socket "/proc/$systemd/root/run/qdqd/qdqd.sock" http://localhost/readyz ||
    fail "the Unix socket"
sed -i 's|^listen = unix.*|#listen = 127.0.0.1:8383|' "$inside/etc/qdqd.conf"
ok "started by its socket; a Unix socket in /run/qdqd"

# --- upgrade, back, remove, purge ----------------------------------------------------
booted systemctl --quiet enable qdqd
booted systemctl restart qdqd
for version in new old; do
    pid=$(property MainPID)
    install_package "$version"
    [ "$(property MainPID)" != "$pid" ] && is SubState running || fail "$version: not restarted"
    ask -o "$work/kept.onnx" "$url$job/model" && cmp "$work/first.onnx" "$work/kept.onnx" ||
        fail "$version: the job is gone"
    quantize again.onnx
done
booted qdqd --check-config --print | grep '^queue.max = 77' >/dev/null || fail "the changed setting"
ok "upgrade and back while it runs: restarted, jobs and settings are there"
booted apt-get -qq -y remove qdqd >/dev/null 2>&1 || fail "remove"
! booted systemctl is-active --quiet qdqd || fail "it runs after its removal"
[ -z "$(pgrep --ns "$systemd" --nslist pid qdqd)" ] || fail "processes are left"
[ -e "$inside/var/lib/qdqd/qdqd.sqlite3" ] || fail "what was kept is gone"
booted rm -r /etc/systemd/system/qdqd.service.d
booted apt-get -qq -y purge qdqd >/dev/null 2>&1 || fail "purge"
left=$(find "$inside/usr" "$inside/etc" "$inside/var/lib" "$inside/run" -name '*qdq*' | head -5)
[ -z "$left" ] && ! booted getent passwd qdqd || fail "left behind: $left"
ok "removed while it ran, and purged"
