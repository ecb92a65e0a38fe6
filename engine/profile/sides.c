/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "profile/sides.h"

#include "data/file.h"
#include "run/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Runs that the profiler sees, and nodes of each model that the report lists. */
enum { TRACED_RUNS = 10, SLOWEST = 20 };

/* --- sessions ------------------------------------------------------------- */

static enum qdq_code
open_session(const struct qdqi_sides *s, int side, const char *trace,
             struct qdqi_session **ret, struct qdq_error *err)
{
    const struct qdq_model *model =
        side == QDQ_SIDE_FLOAT ? s->job->original : s->quantized;
    const struct qdqi_session_options options = {
        .dev = s->job->dev,
        .threads = (int)s->job->work->spec->profile.threads,
        .trace = trace};
    return qdqi_session_open(s->runtime, model, model->proto, &options, ret, err);
}

enum qdq_code
qdqi_sides_open(struct qdqi_sides *s, struct qdq_dataset *data, struct qdq_error *err)
{
    const struct qdq_work *work = s->job->work;
    const struct qdq_external external = {work->output_data_name, work->output_data};
    const struct qdqi_feed_options options = {.batch = work->spec->profile.batch};
    const bool split = s->job->report->view.external_bytes > 0;
    enum qdq_code code = qdqi_engine_runtime(s->job->engine, &s->runtime, err);
    if (code ||
        (code = qdqi_feed_open(&s->job->fixed, data, &options, &s->feed, err)) ||
        (code = qdqi_feed_next(s->feed, &s->inputs, &s->batch, err)) ||
        (code =
             qdq_model_open_files(work->output, &external, split, &s->quantized, err)))
        return code;
    for (int side = 0; !code && side < QDQ_N_SIDES; side++)
        code = open_session(s, side, NULL, &s->sessions[side], err);
    return code;
}

void
qdqi_sides_close(struct qdqi_sides *s)
{
    for (int side = 0; side < QDQ_N_SIDES; side++)
        qdqi_session_close(&s->sessions[side]);
    qdq_model_free(&s->quantized);
    qdqi_feed_close(&s->feed);
}

static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static enum qdq_code
run_once(const struct qdqi_sides *s, struct qdqi_session *session,
         struct qdq_error *err)
{
    const struct qdqi_output *outputs;
    size_t n;
    return qdqi_session_run(session, s->inputs, s->job->original->info.n_inputs,
                            &outputs, &n, err);
}

enum qdq_code
qdqi_sides_run(struct qdqi_sides *s, int side, double *ret_ms, struct qdq_error *err)
{
    double start = now_ms();
    enum qdq_code code = run_once(s, s->sessions[side], err);
    *ret_ms = now_ms() - start;
    return code;
}

/* --- the profiler --------------------------------------------------------- */

/* Reads the whole file as text. Returns NULL when it is empty or cannot be read. */
static char *
read_text(int fd, struct qdqi_arena *arena)
{
    struct stat st;
    char *text = NULL;
    size_t got = 0;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        text = qdqi_arena_alloc(arena, (size_t)st.st_size + 1);
    if (text && qdqi_file_read(fd, 0, text, (size_t)st.st_size, &got))
        text = NULL;
    return text;
}

/*
 * Runs one model with the profiler, which writes to a file whose name begins with
 * `prefix`. *ret_text is NULL when there is no file. `fd` is the file that a caged process
 * writes instead; -1: there is none.
 */
static enum qdq_code
trace_side(struct qdqi_sides *s, int side, const char *prefix, int fd, char **ret_text,
           struct qdq_error *err)
{
    char path[PATH_MAX];
    struct qdqi_session *session = NULL;
    enum qdq_code code = open_session(s, side, prefix, &session, err);
    for (int i = 0; !code && i < TRACED_RUNS; i++)
        code = run_once(s, session, err);
    if (!code)
        code = qdqi_session_end_trace(session, path, sizeof path, err);
    qdqi_session_close(&session);
    if (code)
        return code;
    int file = fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        *ret_text = read_text(file, s->job->scratch);
    if (fd < 0) {
        unlink(path);
        if (file >= 0)
            close(file);
    }
    return QDQ_OK;
}

static int
compare_times(const void *a, const void *b)
{
    double x = ((const struct qdqi_traced_node *)a)->ms;
    double y = ((const struct qdqi_traced_node *)b)->ms;
    return (y > x) - (y < x);
}

static bool
add_op(struct qdq_profile *ret, int side, const char *op, double ms,
       struct qdqi_arena *arena)
{
    struct qdq_op_time *ops = (struct qdq_op_time *)(uintptr_t)ret->ops;
    size_t i = 0;
    while (i < ret->n_ops && strcmp(ops[i].op, op) != 0)
        i++;
    if (i == ret->n_ops) {
        ops[i].op = qdqi_arena_strdup(arena, op);
        ret->n_ops++;
    }
    ops[i].ms[side] += ms;
    return ops[i].op != NULL;
}

