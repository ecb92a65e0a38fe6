/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "progress.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30, REDRAW = 100 }; /* characters, milliseconds */

static int64_t
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void
progress_start(struct progress *progress)
{
    const char *terminal = getenv("TERM");
    *progress = (struct progress){
        .shown = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0,
        .stage = QDQ_N_STAGES,
    };
    api_eta_start(&progress->eta, NULL);
}

static void
print_eta(int64_t left)
{
    if (left < 0)
        return;
    if (left >= 60)
        fprintf(stderr, "  %lld min %02lld s left", (long long)left / 60,
                (long long)left % 60);
    else
        fprintf(stderr, "  %lld s left", (long long)left);
}

static void
draw(const struct progress *progress, const struct qdq_progress *news, int64_t time)
{
    static const char bar[] = "##############################";
    static_assert(sizeof bar == BAR + 1, "the bar's length");
    bool open = news->total > 0 && news->done < news->total;
    double part = open ? (double)news->done / (double)news->total : 1;
    fprintf(stderr, "\r\033[K%-9s", qdq_stage_name(news->stage));
    if (news->total > 0)
        fprintf(stderr, " [%-*.*s] %llu/%llu", BAR, (int)(part * BAR), bar,
                (unsigned long long)news->done, (unsigned long long)news->total);
    print_eta(api_eta_left(&progress->eta, time));
    fflush(stderr);
}

bool
progress_update(void *arg, const struct qdq_progress *news)
{
    struct progress *progress = arg;
    int64_t time = now();
    bool is_new_stage = news->stage != progress->stage;
    if (!progress->shown)
        return false;
    api_eta_update(&progress->eta, news, time);
    if (!is_new_stage && time - progress->drawn_at < REDRAW && news->done < news->total)
        return false;
    progress->stage = news->stage;
    progress->drawn_at = time;
    draw(progress, news, time);
    return false;
}

void
progress_end(struct progress *progress)
{
    if (progress->shown && progress->stage != QDQ_N_STAGES)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
