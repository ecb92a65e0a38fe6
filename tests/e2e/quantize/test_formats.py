# SPDX-License-Identifier: Apache-2.0
"""Number formats: engine/numbers/arithmetic/format.c, which is compiled here alone, agrees bit for
bit with onnx's reference evaluator, ml_dtypes and NumPy."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from formats import FORMATS

ROOT = Path(__file__).resolve().parents[3]
FLOAT32, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
FLOATS = [name for name, row in FORMATS.items() if row.is_float]


class Grid(ctypes.Structure):
    _fields_ = [("format", ctypes.c_int), ("outer", ctypes.c_size_t),
                ("channels", ctypes.c_size_t), ("inner", ctypes.c_size_t),
                ("scales", ctypes.c_void_p), ("zero_points", ctypes.c_void_p)]


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    (folder / "config.h").touch()
    (folder / "both.c").write_text(
        '#include "grid.h"\n'
        "void apply(const struct qdqi_grid *g, int type, const void *in, void *out)"
        "{ grid_apply(g, (enum qdqi_dtype)type, in, out); }\n"
        "void widen(const uint16_t *h, float *x, size_t n)"
        "{ for (size_t i = 0; i < n; i++) x[i] = qdqi_half_widened(h[i]); }\n"
        "void narrow(const float *x, uint16_t *h, size_t n)"
        "{ for (size_t i = 0; i < n; i++) h[i] = qdqi_half_narrowed(x[i]); }\n")
    # As the build compiles it (engine/local.mk).
    subprocess.run(
        ["cc", "-std=gnu11", "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic",
         "-fno-trapping-math", "-shared", "-fPIC", "-include", "stddef.h",
         f"-I{folder}", f"-I{ROOT}/engine", f"-I{ROOT}/engine/include", f"-I{ROOT}/tests/unit",
         ROOT / "engine/numbers/arithmetic/format.c", folder / "both.c", "-o", folder / "formats.so"],
        check=True)
    return ctypes.CDLL(str(folder / "formats.so"))


def address(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def ours(library, name, x, scales, zero_points=None, axis=None):
    x, y = np.ascontiguousarray(x), np.empty_like(x)
    scales = np.atleast_1d(np.float32(scales))
    outer, channels = 1, 1
    if axis is not None:
        outer, channels = int(np.prod(x.shape[:axis], dtype=int)), x.shape[axis]
    points = None if zero_points is None else np.atleast_1d(np.int32(zero_points))
    grid = Grid(FORMATS[name].number, outer, channels, x.size // (outer * channels),
                scales.ctypes.data, 0 if points is None else points.ctypes.data)
    library.apply(ctypes.byref(grid), FLOAT16 if x.dtype == np.float16
                            else FLOAT32, address(x), address(y))
    return y


def onnx_pair(name, x, scales, zero_points=None, axis=0):
    """Computes Q and DQ by onnx's reference evaluator."""
    kind = FORMATS[name].kind
    scales = np.float32(scales)
    flat = np.ravel(np.zeros_like(scales) if zero_points is None else zero_points)
    zero = helper.make_tensor("z", kind, scales.shape, flat.tolist())
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis),
         helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis)],
        "pair", [helper.make_tensor_value_info("x", FLOAT32, None)],
        [helper.make_tensor_value_info("y", FLOAT32, None)],
        [zero, onnx.numpy_helper.from_array(scales, "s")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", max(23, FORMATS[name].opset))])
    return ReferenceEvaluator(model).run(None, {"x": x})[0]


def same(got, want):
    """Expects the same bits; any NaN equals any other."""
    bits = np.uint16 if got.dtype == np.float16 else np.uint32
    either = np.isnan(got) | np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got.view(bits)[~either],
                                  want.astype(got.dtype).view(bits)[~either])


RANDOM = np.random.default_rng(11)
# Numbers of every magnitude, their neighbours, and halves, which are ties.
SPREAD = np.float32(RANDOM.standard_normal(200_000) * np.exp2(RANDOM.uniform(-150, 120,
                                                                             200_000)))
HALVES = np.arange(-1200, 1200, dtype=np.float32) / 4
EDGES = np.float32([0, -0.0, 127, 127.5, 127.49999, -128, -128.5, 255, 255.5, 7.5, -8.5,
                    448, 464, 465, 480, 57344, 61440, 65536, 3e38, -3e38, 1e-45, -1e-45])
FINITE = np.concatenate([SPREAD, HALVES, EDGES,
                         np.nextafter(HALVES, np.float32(np.inf)),
                         np.nextafter(HALVES, np.float32(-np.inf))])


