/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema changes of ONNX's own operators, between opset 7 and 28, for which older nodes
 * must be rewritten:
 *
 *   OPSET_CHANGE(operator, opset, adapter)  nodes from before this opset are rewritten by
 *       this function of prepare/adapt*.c, which can refuse them
 *
 * Nodes that were valid before any other opset stay valid and mean the same: types were
 * added, or optional inputs, or attributes whose default is the earlier behaviour.
 * tests/e2e/models/test_opset.py lists all of these changes, too.
 */
OPSET_CHANGE("BatchNormalization", 9, batchnorm_9)
OPSET_CHANGE("BatchNormalization", 14, batchnorm_14)
OPSET_CHANGE("Clip", 11, clip_11)
OPSET_CHANGE("DFT", 20, dft_20)
OPSET_CHANGE("Dropout", 10, dropout_10)
OPSET_CHANGE("Dropout", 12, dropout_12)
OPSET_CHANGE("Erf", 13, erf_13)
OPSET_CHANGE("GridSample", 20, gridsample_20)
OPSET_CHANGE("GroupNormalization", 21, groupnorm_21)
OPSET_CHANGE("Hardmax", 13, softmax_13)
OPSET_CHANGE("LogSoftmax", 13, softmax_13)
OPSET_CHANGE("Pad", 11, pad_11)
OPSET_CHANGE("QuantizeLinear", 19, quantize_19)
OPSET_CHANGE("ReduceL1", 18, axes_to_input)
OPSET_CHANGE("ReduceL2", 18, axes_to_input)
OPSET_CHANGE("ReduceLogSum", 18, axes_to_input)
OPSET_CHANGE("ReduceLogSum", 28, reducelog_28)
OPSET_CHANGE("ReduceLogSumExp", 18, axes_to_input)
OPSET_CHANGE("ReduceLogSumExp", 28, reducelog_28)
OPSET_CHANGE("ReduceMax", 18, axes_to_input)
OPSET_CHANGE("ReduceMean", 18, axes_to_input)
OPSET_CHANGE("ReduceMin", 18, axes_to_input)
OPSET_CHANGE("ReduceProd", 18, axes_to_input)
OPSET_CHANGE("ReduceSum", 13, axes_to_input)
OPSET_CHANGE("ReduceSumSquare", 18, axes_to_input)
OPSET_CHANGE("Resize", 11, resize_11)
OPSET_CHANGE("RoiAlign", 16, roialign_16)
OPSET_CHANGE("Scan", 9, scan_9)
OPSET_CHANGE("Scatter", 11, scatter_11)
OPSET_CHANGE("Slice", 10, slice_10)
OPSET_CHANGE("Softmax", 13, softmax_13)
OPSET_CHANGE("Split", 13, split_13)
OPSET_CHANGE("Split", 18, split_18)
OPSET_CHANGE("Squeeze", 13, axes_to_input)
OPSET_CHANGE("TopK", 10, topk_10)
OPSET_CHANGE("Unsqueeze", 13, axes_to_input)
OPSET_CHANGE("Upsample", 9, upsample_9)
OPSET_CHANGE("Upsample", 10, upsample_10)
