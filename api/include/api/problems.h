/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of all errors that a client can see.
 *
 *   PROBLEM_ENGINE(NAME, status, retryable)           a code of qdq/codes.h
 *   PROBLEM(NAME, "slug", status, retryable, "meaning")  a code of the service
 *
 * The engine's rows are first and in the order of qdq/codes.h, which problem.c asserts.
 */
PROBLEM_ENGINE(INVALID_MODEL, 400, false)
PROBLEM_ENGINE(INVALID_DATASET, 400, false)
PROBLEM_ENGINE(INVALID_SPEC, 422, false)
PROBLEM_ENGINE(UNSUPPORTED, 422, false)
PROBLEM_ENGINE(UNMATCHED, 422, false)
PROBLEM_ENGINE(CASE_FAILED, 422, false)
PROBLEM_ENGINE(EXTERNAL_MISSING, 422, false)
PROBLEM_ENGINE(EXTERNAL_AMBIGUOUS, 422, false)
PROBLEM_ENGINE(EXISTING_QDQ, 422, false)
PROBLEM_ENGINE(NO_CALIBRATION, 422, false)
PROBLEM_ENGINE(CALIBRATION_MISMATCH, 422, false)
PROBLEM_ENGINE(NONFINITE, 422, false)
PROBLEM_ENGINE(NOT_OBSERVED, 422, false)
PROBLEM_ENGINE(AT_CHANCE, 422, false)
PROBLEM_ENGINE(RUN_FAILED, 422, false)
PROBLEM_ENGINE(CANNOT_LOAD, 422, false)
PROBLEM_ENGINE(RUNTIME_MISSING, 503, true)
PROBLEM_ENGINE(JUDGE_GONE, 503, true)
PROBLEM_ENGINE(RUNNER_FAILED, 503, true)
PROBLEM_ENGINE(NO_DEVICE, 422, false)
PROBLEM_ENGINE(NO_DRIVER, 422, false)
PROBLEM_ENGINE(OLD_DRIVER, 422, false)
PROBLEM_ENGINE(DEVICE_LOST, 503, true)
PROBLEM_ENGINE(DEVICE_MEMORY, 503, true)
PROBLEM_ENGINE(LIMIT_EXCEEDED, 422, false)
PROBLEM_ENGINE(NO_MEMORY, 503, true)
PROBLEM_ENGINE(IO, 500, true)
PROBLEM_ENGINE(CANCELLED, 409, false)
PROBLEM_ENGINE(INTERNAL, 500, false)
PROBLEM(BAD_REQUEST, "bad_request", 400, false, "the request cannot be read")
PROBLEM(INVALID_JSON, "invalid_json", 400, false, "the body is not valid JSON")
PROBLEM(EMPTY_BODY, "empty_body", 400, false, "the request has no body")
PROBLEM(MISSING_PART, "missing_part", 400, false,
        "the request lacks a part or member that it needs")
PROBLEM(DIGEST_MISMATCH, "digest_mismatch", 400, false,
        "the bytes do not hash to the digest that was given")
PROBLEM(UNAUTHORIZED, "unauthorized", 401, false,
        "the request has no access token, or one that is not known")
PROBLEM(FORBIDDEN, "forbidden", 403, false, "the access token does not allow this")
PROBLEM(HOST_NOT_ALLOWED, "host_not_allowed", 403, false,
        "the Host or Origin header names a foreign host")
PROBLEM(NOT_FOUND, "not_found", 404, false, "there is no such resource")
PROBLEM(METHOD_NOT_ALLOWED, "method_not_allowed", 405, false,
        "the resource does not know this method")
PROBLEM(NOT_ACCEPTABLE, "not_acceptable", 406, false,
        "the resource has no form that the Accept header takes")
PROBLEM(NOT_FINISHED, "not_finished", 409, true, "the job has not ended yet")
PROBLEM(FAILED, "failed", 409, false, "the job failed and has no model")
PROBLEM(ACCURACY, "accuracy", 409, false,
        "the quantized model missed a bound that was asked for")
PROBLEM(ENDED, "ended", 409, false, "the job has ended already")
PROBLEM(IN_USE, "in_use", 409, true, "a job that has not ended needs this resource")
PROBLEM(MODEL_CONFLICT, "model_conflict", 409, false,
        "the same files are stored already with another of them as the model")
PROBLEM(PRECONDITION_FAILED, "precondition_failed", 412, false,
        "the resource is not as If-Match or If-None-Match asks for")
PROBLEM(TOO_LARGE, "too_large", 413, false, "the body is over the configured limit")
PROBLEM(UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", 415, false,
        "the route does not take this content type or coding")
PROBLEM(RANGE_NOT_SATISFIABLE, "range_not_satisfiable", 416, false,
        "the range has none of the bytes that are there")
PROBLEM(EXTERNAL_UNUSED, "external_unused", 422, false,
        "a file was sent with the model that the model does not name")
PROBLEM(IDEMPOTENCY_MISMATCH, "idempotency_mismatch", 422, false,
        "something else was asked with this Idempotency-Key before")
PROBLEM(QUEUE_FULL, "queue_full", 429, true, "the queue is full")
PROBLEM(HEADER_TOO_LARGE, "header_too_large", 431, false,
        "the head of the request is over the configured limit")
PROBLEM(DAMAGED, "damaged", 500, false,
        "stored bytes are damaged; store them again, or run the job again")
PROBLEM(WORKER_DIED, "worker_died", 500, true,
        "the process that worked on this ended unexpectedly, also when tried again")
PROBLEM(DRAINING, "draining", 503, true, "the daemon is stopping")
PROBLEM(BUSY, "busy", 503, true,
        "there are as many connections, or as many large requests, as there may be")
PROBLEM(UNAVAILABLE, "unavailable", 503, true,
        "the service lacks something at this moment that it needs for this")
PROBLEM(STILL_RUNNING, "still_running", 504, true,
        "the job is still running; its place is in Location")
PROBLEM(REMOTE_UNKNOWN, "remote_unknown", 422, false, "there is no remote of that name")
PROBLEM(REMOTE_DENIED, "remote_denied", 403, false,
        "the remote may not be used for this, or it refused the request")
PROBLEM(REMOTE_UNAVAILABLE, "remote_unavailable", 503, true,
        "the remote cannot be reached, or failed")
PROBLEM(REMOTE_NOT_FOUND, "remote_not_found", 422, false,
        "the remote does not have what the ref names")
PROBLEM(REMOTE_TOO_LARGE, "remote_too_large", 422, false,
        "the remote has, or sent, more bytes than it may")
PROBLEM(REMOTE_DIGEST_MISMATCH, "remote_digest_mismatch", 422, false,
        "the bytes that the remote sent do not hash to the digest that it named")
PROBLEM(SIGNATURE_INVALID, "signature_invalid", 401, false,
        "the message is not signed for this hook, or was signed too long ago")
PROBLEM(DISK_FULL, "disk_full", 507, true, "there is no room to store this")
