/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "progress.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "terminal.h"

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

/* Returns whether the line is to be drawn now, and notes that it is. */
static bool
is_due(struct progress *progress, const char *what, bool is_open)
{
    int64_t time = now();
    if (!progress->shown)
        return false;
    if (strcmp(what, progress->what) == 0 && time - progress->drawn_at < REDRAW &&
        is_open)
        return false;
    snprintf(progress->what, sizeof progress->what, "%s", what);
    progress->drawn_at = time;
    return true;
}

static void
draw_bar(const char *what, uint64_t done, uint64_t total)
{
    static const char bar[] = "##############################";
    static_assert(sizeof bar == BAR + 1, "the bar's length");
    double part = total > 0 && done < total ? (double)done / (double)total : 1;
    fputs("\r\033[K", stderr);
    put_text(stderr, what, 9);
    if (total > 0)
        fprintf(stderr, " [%-*.*s]", BAR, (int)(part * BAR), bar);
}

void
progress_show(struct progress *progress, const char *what, uint64_t done,
              uint64_t total, int64_t left)
{
    if (!is_due(progress, what, done < total || total == 0))
        return;
    draw_bar(what, done, total);
    if (total > 0)
        fprintf(stderr, " %llu/%llu", (unsigned long long)done,
                (unsigned long long)total);
    print_eta(left);
    fflush(stderr);
}

void
progress_show_bytes(struct progress *progress, const char *what, uint64_t done,
                    uint64_t total)
{
    if (!is_due(progress, what, true))
        return;
    draw_bar(what, done, total);
    fprintf(stderr, " %.1f", (double)done / 1e6);
    fprintf(stderr, total > 0 ? "/%.1f MB" : " MB", (double)total / 1e6);
    fflush(stderr);
}

bool
progress_update(void *arg, const struct qdq_progress *news)
{
    struct progress *progress = arg;
    int64_t time = now();
    if (!progress->shown)
        return false;
    api_eta_update(&progress->eta, news, time);
    progress_show(progress, qdq_stage_name(news->stage), news->done, news->total,
                  api_eta_left(&progress->eta, time));
    return false;
}

void
progress_clear(struct progress *progress)
{
    if (progress->shown && *progress->what) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    *progress->what = '\0';
}

void
progress_end(struct progress *progress)
{
    progress_clear(progress);
    progress->shown = false;
}
