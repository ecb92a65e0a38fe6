/* SPDX-License-Identifier: Apache-2.0 */
/* A progress line on the terminal. Nothing is printed where standard error is none. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

#include "api/eta.h"

struct progress {
    bool shown; /* standard error is a terminal */
    enum qdq_stage stage;
    int64_t drawn_at; /* milliseconds on the monotonic clock */
    struct api_eta eta;
};

void progress_start(struct progress *progress);
/* Redraws the line. It is a qdq_progress_fn whose `arg` is the struct progress, and never
   cancels the work. */
bool progress_update(void *arg, const struct qdq_progress *news);
/* Clears the line. */
void progress_end(struct progress *progress);

#endif
