#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel (tools/wheel) and tries it with each Python of this machine, in an environment that
# has the package onnxruntime and nothing of this tree: the command by its entry point, and quantize()
# without a service. Both give the bytes of the installed command.
#
#   tests/wheel.sh
#
# Run tools/build before. It downloads ONNX Runtime for each Python.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset QDQD_URL

"$root/tools/wheel"
wheel=$(ls -t "$root"/build/qdqd-*-manylinux_*.whl | head -n 1)
spec='{"target":"onnxruntime","recipe":"none","calibration":{"random_samples":4}}'
cp "$root/tests/data/glyph_resnet.onnx" "$work/net.onnx"
printf '%s' "$spec" >"$work/spec.json"
cd "$work"
"$root/_install/bin/qdq" quantize net.onnx --spec spec.json -o wanted.onnx 2>/dev/null

tried=0
for python in /usr/bin/python3 /usr/bin/python3.[0-9]* "${HOME:-/root}"/.pyenv/versions/*/bin/python3; do
    [[ -x $python && $python != *-config ]] || continue
    rm -rf venv
    "$python" -m venv venv 2>/dev/null || continue
    if ! venv/bin/pip install --quiet "$wheel[onnxruntime]" 2>pip.log; then
        echo "# $("$python" --version): onnxruntime does not install: $(tail -n 1 pip.log)"
        continue
    fi
    rm -f one.onnx two.onnx
    venv/bin/qdq quantize net.onnx --spec spec.json -o one.onnx 2>/dev/null
    venv/bin/python -c "
import json, qdqd
qdqd.quantize('net.onnx', spec=json.load(open('spec.json'))).save('two.onnx')"
    cmp one.onnx wanted.onnx
    cmp two.onnx wanted.onnx
    echo "ok - $("$python" --version)"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "wheel.sh: no Python could install onnxruntime" >&2; exit 1; }
