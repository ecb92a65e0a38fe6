#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the Containerfile: buildah builds it, and podman runs the image with a token on the
# host's network, until SIGTERM.
#
#   sudo tests/container.sh [CHROOT]
#
# Run it by hand, as root: it needs buildah, podman and crun, and takes some minutes. CHROOT,
# a folder made by debootstrap, replaces Debian's images; without it they are pulled, or made by
# debootstrap where they cannot be. The downloads of tools/build are used again. A missing
# part is named, and the last line says "1 skipped" then.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
base=${1:-}
port=18384
url=http://127.0.0.1:$port
downloads=${QDQD_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/qdqd}
[ "$(id -u)" = 0 ] || { echo "container.sh: has to be root" >&2; exit 2; }
# crun works only with version 2 of cgroups.
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
    exec unshare --mount sh -c 'mount -t cgroup2 none /sys/fs/cgroup && exec "$0" "$@"' "$0" "$@"
fi
work=$(mktemp -d)
stored() { "$1" --root "$work/storage" --runroot "$work/run" --storage-driver vfs "${@:2}"; }
pod() { stored podman --cgroup-manager cgroupfs "$@"; }

finish() {
    pod rm --force --time 0 --volumes qdqd-test >/dev/null 2>&1 || true
    ! mountpoint -q "$work/storage/vfs" || umount "$work/storage/vfs"
    rm -rf --one-file-system "$work"
}
trap finish EXIT
ok() { echo "ok - $*"; }
fail() { echo "not ok - $*"; pod logs qdqd-test 2>&1 | tail -20; exit 1; }
not_tried() { echo "# not tried: $*"; echo "1 skipped"; exit; }

for program in buildah podman crun; do
    command -v $program >/dev/null || not_tried "$program is not installed"
done
# pull NAME: pulls the image that the Containerfile has under this name.
pull() { stored buildah pull --quiet "$(sed -n "s/^ARG $1=//p" "$root/Containerfile")"; }
if [ -z "$base" ] && ! { pull BASE && pull SLIM; } >"$work/pull.log" 2>&1; then
    echo "# Debian's images cannot be pulled: $(tail -n 1 "$work/pull.log")"
    base=$work/base
    debootstrap --variant=minbase bookworm "$base" >"$work/debootstrap.log" 2>&1 ||
        not_tried "nor can debootstrap make one: $(tail -n 1 "$work/debootstrap.log")"
fi

choices=()
if [ -n "$base" ]; then
    debian=docker.io/library/debian:bookworm
    choices=(--build-arg "BASE=$debian" --build-arg "SLIM=$debian")
    image=$(stored buildah from scratch)
    stored buildah copy --quiet "$image" "$base" / >/dev/null
    stored buildah commit --quiet --rm "$image" "$debian" >/dev/null
fi
stored buildah build --quiet --isolation chroot --network host --volume "$downloads:/root/.cache/qdqd" \
    "${choices[@]}" --tag qdqd-test "$root" >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; fail "build"; }
size=$(pod image inspect --format '{{.Size}}' qdqd-test)
[ -z "$base" ] || size=$((size - $(pod image inspect --format '{{.Size}}' "$debian")))
ok "built: $((size >> 20)) MiB${base:+ on top of Debian}, user $(pod image inspect --format '{{.User}}' qdqd-test)"

options=(--network host --volume qdqd-state:/var/lib/qdqd --cgroups disabled
    --ulimit nofile=4096:4096 --ulimit nproc=4096:4096
    --env "QDQD_HTTP_LISTEN=0.0.0.0:$port" --env QDQD_WORKERS_CAGE=require)
! pod run --rm "${options[@]}" qdqd-test >"$work/refused" 2>&1 || fail "it listens without a token"
token=$(pod run --rm "${options[@]}" qdqd-test token add test)
[ -n "$token" ] || fail "token add"
pod run --detach --name qdqd-test "${options[@]}" qdqd-test >/dev/null || fail "run"
for _ in $(seq 200); do
    ! curl -sf -o /dev/null "$url/readyz" || break
    sleep 0.1
done
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/jobs")" = 401 ] || fail "no 401 without the token"
curl -sS --fail-with-body -o "$work/int8.onnx" -H "Authorization: Bearer $token" \
    --form model=@"$root/tests/data/glyph_resnet.onnx" \
    --form calibration=@"$root/tests/data/calib_256.npz" "$url/v1/quantize?wait=120" ||
    { cat "$work/int8.onnx"; fail "quantizing"; }
pid=$(pod inspect --format '{{.State.Pid}}' qdqd-test)
[ "$(stat -c %u:%g "/proc/$pid")" = 8383:8383 ] || fail "the user: $(stat -c %u:%g "/proc/$pid")"
ok "quantized with a token, in a cage: $(stat -c %s "$work/int8.onnx") bytes"
pod kill --signal TERM qdqd-test >/dev/null
status=$(timeout 60 podman --root "$work/storage" --runroot "$work/run" --storage-driver vfs wait qdqd-test)
[ "$status" = 0 ] || fail "ended with $status"
pod logs qdqd-test 2>&1 | grep '"event":"stopping"' >/dev/null || fail "no line about the stop"
ok "SIGTERM: ended with 0"
