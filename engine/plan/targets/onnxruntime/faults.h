/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of ONNX Runtime that the target heeds: FAULT("version", "symptom", "heeded by", "test").
 *
 *   version    in which the fault was seen last
 *   heeded by  the target's rule, the code of its warning, or the reason in a report
 *   test       fails when the runtime has mended the fault: the row may go then, with what
 *              heeds it
 */
FAULT("1.31",
      "It makes a QLinearConcat of pairs with 16-bit scales, and refuses its own node.",
      "the integer kernel of Concat has no 16-bit scales",
      "tests/e2e/plan/test_runtime_faults.py::test_a_concat_with_16_bit_scales")
FAULT(
    "1.31",
    "It makes a QLinearAveragePool of an AveragePool with dilations, even with all of "
    "them 1, and refuses its own node.",
    "the integer kernel of AveragePool has no dilations",
    "tests/e2e/plan/test_runtime_faults.py::test_a_pool_with_dilations")
FAULT(
    "1.31",
    "It makes one kernel of a product and the two DequantizeLinear in front of it, one "
    "of which has a scale for each column of gathered rows, and fails in its first "
    "run.",
    "C18", "tests/e2e/plan/test_runtime_faults.py::test_a_product_of_gathered_rows")
FAULT("1.31",
      "It makes integer kernels of Conv and MatMul of 8-bit weights with a scale for "
      "each "
      "block, and fails in its first run.",
      "target_format",
      "tests/e2e/targets/test_batched_weights.py::test_blocks_that_do_not_run_are_said")
FAULT("1.31",
      "It makes an integer MatMul of a weight of three or more axes with a scale for "
      "each "
      "column, and fails in its first run.",
      "C9",
      "tests/e2e/targets/test_batched_weights.py::"
      "test_scales_that_onnxruntime_does_not_run")
FAULT("1.31",
      "By its default optimizations it does not load activations of 8-bit floats, nor "
      "weights of 8-bit floats or 2-bit integers behind activations of 8-bit integers.",
      "target_format",
      "tests/e2e/targets/test_target_onnxruntime.py::"
      "test_formats_that_do_not_load_are_said")
FAULT("1.31",
      "It makes int8 with one scale of the float weight of a Conv or Gemm between two "
      "pairs.",
      "C19",
      "tests/e2e/targets/test_runtime_numbers.py::test_onnxruntime_has_the_fault")
FAULT("1.31", "Its integer Softmax over one element is 0, and not 1.", "C20",
      "tests/e2e/targets/test_runtime_numbers.py::test_onnxruntime_has_the_fault")
FAULT("1.31",
      "Its integer AveragePool divides by other numbers with ceil_mode and "
      "count_include_pad.",
      "the integer kernel of AveragePool counts other windows",
      "tests/e2e/targets/test_runtime_numbers.py::test_onnxruntime_has_the_fault")
FAULT("1.31",
      "It dequantizes a weight in each run where a Gemm has transB, alpha or beta, or "
      "a Relu "
      "or Clip reads the layer: that takes 1.3 to 14 times as long as the float model.",
      "C21",
      "tests/e2e/targets/test_fused_weights.py::"
      "test_without_the_rule_the_weight_is_dequantized_and_that_is_said")
FAULT("1.31",
      "It makes an integer form of a Pad or Resize with axes, or of a CenterCropPad, "
      "between two pairs, and fails in its first run.",
      "C23",
      "tests/e2e/targets/test_plain_forms.py::test_onnxruntime_fails_in_the_first_run")
FAULT(
    "1.31",
    "It quantizes what a Transpose makes of dequantized rows of a table once more, "
    "with a scale for each column, and dequantizes that: with 40 rows of 128 elements "
    "it took 131 microseconds, and 26 where integers are moved.",
    "C25",
    "tests/e2e/targets/test_embedding.py::test_onnxruntime_quantizes_turned_rows_again")
FAULT(
    "1.31",
    "The MatMulNBits that it makes of a weight of 2 bits whose columns are no multiple "
    "of 4 has another weight.",
    "C26", "tests/e2e/targets/test_runtime_numbers.py::test_onnxruntime_has_the_fault")
FAULT("1.31",
      "Behind a pair it takes the scales of a square weight's rows for those of its "
      "columns, and fails in its first run where a MatMul's weight is not square: 4 dB "
      "are "
      "left.",
      "misread_by_target",
      "tests/e2e/targets/test_given_nodes.py::test_onnxruntime_misreads_scales_of_rows")
FAULT("1.31",
      "It takes the product of the scales of data and weight for that of a Gemm's "
      "quantized bias, whatever its DequantizeLinear says: a bias with twice the scale "
      "leaves 7 dB.",
      "misread_by_target",
      "tests/e2e/targets/test_given_nodes.py::test_onnxruntime_misreads_a_bias")
FAULT(
    "1.31",
    "It makes an integer kernel of a layer behind a pair whose given weight has scales "
    "of a Conv's input channels, on the left of a MatMul, on three axes or of blocks "
    "of "
    "8 bits, and fails in its first run.",
    "C28",
    "tests/e2e/targets/test_given_scales.py::test_onnxruntime_misreads_given_scales")
FAULT("1.31",
      "It dequantizes a weight in each run that several layers read, or a table with "
      "several heads, unless each has scales of its own behind a Transpose.",
      "P5",
      "tests/e2e/targets/test_fused_weights.py::"
      "test_a_weight_of_several_layers_is_stored_once")
