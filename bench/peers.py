# SPDX-License-Identifier: Apache-2.0
"""Runs the work of onnxruntime, one function in a process: peers.py FUNCTION ARGUMENTS.

Each function prints {"seconds": n}: its work without imports, from files to files."""

import json
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod,
                                      QuantFormat, QuantType, quantize_static)
from onnxruntime.quantization.calibrate import TensorData, TensorsData
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

# The defaults of qdq: its operators, int8, symmetric, Q/DQ pairs on weights.
OPERATORS = ["Conv", "Gemm", "MatMul", "AveragePool", "GlobalAveragePool"]
OPTIONS = {"ActivationSymmetric": True, "WeightSymmetric": True,
           "AddQDQPairToWeight": True}


def session(model, threads, pairs="fused"):
    """Opens a session. With pairs "computed", Q/DQ pairs run as they are, not fused into
    integer kernels."""
    options = onnxruntime.SessionOptions()
    if pairs == "computed":
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    options.intra_op_num_threads = int(threads)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options,
                                        providers=["CPUExecutionProvider"])


def insert(model, ranges, out):
    """Loads the model, inserts pairs by QDQQuantizer with given ranges, and saves it."""
    start = time.monotonic()
    given = {name: TensorData(lowest=np.float32(low), highest=np.float32(high))
             for name, (low, high) in json.load(open(ranges)).items()}
    quantizer = QDQQuantizer(
        onnx.load(model), per_channel=True, reduce_range=False,
        weight_qType=QuantType.QInt8, activation_qType=QuantType.QInt8,
        tensors_range=TensorsData(CalibrationMethod.MinMax, given),
        nodes_to_quantize=[], nodes_to_exclude=[], op_types_to_quantize=OPERATORS,
        extra_options=OPTIONS)
    quantizer.quantize_model()
    quantizer.model.save_model_to_file(out, False)
    return time.monotonic() - start


def infer(model, data, samples, threads, pairs="fused"):
    """Runs plain inference of the samples, one in a run. The time is without making the
    session."""
    one = session(model, threads, pairs)
    images = np.load(data)["input"][:int(samples)]
    one.run(None, {"input": images[:1]})  # the first run allocates
    start = time.monotonic()
    for i in range(len(images)):
        one.run(None, {"input": images[i:i + 1]})
    return time.monotonic() - start


def infer_on(provider, model, data, samples, batch):
    """Runs plain inference on a device, from arrays to arrays, with the engine's settings
    there: no lower precision, and no search for the fastest kernels."""
    settings = {}
    if provider == "CUDAExecutionProvider":
        settings = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    one = onnxruntime.InferenceSession(model, options, providers=[(provider, settings)])
    if one.get_providers()[0] != provider:
        sys.exit(f"onnxruntime runs nothing with {provider} here")
    name, batch = one.get_inputs()[0].name, int(batch)
    images = np.load(data)[name][:int(samples)]
    for _ in range(3):
        one.run(None, {name: images[:batch]})  # the first runs allocate, and choose kernels
    start = time.monotonic()
    for i in range(0, len(images), batch):
        one.run(None, {name: images[i:i + batch]})
    return time.monotonic() - start


class Reader(CalibrationDataReader):
    def __init__(self, images):
        self.images, self.at = images, 0

    def get_next(self):
        self.at += 1
        image = self.images[self.at - 1:self.at]
        return {"input": image} if len(image) else None


def static(model, data, samples, out, operators="same", method="MinMax"):
    """Runs quantize_static: int8, symmetric, per channel."""
    start = time.monotonic()
    quantize_static(model, out, Reader(np.load(data)["input"][:int(samples)]),
                    quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                    calibrate_method=CalibrationMethod[method],
                    op_types_to_quantize=OPERATORS if operators == "same" else None,
                    extra_options=OPTIONS)
    return time.monotonic() - start


def blocks(model, block, out):
    """Runs MatMulNBitsQuantizer: symmetric int4 in blocks. It needs the package onnx-ir."""
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    start = time.monotonic()
    quantizer = MatMulNBitsQuantizer(model, bits=4, block_size=int(block), is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(out, True)
    return time.monotonic() - start


if __name__ == "__main__":
    work = {f.__name__: f for f in (insert, infer, infer_on, static, blocks)}[sys.argv[1]]
    print(json.dumps({"seconds": work(*sys.argv[2:])}))
