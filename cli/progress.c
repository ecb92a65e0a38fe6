/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "progress.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30 };
static const double REDRAW = 0.1;  /* seconds */
static const double SETTLED = 0.5; /* a stage this old can tell how long it will take */

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void
progress_start(struct progress *progress)
{
    const char *terminal = getenv("TERM");
    *progress = (struct progress){
        .shown = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0,
        .stage = QDQ_N_STAGES,
    };
}

static void
print_eta(double elapsed, double part)
{
    if (elapsed < SETTLED || part <= 0)
        return;
    long left = lround(elapsed * (1 - part) / part);
    if (left >= 60)
        fprintf(stderr, "  %ld min %02ld s left", left / 60, left % 60);
    else
        fprintf(stderr, "  %ld s left", left);
}

bool
progress_tell(void *arg, enum qdq_stage stage, uint64_t done, uint64_t total)
{
    struct progress *progress = arg;
    double time = now();
    bool fresh = stage != progress->stage;
    if (!progress->shown || (!fresh && time - progress->drawn < REDRAW && done < total))
        return false;
    if (fresh)
        progress->stage_began = time;
    progress->stage = stage;
    progress->drawn = time;

    double part = total > 0 && done < total ? (double)done / (double)total : 1;
    fprintf(stderr, "\r\033[K%-9s", qdq_stage_name(stage));
    if (total > 0) {
        static const char bar[] = "##############################";
        static_assert(sizeof bar == BAR + 1, "the bar's length");
        fprintf(stderr, " [%-*.*s] %llu/%llu", BAR, (int)(part * BAR), bar,
                (unsigned long long)done, (unsigned long long)total);
        print_eta(time - progress->stage_began, part);
    }
    fflush(stderr);
    return false;
}

void
progress_end(struct progress *progress)
{
    if (progress->shown && progress->stage != QDQ_N_STAGES)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
