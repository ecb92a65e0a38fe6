/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types: DTYPE(NAME, onnx, "name", bits, "npy").
 *
 * `onnx` is the value of TensorProto.DataType (ONNX 1.23; Debian 12's schema ends
 * before the float8 types, so the table is ours). `bits` is the size of one element, or
 * 0 if elements have no fixed size; several elements of fewer than 8 bits share a byte.
 * `npy` is NumPy's kind and size, or "" if NumPy's format has no such type. The rows stand in
 * the order of `onnx`, which may leave numbers out.
 */
DTYPE(FLOAT32, 1, "float32", 32, "f4")
DTYPE(UINT8, 2, "uint8", 8, "u1")
DTYPE(INT8, 3, "int8", 8, "i1")
DTYPE(UINT16, 4, "uint16", 16, "u2")
DTYPE(INT16, 5, "int16", 16, "i2")
DTYPE(INT32, 6, "int32", 32, "i4")
DTYPE(INT64, 7, "int64", 64, "i8")
DTYPE(STRING, 8, "string", 0, "")
DTYPE(BOOL, 9, "bool", 8, "b1")
DTYPE(FLOAT16, 10, "float16", 16, "f2")
DTYPE(FLOAT64, 11, "float64", 64, "f8")
DTYPE(UINT32, 12, "uint32", 32, "u4")
DTYPE(UINT64, 13, "uint64", 64, "u8")
DTYPE(COMPLEX64, 14, "complex64", 64, "")
DTYPE(COMPLEX128, 15, "complex128", 128, "")
DTYPE(BFLOAT16, 16, "bfloat16", 16, "")
DTYPE(FLOAT8E4M3FN, 17, "float8e4m3fn", 8, "")
DTYPE(FLOAT8E4M3FNUZ, 18, "float8e4m3fnuz", 8, "")
DTYPE(FLOAT8E5M2, 19, "float8e5m2", 8, "")
DTYPE(FLOAT8E5M2FNUZ, 20, "float8e5m2fnuz", 8, "")
DTYPE(UINT4, 21, "uint4", 4, "")
DTYPE(INT4, 22, "int4", 4, "")
DTYPE(FLOAT4E2M1, 23, "float4e2m1", 4, "")
DTYPE(FLOAT8E8M0, 24, "float8e8m0", 8, "")
DTYPE(UINT2, 25, "uint2", 2, "")
DTYPE(INT2, 26, "int2", 2, "")
DTYPE(FLOAT6E2M3, 27, "float6e2m3", 6, "")
DTYPE(FLOAT6E3M2, 28, "float6e3m2", 6, "")
