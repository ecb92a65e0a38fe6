/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of the protocol of docs/runners.md to one program, which has one model. */
#ifndef JUDGES_RUNNER_SESSION_H
#define JUDGES_RUNNER_SESSION_H

#include "runner/tensors.h"

/* The words of a program about itself. */
struct runner_about {
    char name[64 + 1], version[128 + 1], device[128 + 1];
    bool only_plans; /* it runs nothing */
};

struct runner_session {
    struct program program;
    struct runner_about about;
    int id;     /* of the last request */
    bool times; /* runs are for their times alone: no outputs come back */
    char precision[16 + 1];
    struct sent_inputs inputs;
    struct received outputs;    /* of the last run */
    struct qdq_run_node *nodes; /* of the last answer, with the texts in `nodes_json` */
    const char **names;         /* of the model's nodes that they compute, one list */
    json_t *nodes_json;
};

/*
 * All functions that can fail set RUNNER_FAILED when the program fails or breaks the protocol,
 * RUN_FAILED when it cannot load or run the model, RUNTIME_MISSING when its runtime, provider or
 * device is not there, NO_MEMORY and IO.
 */

/* Starts the program in a new folder in the folder `above`, and greets it. Close it also after a
   failure. */
enum qdq_code runner_session_open(const struct runner_config *runner, const char *above,
                                  struct runner_session *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Loads the one model: the bytes of an ONNX file. */
enum qdq_code runner_session_load(struct runner_session *session, const void *bytes,
                                  size_t size, const struct qdq_run_options *options,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Runs the model once. ->outputs has the outputs, but for a session that is for times alone. */
enum qdq_code runner_session_run(struct runner_session *session,
                                 const struct qdq_tensor *inputs, size_t n,
                                 double *ret_ms, struct qdq_error *err) QDQ_MUST_CHECK;
/* Asks for the kernels. ->nodes has *ret_n of them. */
enum qdq_code runner_session_ask_kernels(struct runner_session *session, size_t *ret_n,
                                         struct qdq_error *err) QDQ_MUST_CHECK;
/* Has the program write what it compiled of the model as a model. *ret has its *ret_size bytes, which the
   caller frees. */
enum qdq_code runner_session_make_context(struct runner_session *session, void **ret,
                                          size_t *ret_size,
                                          struct qdq_error *err) QDQ_MUST_CHECK;
void runner_session_close(struct runner_session *session);

#endif
