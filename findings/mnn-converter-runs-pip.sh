#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Converting a model upgrades packages with the first pip of the path, and asks a server for a key.
#
# Seen with MNN 3.6.1, the commands mnnconvert and mnnquant of the Python wheel.
#
# The commands are made to keep a log of their use at the vendor's. Where the package that writes it is
# missing, the import runs "pip install -U" by the shell: with the pip that the path has first, which need
# not belong to the environment that runs the command, so that another environment gets new packages
# and perhaps an older protobuf. Each conversion then asks a server for a key. The report, with an
# identifier of the machine, the model's sizes and the options, is not sent by this wheel, since it lacks a
# module that the report wants to read. No option turns any of this off. The extension module itself, as in
#
#     python -c 'import _tools; _tools.mnnconvert(["mnnconvert", "-f", "ONNX", ...])'
#
# converts the same and does neither.
#
# Here a program of the name pip writes down its arguments, and a stand-in of the network writes down that
# it was asked. Nothing is installed beside the pinned packages, and nothing leaves the machine.
#
# Output:
#
#   mnnconvert: pip install -U aliyun-log-python-sdk
#   mnnconvert with that package: a request by https
#   the extension module: nothing
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 mnn==3.6.1 numpy==2.4.6 || exit 2
cd "$folder"
mkdir bin stand-ins
cat > bin/pip <<'EOF'
#!/bin/bash
echo "pip $*" >> seen.log
EOF
chmod +x bin/pip
cat > stand-ins/sitecustomize.py <<'EOF'
import os
import sys
import types
import urllib.request


def ask(request, *arguments, **options):
    with open("seen.log", "a") as file:
        file.write(f"a request by {request.type}\n")
    raise OSError("there is no network here")


urllib.request.urlopen = ask
if os.environ.get("WITH_PACKAGE"):
    names = "aliyun", "aliyun.log", "aliyun.log.logitem"
    modules = [types.ModuleType(name) for name in names]
    modules[0].log = modules[1]
    modules[1].LogClient = modules[1].PutLogsRequest = modules[2].LogItem = object
    sys.modules.update(zip(names, modules))
EOF
venv/bin/python - <<'EOF'
import onnx
from onnx import helper

x, y = (helper.make_tensor_value_info(name, 1, [1, 4]) for name in "xy")
graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "m.onnx")
EOF
export PYTHONPATH=$folder/stand-ins PATH=$folder/bin:$PATH
arguments=(-f ONNX --modelFile m.onnx --MNNModel m.mnn --bizCode none)

# convert COMMAND...: prints what a conversion did beside its work.
convert() {
    rm -f m.mnn seen.log
    "$@" "${arguments[@]}" > convert.log 2>&1
    [ -s m.mnn ] || echo "no conversion"
    if [ -s seen.log ]; then sort -u seen.log; else echo "nothing"; fi
}
seen="mnnconvert: $(convert venv/bin/mnnconvert)
mnnconvert with that package: $(WITH_PACKAGE=1 convert venv/bin/mnnconvert)
the extension module: $(convert venv/bin/python -c \
    'import sys, _tools; _tools.mnnconvert(["mnnconvert"] + sys.argv[1:])')"
echo "$seen"
expected="mnnconvert: pip install -U aliyun-log-python-sdk
mnnconvert with that package: a request by https
the extension module: nothing"
if [ "$seen" != "$expected" ]; then
    echo "changed: it does something else"
    exit 1
fi
