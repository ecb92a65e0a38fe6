/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every error code of the engine, one row each: QDQ_CODE(NAME, "slug", "meaning").
 *
 * The enum (qdq/error.h), the lookup, `GET /v1/errors` and the tests expand these rows.
 * The slug is stable: pipelines compare it. The HTTP status of a code stands in
 * api/include/api/problems.h, because the engine knows no HTTP.
 *
 * A code answers "what should the caller do?": mend the model, the data or the spec,
 * try again, or report a bug.
 */
QDQ_CODE(INVALID_MODEL, "invalid_model", "the bytes are not a valid ONNX model")
QDQ_CODE(INVALID_DATASET, "invalid_dataset",
         "the bytes are no file with data that can be used (.npz, .npy, .parquet, "
         ".safetensors, .zip, .tar)")
QDQ_CODE(INVALID_SPEC, "invalid_spec",
         "the spec has an unknown member, a wrong type or a value out of range")
QDQ_CODE(UNSUPPORTED, "unsupported",
         "a known option or model feature that this version cannot do")
QDQ_CODE(UNMATCHED, "unmatched", "a name in the spec matches nothing in the model")
QDQ_CODE(CASE_FAILED, "case_failed",
         "an insertion case cannot be loaded, failed, or went beyond its limits")
QDQ_CODE(EXTERNAL_MISSING, "external_missing",
         "the model keeps data in a file that was not sent with it")
QDQ_CODE(EXTERNAL_AMBIGUOUS, "external_ambiguous",
         "more than one of the files sent with the model may be the one that it names")
QDQ_CODE(EXISTING_QDQ, "existing_qdq",
         "the model has QuantizeLinear or DequantizeLinear nodes already")
QDQ_CODE(NO_CALIBRATION, "no_calibration",
         "activations are to be quantized, but there is neither data nor a range")
QDQ_CODE(CALIBRATION_MISMATCH, "calibration_mismatch",
         "the calibration data does not fit the model's inputs")
QDQ_CODE(NONFINITE, "nonfinite", "a NaN or an infinity was met")
QDQ_CODE(NOT_OBSERVED, "not_observed",
         "no calibration sample has values of a tensor to be quantized")
QDQ_CODE(AT_CHANCE, "float_at_chance",
         "the float model is no better than a guess on the data to judge by")
QDQ_CODE(RUN_FAILED, "run_failed", "ONNX Runtime could not load or run the model")
QDQ_CODE(CANNOT_LOAD, "target_cannot_load",
         "the runtime of the target cannot load the model or the result")
QDQ_CODE(RUNTIME_MISSING, "runtime_missing",
         "the ONNX Runtime library is not there, so no model can be run")
QDQ_CODE(JUDGE_GONE, "judge_gone",
         "the process that runs results as deployed ended, also when started again")
QDQ_CODE(RUNNER_FAILED, "runner_failed",
         "the operator's program that judges results failed, or broke its protocol")
QDQ_CODE(NO_DEVICE, "no_device",
         "a GPU was asked for and none can be used: no module, runtime or device")
QDQ_CODE(NO_DRIVER, "no_driver", "a GPU was asked for, and its driver is not installed")
QDQ_CODE(OLD_DRIVER, "old_driver",
         "a GPU was asked for, and its driver is too old for this version")
QDQ_CODE(DEVICE_LOST, "device_lost", "the GPU stopped working while it was used")
QDQ_CODE(DEVICE_MEMORY, "device_memory", "the GPU has not enough memory")
QDQ_CODE(LIMIT_EXCEEDED, "limit_exceeded", "a configured limit was exceeded")
QDQ_CODE(NO_MEMORY, "no_memory", "out of memory")
QDQ_CODE(IO, "io", "reading or writing a file failed")
QDQ_CODE(CANCELLED, "cancelled", "the work was cancelled")
QDQ_CODE(INTERNAL, "internal", "a bug in qdqd")
