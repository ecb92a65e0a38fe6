/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats that numbers are quantized to. docs/extend/adding-a-number-format.md explains the
 * columns:
 *
 *   QDQ_FORMAT(NAME, "name", bits, lowest, highest, fraction bits, smallest normal exponent,
 *          opset, uses)
 *
 * NAME is the element type's in tbl/dtypes.h. Integers have no fraction bits and no
 * exponent. `opset` is the first whose QuantizeLinear has the format. `uses` are enum
 * qdq_format_use: formats of activations have at least 8 bits, those of weights at most 8.
 *
 *   QDQ_BLOCK_FORMAT(the same columns, ELEMENT, block, SCALES)
 *
 * is a format of blocks whose size and whose scales' type are its own. ELEMENT is the type of its
 * elements; SCALES is E8M0, powers of two, or E4M3, float8e4m3fn times a float32 for the whole
 * tensor. Readers of the table that know no such columns get the others.
 *
 *   QDQ_NARROW_FORMAT(the same columns, ELEMENT, element's bits)
 *
 * is a format of integers that ONNX has no type for: they are stored as elements of a wider type.
 */
#ifndef QDQ_BLOCK_FORMAT
#define QDQ_BLOCK_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, \
                         uses, element, block, scales)                            \
    QDQ_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, uses)
#endif
#ifndef QDQ_NARROW_FORMAT
#define QDQ_NARROW_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, \
                          uses, element, element_bits)                             \
    QDQ_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, uses)
#endif
QDQ_FORMAT(INT8, "int8", 8, -128, 127, 0, 0, 10, QDQ_FOR_BOTH)
QDQ_FORMAT(UINT8, "uint8", 8, 0, 255, 0, 0, 10, QDQ_FOR_BOTH)
QDQ_FORMAT(INT4, "int4", 4, -8, 7, 0, 0, 21, QDQ_FOR_WEIGHTS)
QDQ_FORMAT(UINT4, "uint4", 4, 0, 15, 0, 0, 21, QDQ_FOR_WEIGHTS)
QDQ_FORMAT(INT16, "int16", 16, -32768, 32767, 0, 0, 21, QDQ_FOR_ACTIVATIONS)
QDQ_FORMAT(UINT16, "uint16", 16, 0, 65535, 0, 0, 21, QDQ_FOR_ACTIVATIONS)
QDQ_FORMAT(FLOAT8E4M3FN, "float8e4m3fn", 8, -448, 448, 3, -6, 19, QDQ_FOR_BOTH)
QDQ_FORMAT(FLOAT8E5M2, "float8e5m2", 8, -57344, 57344, 2, -14, 19, QDQ_FOR_BOTH)
QDQ_FORMAT(FLOAT4E2M1, "float4e2m1", 4, -6, 6, 1, 0, 23, QDQ_FOR_WEIGHTS)
QDQ_FORMAT(INT2, "int2", 2, -2, 1, 0, 0, 25, QDQ_FOR_WEIGHTS)
QDQ_FORMAT(UINT2, "uint2", 2, 0, 3, 0, 0, 25, QDQ_FOR_WEIGHTS)
QDQ_BLOCK_FORMAT(MXFP4, "mxfp4", 4, -6, 6, 1, 0, 24, QDQ_FOR_WEIGHTS, FLOAT4E2M1, 32,
                 E8M0)
QDQ_BLOCK_FORMAT(MXFP6, "mxfp6", 6, -7.5, 7.5, 3, 0, 28, QDQ_FOR_WEIGHTS, FLOAT6E2M3,
                 32, E8M0)
QDQ_BLOCK_FORMAT(MXFP8, "mxfp8", 8, -448, 448, 3, -6, 24, QDQ_FOR_WEIGHTS, FLOAT8E4M3FN,
                 32, E8M0)
QDQ_BLOCK_FORMAT(NVFP4, "nvfp4", 4, -6, 6, 1, 0, 23, QDQ_FOR_WEIGHTS, FLOAT4E2M1, 16,
                 E4M3)
QDQ_NARROW_FORMAT(INT3, "int3", 3, -4, 3, 0, 0, 21, QDQ_FOR_WEIGHTS, INT4, 4)
#undef QDQ_BLOCK_FORMAT
#undef QDQ_NARROW_FORMAT
