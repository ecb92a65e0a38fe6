# SPDX-License-Identifier: Apache-2.0
"""run_kfp.py FOLDER URL: runs the pipeline of examples/kfp on this machine by kfp, as a user does
who tries it. The output is that of the component alone."""

import json
import logging
import shutil
import sys
from pathlib import Path

from kfp import compiler, local

folder, url = Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "kfp"))
import pipeline  # noqa: E402

compiler.Compiler().compile(pipeline.pipeline, str(folder / "pipeline.yaml"))
local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(folder / "root"),
           raise_on_error=True)
logging.disable()
try:
    pipeline.pipeline(model=str(folder / "net.onnx"), calibration=str(folder / "net.npz"),
                      spec=json.loads((folder / "spec.json").read_text()), url=url)
except RuntimeError:
    sys.exit(1)
(model,) = (folder / "root").glob("*/quantize/int8")
shutil.copy(model, folder / "int8.onnx")
(report,) = (folder / "root").glob("*/quantize/report")
assert report.read_text().startswith("#")
