/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the HTP's emulator that the target heeds, as FAULT of onnxruntime/faults.h. Each was
 * seen with onnxruntime-qnn 2.7.0 and soc_model 43; the tests run where QDQD_ACCEPT_QNN is 1.
 */
FAULT(
    "2.7.0",
    "It leaves out an Add of 8 bits with a constant of one element that stands beside "
    "a Mul or behind a product of matrices.",
    "Q8", "tests/qnn/test_emulator.py::test_figures_are_those_that_are_said")
FAULT("2.7.0", "Its Reciprocal between pairs has 1.5 dB where the output is large.",
      "Q8", "tests/qnn/test_emulator.py::test_faults_that_the_target_heeds")
FAULT("2.7.0", "Its Max of 16 bits with a vector of zeros makes zeros of all numbers.",
      "Q8", "tests/qnn/test_emulator.py::test_faults_that_the_target_heeds")
FAULT("2.7.0", "Its Log of 16 bits has -9 dB.", "Q11",
      "tests/qnn/test_emulator.py::test_faults_that_the_target_heeds")
FAULT("2.7.0",
      "It leaves a GELU with 8 bits on one side and 16 on the other to the processor.",
      "Q15", "tests/qnn/test_emulator.py::test_a_gelu_of_two_formats")
FAULT("2.7.0",
      "It does not load a product with a matrix of 32 by 32 whose input is converted "
      "from 8 to 16 bits where it enters the HTP.",
      "Q16", "tests/qnn/test_emulator.py::test_a_product_behind_a_converted_input")
FAULT("2.7.0",
      "It makes one operator of floats of the five nodes of a GELU, which v68 refuses.",
      "Q18",
      "tests/qnn/test_emulator.py::test_a_gelu_of_several_nodes_is_one_of_floats")
FAULT(
    "2.7.0",
    "As v68 and v69 it rounds what it multiplies sums by to eleven binary digits where "
    "it divides zero points by it: a Conv of 16 bits has 46 dB, and 69 with ten "
    "digits.",
    "Q19", "tests/qnn/test_generations.py::test_factors_are_rounded_to_eleven_digits")
FAULT("2.7.0",
      "As v68 and v69 its ReduceSum of 16 bits makes zeros of one row of products, "
      "unless "
      "it keeps its axes.",
      "Q20", "tests/qnn/test_generations.py::test_the_sum_of_one_row_of_products")
FAULT("2.7.0",
      "As v68 it does not load a Gather of a table of floats, nor of one with another "
      "scale than what is gathered.",
      "Q21", "tests/qnn/test_generations.py::test_a_table_of_floats")
FAULT("2.7.0", "As v68 it does not load a quotient by a ReduceL2 of 16 bits.", "Q23",
      "tests/qnn/test_generations.py::test_a_quotient_by_a_norm")
FAULT(
    "2.7.0",
    "It does not convert what a Concat joins behind a Reshape or Transpose of an input "
    "of the model, or in 8 bits behind one of another Concat: -2 dB are left.",
    "Q24", "tests/qnn/test_generations.py::test_a_moved_input_in_front_of_a_concat")
