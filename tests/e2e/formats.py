# SPDX-License-Identifier: Apache-2.0
"""The rows of engine/include/qdq/formats.h, with the properties that onnx and ml_dtypes
give to a format of that name. Only the name, the row's number and the uses are read from
the header."""

import re
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

TABLE = Path(__file__).resolve().parents[2] / "engine" / "include" / "qdq" / "formats.h"
USES = {"QDQ_FOR_WEIGHTS": {"weights"}, "QDQ_FOR_ACTIVATIONS": {"activations"},
        "QDQ_FOR_BOTH": {"weights", "activations"}}


class Format(NamedTuple):
    name: str
    number: int  # its row
    uses: set
    kind: int  # ONNX's type
    dtype: np.dtype

    @property
    def is_float(self):
        # NumPy gives all types of ml_dtypes the kind "void".
        return "float" in self.dtype.name

    @property
    def bits(self):
        return self.info.bits

    @property
    def info(self):
        return (ml_dtypes.finfo if self.is_float else ml_dtypes.iinfo)(self.dtype)

    @property
    def lowest(self):
        return float(self.info.min)

    @property
    def highest(self):
        return float(self.info.max)

    @property
    def opset(self):
        """Returns the first opset whose QuantizeLinear has the format."""
        for opset in range(10, onnx.defs.onnx_opset_version() + 1):
            for constraint in onnx.defs.get_schema("QuantizeLinear", opset).type_constraints:
                if f"tensor({self.name})" in constraint.allowed_type_strs:
                    return opset
        raise AssertionError(f"no QuantizeLinear has {self.name}")


def rows():
    text = TABLE.read_text()
    found = re.findall(r'^QDQ_FORMAT\((\w+), "(\w+)",[^)]*\b(QDQ_FOR_\w+)\)', text,
                       re.MULTILINE)
    assert len(found) == len(re.findall(r"^QDQ_FORMAT\(", text, re.MULTILINE)) > 0
    for number, (kind, name, uses) in enumerate(found):
        kind = getattr(TensorProto, kind)
        yield Format(name, number, USES[uses], kind, helper.tensor_dtype_to_np_dtype(kind))


FORMATS = {row.name: row for row in rows()}


def of_use(use):
    return {name: row for name, row in FORMATS.items() if use in row.uses}


def ir_of(opset):
    """Returns the IR version that belongs to an opset."""
    return max(8, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
