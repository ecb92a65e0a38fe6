/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes of processors that a model can be made for, one row for each:
 *
 *   QDQ_HOST(NAME, "name", whether its kernels add products of 8 bits in 16 bits, "text")
 *
 * Such sums saturate: two products of 255 and 127 do not fit into 16 bits.
 */
QDQ_HOST(AVX2, "avx2", true, "x86 processors without VNNI add in 16 bits")
QDQ_HOST(VNNI, "vnni", false, "x86 processors with VNNI add in 32 bits")
QDQ_HOST(ARM, "arm", false,
         "ARM processors, and all others that are not x86, add in 32 bits")
