/* SPDX-License-Identifier: Apache-2.0 */
/* One line on the terminal that says how far the work is; nothing where there is none.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

#include "api/eta.h"

struct progress {
    bool shown; /* standard error is a terminal */
    enum qdq_stage stage;
    int64_t drawn; /* milliseconds on the monotonic clock */
    struct api_eta eta;
};

void progress_start(struct progress *progress);
/* A qdq_progress_fn; `arg` is the struct progress. Never cancels. */
bool progress_tell(void *arg, const struct qdq_progress *told);
/* Clears the line. */
void progress_end(struct progress *progress);

#endif
