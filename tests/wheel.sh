#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel (tools/wheel) and tries it with each Python of this machine, in an environment that
# has the package onnxruntime and nothing of this tree: the command by its entry point, with data in
# the forms for which libraries are loaded, and quantize() without a service. All give the bytes of the
# installed command. Libraries that the wheel needs are in it, or on every machine of its platform.
#
#   tests/wheel.sh [CHROOT]
#
# Run tools/build before. It downloads ONNX Runtime for each Python. With CHROOT, a folder that
# debootstrap has made (--variant=minbase) with ca-certificates and the libraries that Python needs, the
# Pythons of pyenv are tried in a copy of it, as root: there is no compiler, and no library of ours.
set -euo pipefail
chroot=${1:-}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset QDQD_URL

"$root/tools/wheel"
wheel=$(ls -t "$root"/build/qdqd-*-manylinux_*.whl | head -n 1)

# --- the libraries in it ---------------------------------------------------------------
unzip -qq "$wheel" -d "$work/wheel"
engine=$work/wheel/qdqd/_engine
missing=$(for file in "$engine"/bin/* "$engine"/lib/*; do
    readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
done | sort -u | grep -vxE 'lib(c|m|dl|rt|pthread|z|gcc_s|stdc\+\+)\.so\.[0-9]+|ld-linux.*' |
    while read -r name; do [ -f "$engine/lib/$name" ] || echo "$name"; done)
[ -z "$missing" ] || { echo "wheel.sh: the wheel lacks $missing" >&2; exit 1; }
sed -n '/SONAME_CURL/d; s/^#define SONAME_.* "\(.*\)"/\1/p' "$root/build-package/generated/config.h" |
    while read -r name; do
        [ -f "$engine/lib/$name" ] || { echo "wheel.sh: the wheel lacks $name" >&2; exit 1; }
    done
[ -n "$(ls "$engine/licences")" ] || { echo "wheel.sh: no licences" >&2; exit 1; }
echo "ok - $(ls "$engine/lib" | wc -l) libraries, $(($(stat -c %s "$wheel") >> 20)) MiB"

# --- the same bytes everywhere ------------------------------------------------------------
inside=$work
if [ -n "$chroot" ]; then
    inside=$work/chroot/root
    cp -a --reflink=auto "$chroot" "$work/chroot"
    mkdir -p "$inside/.pyenv"
    cp -a "${HOME:-/root}/.pyenv/versions" "$inside/.pyenv/"
    cp /etc/resolv.conf "$work/chroot/etc/"
    ! chroot "$work/chroot" sh -c 'command -v gcc cc python3' ||
        { echo "wheel.sh: $chroot has a compiler or a Python" >&2; exit 1; }
fi
spec='{"target":"onnxruntime","recipe":"none"}'
images='{"target":"onnxruntime","recipe":"none","preprocess":{"input":{"scale":0.00392156862745098}}}'
mkdir -p "$inside/given/images"
cd "$inside/given"
cp "$wheel" .
cp "$root/tests/data/glyph_resnet.onnx" net.onnx
cp "$root/tests/data/calib_256.npz" data.npz
printf '%s' "$spec" >spec.json
printf '%s' "$images" >images.json
"$root/build/venv/bin/python" - <<'END'
import numpy
import pyarrow
import pyarrow.parquet
import zlib
array = numpy.load("data.npz")["input"][:64]
for i, image in enumerate(array):
    pixels = numpy.clip((image[0] * 64 + 128), 0, 255).astype(numpy.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    def chunk(name, data):
        return (len(data).to_bytes(4, "big") + name + data
                + zlib.crc32(name + data).to_bytes(4, "big"))
    head = pixels.shape[1].to_bytes(4, "big") + pixels.shape[0].to_bytes(4, "big") + b"\x08\0\0\0\0"
    with open(f"images/{i:03}.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
                   + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
table = pyarrow.table({"input": list(array.reshape(len(array), -1))})
for codec in ("snappy", "zstd"):
    pyarrow.parquet.write_table(table, f"{codec}.parquet", compression=codec)
END
tar -czf images.tar.gz images
cat >try.sh <<'END'
# try.sh QDQ PREFIX: quantizes with each form of data.
set -eu
for data in data.npz snappy.parquet zstd.parquet images images.tar.gz; do
    case $data in images*) spec=images.json ;; *) spec=spec.json ;; esac
    rm -f "$2.$data.onnx"
    "$1" quantize net.onnx --calibration $data --spec $spec -o "$2.$data.onnx" 2>"$2.log" >/dev/null ||
        { cat "$2.log"; exit 1; }
done
END
sh try.sh "$root/_install/bin/qdq" wanted

tried=0
# in_place COMMAND...: runs it where the wheel is tried
in_place() {
    if [ -n "$chroot" ]; then
        chroot "$work/chroot" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/bin:/bin \
            sh -c 'cd /root/given && exec "$@"' sh "$@"
    else
        "$@"
    fi
}
pythons=(/usr/bin/python3 /usr/bin/python3.[0-9]* "${HOME:-/root}"/.pyenv/versions/*/bin/python3)
[ -z "$chroot" ] || pythons=("$inside"/.pyenv/versions/*/bin/python3)
for python in "${pythons[@]}"; do
    [[ -x $python && $python != *-config ]] || continue
    [ -z "$chroot" ] || python=${python#"$work/chroot"}
    rm -rf venv
    in_place "$python" -m venv venv 2>/dev/null || continue
    version=$(in_place "$python" --version)
    if ! in_place venv/bin/pip install --quiet "./${wheel##*/}[onnxruntime]" 2>pip.log; then
        echo "# $version: onnxruntime does not install: $(tail -n 1 pip.log)"
        continue
    fi
    in_place sh try.sh venv/bin/qdq one
    rm -f two.onnx
    in_place venv/bin/python -c "
import json, qdqd
qdqd.quantize('net.onnx', 'data.npz', spec=json.load(open('spec.json'))).save('two.onnx')"
    for wanted in wanted.*.onnx; do
        cmp "${wanted/wanted/one}" "$wanted"
    done
    cmp two.onnx wanted.data.npz.onnx
    echo "ok - $version"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "wheel.sh: no Python could install onnxruntime" >&2; exit 1; }
