/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes of processors that a model can be made for, one row for each:
 *
 *   QDQ_HOST(NAME, "name", whether its kernels add products of 8 bits in 16 bits,
 *            whether it is an accelerator, "text")
 *
 * Such sums saturate: two products of 255 and 127 do not fit into 16 bits. An accelerator is no
 * processor that this program runs on, and a class of the targets alone whose rows name one.
 */
QDQ_HOST(AVX2, "avx2", true, false, "x86 processors without VNNI add in 16 bits")
QDQ_HOST(VNNI, "vnni", false, false, "x86 processors with VNNI add in 32 bits")
QDQ_HOST(ARM, "arm", false, false,
         "ARM processors, and all others that are not x86, add in 32 bits")
QDQ_HOST(V68, "v68", false, true, "the HTP of Qualcomm's chips, generation v68")
QDQ_HOST(V69, "v69", false, true, "the HTP of Qualcomm's chips, generation v69")
QDQ_HOST(V73, "v73", false, true,
         "the HTP of Qualcomm's chips, generation v73 and those after it")
