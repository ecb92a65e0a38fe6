/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors on their way to a runner's program and back: files with the elements, JSON with the rest. */
#ifndef JUDGES_RUNNER_TENSORS_H
#define JUDGES_RUNNER_TENSORS_H

#include "runner/program.h"
#include "qdq/runtime.h"

#include <jansson.h>

/* Inputs that the program has, each in a file that keeps its name as long as its bytes. */
struct sent_inputs {
    struct sent_input {
        struct qdq_tensor tensor; /* owned copies */
        char file[32];
    } * list;
    size_t n;
    uint64_t next; /* number of the next file */
};

/* Writes the inputs that are not sent already, and forgets those of before. *ret is a list for
   a request, which the caller releases. IO, NO_MEMORY. */
enum qdq_code tensors_send(struct program *program, struct sent_inputs *sent,
                           const struct qdq_tensor *inputs, size_t n, json_t **ret,
                           struct qdq_error *err) QDQ_MUST_CHECK;
void sent_inputs_fini(struct sent_inputs *sent);

struct received {
    struct qdq_tensor *list; /* the data are owned, and the shapes */
    size_t n;
};

/* Reads the outputs of an answer, and removes their files. RUNNER_FAILED where something is not of the
   protocol; NO_MEMORY. */
enum qdq_code tensors_receive(struct program *program, const json_t *list,
                              struct received *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void received_fini(struct received *received);

#endif
