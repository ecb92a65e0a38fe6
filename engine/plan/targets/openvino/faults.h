/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of OpenVINO's CPU plugin that the target heeds: FAULT("version", "symptom", "heeded by", "test").
 *
 *   version    in which the fault was seen last
 *   heeded by  the target's rule, the code of its warning, or the reason in a report
 *   test       fails when the runtime has mended the fault: the row may go then, with what
 *              heeds it
 */
FAULT(
    "2026.4",
    "It takes a pair behind a ReduceMax, a ReduceMin or a GlobalMaxPool into their "
    "kernel, which then compares what has been rounded to 8 bits without its scale: 0 "
    "to 17 dB are left.",
    "V12",
    "tests/e2e/targets/test_openvino_extremes.py::"
    "test_openvino_is_wrong_where_it_has_pairs")
FAULT("2026.4",
      "It takes a pair into a pool of windows in front of it, and a factor below zero "
      "between the two loses its sign: 0 to 17 dB are left. It does the same with the "
      "Relu or LeakyRelu of a Conv without biases, a Concat and a change of the shape.",
      "V13",
      "tests/e2e/targets/test_openvino_extremes.py::"
      "test_openvino_is_wrong_where_it_has_pairs")
FAULT("2026.4",
      "It takes factors of channels into a ReduceMean or ReduceSum without keepdims, "
      "and multiplies another axis by them: -13 to 26 dB are left.",
      "V14", "tests/e2e/targets/test_runtime_numbers.py::test_openvino_has_the_fault")
FAULT(
    "2026.4",
    "It does not compile a pair behind a Concat that joins another axis than the last "
    "in front of a MatMul.",
    "V15", "tests/e2e/targets/test_runtime_numbers.py::test_openvino_does_not_compile")
FAULT("2026.4",
      "It computes wrong numbers of an AveragePool that counts its padding and has a "
      "pair of values below zero: -3 dB are left.",
      "V16", "tests/e2e/targets/test_runtime_numbers.py::test_openvino_has_the_fault")
FAULT("2026.4",
      "It computes wrong numbers of int8 activations behind a Concat: 6 to 14 dB are "
      "left. The same numbers as uint8 are right.",
      "V17", "tests/e2e/targets/test_runtime_numbers.py::test_openvino_has_the_fault")
FAULT(
    "2026.4",
    "It reads the bytes of uint8 weights of a ConvTranspose as int8 behind activations "
    "whose zero point is 0: -26 to -12 dB are left.",
    "V18", "tests/e2e/targets/test_runtime_numbers.py::test_openvino_has_the_fault")
FAULT("2026.4",
      "It normalizes a Softmax of opset 11 or 12 along its axis alone, and not over "
      "those "
      "behind, too: -25 to -7 dB are left, quantized or not.",
      "V20", "tests/e2e/targets/test_given_nodes.py::test_openvino_normalizes_one_axis")
FAULT("2026.4",
      "It makes one kernel of Gemms and MatMuls in a row, of weights of at most 256 by "
      "256, at most 8 rows and no bias between, which computes no numbers of theirs: "
      "-185 dB.",
      "V21",
      "tests/e2e/targets/test_given_nodes.py::test_openvino_joins_small_products")
FAULT(
    "2026.4",
    "It takes factors of channels below zero into a pair where the batch is open, and "
    "a "
    "Conv without biases that several nodes read, and computes wrong numbers: -5 to 17 "
    "dB are left.",
    "V22", "tests/e2e/targets/test_runtime_numbers.py::test_openvino_has_the_fault")
FAULT("2026.4",
      "It takes a pair behind an AveragePool through it into the layer in front, whose "
      "activation is times "
      "factors of channels below zero: -4 to -1 dB are left.",
      "V26", "tests/e2e/targets/test_runtime_numbers.py::test_openvino_has_the_fault")
FAULT("2026.4",
      "It takes the scales of a QLinearConv's output channels for those of its input "
      "channels, and does not load it where their numbers differ.",
      "misread_by_target",
      "tests/e2e/targets/test_given_nodes.py::test_openvino_misreads_scales")
FAULT(
    "2026.4",
    "It multiplies by other scales where a Gemm's or MatMul's weight has one for each "
    "of the inputs, which are summed over, or a table that a Gather reads one for each "
    "column: 1 to 6 dB are left.",
    "misread_by_target",
    "tests/e2e/targets/test_given_nodes.py::test_openvino_misreads_scales_of_inputs")
FAULT(
    "2026.4",
    "It refuses the file of a model whose Loop or Scan hands out an input of its body "
    "straight, and reads the same bytes from memory.",
    "misread_by_target",
    "tests/e2e/targets/"
    "test_given_nodes.py::test_openvino_refuses_the_file_of_such_a_loop")
FAULT("2026.4", "It refuses to load a weight whose blocks do not divide its axis.",
      "V6", "tests/e2e/plan/test_runtime_faults.py::test_a_block_that_does_not_divide")
