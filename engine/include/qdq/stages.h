/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a quantization in their order: QDQ_STAGE(NAME, "name"). */
QDQ_STAGE(LOAD, "load")
QDQ_STAGE(EQUALIZE, "equalize")
QDQ_STAGE(PLAN, "plan")
QDQ_STAGE(CALIBRATE, "calibrate")
QDQ_STAGE(QUANTIZE, "quantize")
QDQ_STAGE(REFINE, "refine")
QDQ_STAGE(SENSITIVITY, "sensitivity")
QDQ_STAGE(SEARCH, "search")
QDQ_STAGE(RECIPE, "recipe")
QDQ_STAGE(WRITE, "write")
QDQ_STAGE(EVALUATE, "evaluate")
QDQ_STAGE(KERNELS, "kernels")
