#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Importing onnxruntime on Linux leaves an identifier of the machine below the home folder.
#
# Seen with onnxruntime 1.31.1 from PyPI on Linux.
#
# The release's Linux library has telemetry that is on by default. "import onnxruntime" alone, without
# a session, makes two files in ~/.cache/Microsoft/DeveloperTools/.onnxruntime: `deviceid` and a
# database of events. disable_telemetry_events() is a call of the module and so comes after they were
# made. Only the environment variable ORT_DISABLE_TELEMETRY=1, set before the library is loaded,
# leaves the home folder as it was. A service that loads the library needs the variable in its
# process, and one whose home folder is read only or shared should know of the files.
#
# The script gives each import an empty home folder of its own and prints the names of the new files.
# Where there is a network, two of the three imports may send what the library sends.
#
# Output:
#
#   import: ['.cache/Microsoft/DeveloperTools/.onnxruntime/deviceid',
#            '.cache/Microsoft/DeveloperTools/.onnxruntime/onnxruntime.db']
#   import and disable_telemetry_events(): as many files
#   import with ORT_DISABLE_TELEMETRY=1: []
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import os
import pathlib
import subprocess
import sys
import tempfile


def files_of(code, **variables):
    """Returns the files that a Python with an empty home folder leaves there."""
    home = pathlib.Path(tempfile.mkdtemp(dir="."))
    environment = {k: v for k, v in os.environ.items()
                   if k != "ORT_DISABLE_TELEMETRY" and not k.startswith("XDG_")}
    subprocess.run([sys.executable, "-c", code], check=True,
                   env={**environment, "HOME": str(home.resolve()), **variables})
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


plain = files_of("import onnxruntime")
called = files_of("import onnxruntime; onnxruntime.disable_telemetry_events()")
variable = files_of("import onnxruntime", ORT_DISABLE_TELEMETRY="1")
print("import:", plain)
print("import and disable_telemetry_events():",
      "as many files" if len(called) == len(plain) else called)
print("import with ORT_DISABLE_TELEMETRY=1:", variable)
if not any(name.endswith("deviceid") for name in plain) or not called or variable:
    sys.exit("changed: other files than stated")
EOF
