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
      "between the two loses its sign: 0 to 17 dB are left.",
      "V13",
      "tests/e2e/targets/test_openvino_extremes.py::"
      "test_openvino_is_wrong_where_it_has_pairs")
FAULT("2026.4", "It refuses to load a weight whose blocks do not divide its axis.",
      "V6", "tests/e2e/plan/test_runtime_faults.py::test_a_block_that_does_not_divide")
