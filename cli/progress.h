/* SPDX-License-Identifier: Apache-2.0 */
/* A progress line on the terminal. Nothing is printed where standard error is none. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

#include "api/eta.h"

struct progress {
    bool shown;       /* standard error is a terminal */
    char what[32];    /* the stage that is drawn; "": none */
    int64_t drawn_at; /* milliseconds on the monotonic clock */
    struct api_eta eta;
};

void progress_start(struct progress *progress);
/* Redraws the line. It is a qdq_progress_fn whose `arg` is the struct progress, and never
   cancels the work. */
bool progress_update(void *arg, const struct qdq_progress *news);
/* Redraws the line for work whose progress comes from elsewhere. A `total` of 0 is not known,
   and neither is a negative number of seconds left. */
void progress_show(struct progress *progress, const char *what, uint64_t done,
                   uint64_t total, int64_t left);
/* Does the same for bytes that move. */
void progress_show_bytes(struct progress *progress, const char *what, uint64_t done,
                         uint64_t total);
/* Clears the line, to be drawn again. */
void progress_clear(struct progress *progress);
/* Clears the line for good. */
void progress_end(struct progress *progress);

#endif
