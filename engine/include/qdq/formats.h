/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats that numbers are quantized to; each has the name of its element type.
 *   INTEGERS(NAME, "name", bits, lowest, highest)
 *   FLOATS(NAME, "name", bits, largest, fraction bits, smallest normal exponent)
 */
INTEGERS(INT8, "int8", 8, -128, 127)
INTEGERS(UINT8, "uint8", 8, 0, 255)
INTEGERS(INT4, "int4", 4, -8, 7)
INTEGERS(UINT4, "uint4", 4, 0, 15)
INTEGERS(INT16, "int16", 16, -32768, 32767)
INTEGERS(UINT16, "uint16", 16, 0, 65535)
FLOATS(FLOAT8E4M3FN, "float8e4m3fn", 8, 448, 3, -6)
FLOATS(FLOAT8E5M2, "float8e5m2", 8, 57344, 2, -14)
FLOATS(FLOAT4E2M1, "float4e2m1", 4, 6, 1, 0)