@pytest.mark.parametrize("scale", [1, 0.5, 0.0371, 3.1e-5, 123.4, 1.17549435e-38])
@pytest.mark.parametrize("name", FORMATS)
def test_onnx_makes_the_same_of_a_tensor(library, name, scale):
    # The evaluator's integers are of 32 bits on their way; what is larger saturates, too.
    bound = np.float32((3e38 if name in FLOATS else 2 ** 30) * min(scale, 1))
    x = FINITE[np.abs(FINITE) < bound]
    with np.errstate(over="ignore"):
        got, want = ours(library, name, x, scale), onnx_pair(name, x, scale)
        # The evaluator's float4 has no -0; ml_dtypes' has, below.
        same(*(got + 0, want + 0) if name == "float4e2m1" else (got, want))
    if name not in FLOATS:
        larger = np.abs(FINITE[np.abs(FINITE) >= bound])
        assert len(set(ours(library, name, larger, scale))) == 1
        assert len(set(ours(library, name, -larger, scale))) == 1


@pytest.mark.parametrize("shape,axis", [((3, 5, 7), 0), ((3, 5, 7), 1), ((3, 5, 7), 2),
                                        ((4, 1, 9), 1), ((6,), 0)])
@pytest.mark.parametrize("name", FORMATS)
def test_onnx_makes_the_same_of_channels(library, name, shape, axis):
    x = np.float32(RANDOM.standard_normal(shape) * 20)
    scales = np.float32(RANDOM.uniform(0.01, 0.3, shape[axis]))
    same(ours(library, name, x, scales, axis=axis), onnx_pair(name, x, scales, axis=axis))


@pytest.mark.parametrize("name", sorted(set(FORMATS) - set(FLOATS)))
def test_onnx_makes_the_same_with_zero_points(library, name):
    low = max(int(FORMATS[name].lowest), -300)
    high = min(int(FORMATS[name].highest), low + 600)
    x = np.float32(RANDOM.standard_normal((high - low + 1, 300)) * (high - low))
    x[:, :100] = np.round(x[:, :100] * 2) / 2
    scales = np.float32(RANDOM.choice([0.5, 1, 0.731], len(x)))
    points = np.arange(low, high + 1)
    got = ours(library, name, x, scales, points, axis=0)
    want = onnx_pair(name, x, scales, points)
    same(got, want)
    assert len(np.unique(got[0])) > min(10, 2 ** FORMATS[name].bits - 2)


@pytest.mark.parametrize("name", FLOATS)
def test_ml_dtypes_rounds_every_number_alike(library, name):
    """Tests every float32 whose lower 13 bits are 0, 1, the middle, or next to it."""
    kind, highest = FORMATS[name].dtype, np.float32(FORMATS[name].highest)
    upper = np.arange(1 << 19, dtype=np.uint32) << 13
    for lower in (0, 1, 0xfff, 0x1000, 0x1001, 0x1fff):
        x = (upper | np.uint32(lower)).view(np.float32)
        if name == "float4e2m1":  # which has no NaN
            x = x[~np.isnan(x)]
        with np.errstate(invalid="ignore"):
            want = np.clip(x, -highest, highest).astype(kind).astype(np.float32)
        same(ours(library, name, x, 1), want)


@pytest.mark.parametrize("name", FLOATS)
def test_every_number_of_a_format_is_kept(library, name):
    codes = 2 ** FORMATS[name].bits
    x = np.arange(codes, dtype=np.uint8).view(FORMATS[name].dtype).astype(np.float32)
    x = x[np.isfinite(x)]
    same(ours(library, name, x, 1), x)


@pytest.mark.parametrize("name", FORMATS)
def test_infinity_saturates_and_nan_is_the_lowest_of_integers(library, name):
    x = np.float32([np.inf, -np.inf, np.nan])
    got = ours(library, name, x, 2)
    row = FORMATS[name]
    assert got[0] == 2 * np.float32(row.highest) and got[1] == 2 * np.float32(row.lowest)
    assert np.isnan(got[2]) if row.is_float else got[2] == got[1]


@pytest.mark.parametrize("name", FORMATS)
def test_float16_is_widened_and_rounded_back(library, name):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    scale = np.float32(0.0123)
    with np.errstate(over="ignore"):
        want = ours(library, name, x.astype(np.float32), scale).astype(np.float16)
    same(ours(library, name, x, scale), want)


def test_every_float16_is_widened(library):
    x = np.arange(1 << 16, dtype=np.uint16)
    got = np.empty(x.shape, np.float32)
    library.widen(address(x), address(got), ctypes.c_size_t(x.size))
    same(got, x.view(np.float16).astype(np.float32))


def test_float32_is_narrowed(library):
    upper = np.arange(1 << 19, dtype=np.uint32) << 13
    for lower in (0, 1, 0xfff, 0x1000, 0x1001, 0x1fff):
        x = (upper | np.uint32(lower)).view(np.float32)
        got = np.empty(x.shape, np.uint16)
        library.narrow(address(x), address(got), ctypes.c_size_t(x.size))
        with np.errstate(over="ignore"):
            same(got.view(np.float16), x.astype(np.float16))