static enum qdq_code
report_side(const struct qdqi_sides *s, int side, struct qdqi_trace *trace,
            struct qdq_profile *ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = s->job->arena;
    struct qdq_node_time *nodes = (struct qdq_node_time *)(uintptr_t)ret->nodes;
    bool ok = true;
    qsort(trace->nodes, trace->n_nodes, sizeof *trace->nodes, compare_times);
    ret->sides[side].peak_bytes = trace->peak_bytes;
    for (size_t i = 0; ok && i < trace->n_nodes; i++) {
        const struct qdqi_traced_node *node = &trace->nodes[i];
        double ms = node->ms / TRACED_RUNS;
        ok = add_op(ret, side, node->op, ms, arena);
        if (!ok || i >= SLOWEST)
            continue;
        nodes[ret->n_nodes] =
            (struct qdq_node_time){.quantized = side == QDQ_SIDE_QUANTIZED,
                                   .name = qdqi_arena_strdup(arena, node->name),
                                   .op = qdqi_arena_strdup(arena, node->op),
                                   .provider = qdqi_arena_strdup(arena, node->provider),
                                   .ms = ms};
        ok = nodes[ret->n_nodes].name && nodes[ret->n_nodes].op &&
             nodes[ret->n_nodes].provider;
        ret->n_nodes++;
    }
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

static int
compare_ops(const void *a, const void *b)
{
    const struct qdq_op_time *x = a, *y = b;
    double left = fmax(x->ms[0], x->ms[1]), right = fmax(y->ms[0], y->ms[1]);
    return (right > left) - (right < left);
}

static enum qdq_code
report_all(struct qdqi_sides *s, char *const texts[QDQ_N_SIDES],
           struct qdq_profile *ret, struct qdq_error *err)
{
    struct qdqi_trace traces[QDQ_N_SIDES];
    enum qdq_code code = QDQ_OK;
    size_t n = 0;
    for (int side = 0; !code && side < QDQ_N_SIDES; side++) {
        code = qdqi_trace_parse(texts[side], s->job->scratch, &traces[side], err);
        n += code ? 0 : traces[side].n_nodes;
    }
    if (code)
        return code;
    ret->ops = qdqi_arena_array(s->job->arena, n, sizeof *ret->ops);
    ret->nodes = qdqi_arena_array(s->job->arena, (size_t)SLOWEST * QDQ_N_SIDES,
                                  sizeof *ret->nodes);
    if (!ret->ops || !ret->nodes)
        return qdqi_no_memory(err);
    for (int side = 0; !code && side < QDQ_N_SIDES; side++)
        code = report_side(s, side, &traces[side], ret, err);
    qsort((void *)(uintptr_t)ret->ops, ret->n_ops, sizeof *ret->ops, compare_ops);
    return code;
}

/* Traces one model in a process that can make folders. */
static enum qdq_code
trace_in_folder(struct qdqi_sides *s, int side, const char *folder, char **ret_text,
                struct qdq_error *err)
{
    char prefix[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%.4000s/run", folder);
    return trace_side(s, side, prefix, -1, ret_text, err);
}

/*
 * Traces one model in a process that opens no paths. The runtime adds the time to the
 * path, and the worker's cage answers such a path with the descriptor that it names.
 */
static enum qdq_code
trace_in_buffer(struct qdqi_sides *s, int side, char **ret_text, struct qdq_error *err)
{
    char prefix[64];
    int fd = qdqi_file_open_buffer();
    if (fd < 0)
        return QDQ_OK;
    snprintf(prefix, sizeof prefix, "/proc/self/fd/%d", fd);
    enum qdq_code code = trace_side(s, side, prefix, fd, ret_text, err);
    close(fd);
    return code;
}

enum qdq_code
qdqi_sides_trace(struct qdqi_sides *s, struct qdq_profile *ret, struct qdq_error *err)
{
    const char *tmp = getenv("TMPDIR");
    char folder[PATH_MAX], *texts[QDQ_N_SIDES] = {NULL};
    snprintf(folder, sizeof folder, "%.4000s/qdq-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    enum qdq_code code = QDQ_OK;
    bool made = mkdtemp(folder) != NULL;
    for (int side = 0; !code && side < QDQ_N_SIDES; side++)
        code = made ? trace_in_folder(s, side, folder, &texts[side], err)
                    : trace_in_buffer(s, side, &texts[side], err);
    if (made)
        rmdir(folder);
    if (code)
        return code;
    for (int side = 0; side < QDQ_N_SIDES; side++)
        if (!texts[side])
            return qdqi_warn(&s->job->warnings, s->job->arena, err,
                             "profile_without_nodes", NULL,
                             "memory and the times of operators were not measured: "
                             "this process cannot write the profiler's file");
    return report_all(s, texts, ret, err);
}
