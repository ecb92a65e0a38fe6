/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/profile/kept_times.h"

#include "files/data/file.h"
#include "ground/base/host.h"
#include "stages/evaluate/deployed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limits of a file, and of the rows that are kept beside those of the job. */
enum { MOST_BYTES = 4 << 20, MOST_ROWS = 4000, MOST_KERNELS = 100000, SUM_LINE = 21 };

static const uint64_t HASH_BEGIN = 0xcbf29ce484222325ULL;
static const uint64_t HASH_BY = 0x100000001b3ULL;

/* A ratio, or a trace. */
struct row {
    uint64_t key;
    bool is_trace;
    bool is_of_job; /* the job took or added it */
    double ratio;
    struct qdqi_trace trace;
};

struct qdqi_kept_times {
    struct qdqi_arena *arena;
    const char *identity;
    int fd; /* the caller's; -1: none */
    struct row *rows;
    size_t n, capacity;
    bool has_new;
};

/* --- keys ----------------------------------------------------------------------- */

static uint64_t
add_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * HASH_BY;
    return hash;
}

static uint64_t
add_number(uint64_t hash, int64_t number)
{
    return add_bytes(hash, &number, sizeof number);
}

static uint64_t
add_text(uint64_t hash, const char *text)
{
    return text ? add_bytes(hash, text, strlen(text) + 1) : add_number(hash, 0);
}

static uint64_t
add_constant(uint64_t hash, const struct qdqi_tensor *t)
{
    hash = add_number(hash, t->constant->data_type);
    for (size_t i = 0; i < t->constant->n_dims; i++)
        hash = add_number(hash, t->constant->dims[i]);
    return hash;
}

static uint64_t
add_node(uint64_t hash, const struct qdqi_node *node)
{
    hash = add_text(add_text(hash, node->proto->op_type), node->name);
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        hash = add_text(hash, t ? t->name : NULL);
        if (t && t->constant)
            hash = add_constant(hash, t);
    }
    for (size_t i = 0; i < node->proto->n_output; i++)
        hash = add_text(hash, node->outputs[i] ? node->outputs[i]->name : NULL);
    return hash;
}

uint64_t
qdqi_kept_times_key(const struct qdq_model *model, const struct qdqi_input *inputs,
                    size_t n_inputs)
{
    uint64_t hash = HASH_BEGIN;
    for (size_t i = 0; i < model->graph.n_nodes; i++)
        hash = add_node(hash, &model->graph.nodes[i]);
    for (size_t i = 0; i < n_inputs; i++) {
        hash = add_number(hash, inputs[i].dtype);
        for (size_t k = 0; k < inputs[i].rank; k++)
            hash = add_number(hash, inputs[i].shape[k]);
    }
    return hash;
}

/* --- text ------------------------------------------------------------------------- */

struct text {
    char *bytes; /* on the heap; ends with NUL */
    size_t n, capacity;
    bool failed;
};

static void QDQ_PRINTF(2, 3) print(struct text *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *grown = to->failed || n < 0
                      ? NULL
                      : qdqi_grow(to->bytes, &to->capacity, to->n + (size_t)n + 1, 1);
    if (!grown) {
        to->failed = true;
        return;
    }
    to->bytes = grown;
    va_start(args, fmt);
    vsnprintf(to->bytes + to->n, (size_t)n + 1, fmt, args);
    va_end(args);
    to->n += (size_t)n;
}

static bool
is_plain(unsigned char c)
{
    return c > ' ' && c != '%' && c != 0x7f;
}

static void
print_name(struct text *to, const char *name)
{
    for (const char *p = name; *p; p++)
        if (is_plain((unsigned char)*p))
            print(to, "%c", *p);
        else
            print(to, "%%%02X", (unsigned char)*p);
}

static int
digit_of(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Undoes the escapes of a name in place. Returns false for one that is not in that form. */
static bool
read_name(char *name)
{
    char *to = name;
    for (const char *p = name; *p; p++) {
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        const int high = digit_of(p[1]), low = high < 0 ? -1 : digit_of(p[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *to++ = (char)(high * 16 + low);
        p += 2;
    }
    *to = '\0';
    return true;
}

/* --- reading ------------------------------------------------------------------------ */

/* Cuts the next field, up to a character or the end, off *at. Returns NULL when nothing is left. */
static char *
cut(char **at, char end)
{
    char *field = *at;
    if (!field)
        return NULL;
    char *stop = strchr(field, end);
    *at = stop ? stop + 1 : NULL;
    if (stop)
        *stop = '\0';
    return field;
}

static bool
read_key(char **at, uint64_t *ret)
{
    char *end, *field = cut(at, ' ');
    if (!field || strlen(field) != 16)
        return false;
    *ret = strtoull(field, &end, 16);
    return *end == '\0';
}

/* Reads a number that is finite and at least 0. */
static bool
read_number(char **at, double *ret)
{
    char *end, *field = cut(at, ' ');
    if (!field || !*field)
        return false;
    *ret = strtod(field, &end);
    return *end == '\0' && isfinite(*ret) && *ret >= 0;
}

static bool
read_kernel(char *line, struct qdqi_traced_node *ret)
{
    double kind;
    char *at = line, *word = cut(&at, ' ');
    bool ok = word && strcmp(word, "kernel") == 0 && read_number(&at, &kind) &&
              kind <= QDQ_NODE_OTHER && read_number(&at, &ret->least_ms) &&
              read_number(&at, &ret->made_bytes);
    char *op = ok ? cut(&at, ' ') : NULL, *name = op ? cut(&at, ' ') : NULL;
    if (!name || at || !read_name(op) || !read_name(name))
        return false;
    ret->kind = (enum qdq_node_kind)kind;
    ret->op = op;
    ret->name = name;
    ret->provider = "";
    return true;
}

/* Reads the kernels of a trace from the lines that follow. */
static bool
read_kernels(struct qdqi_kept_times *kept, char **lines, double n,
             struct qdqi_trace *ret)
{
    if (!(n <= MOST_KERNELS) || n != floor(n))
        return false;
    ret->nodes = qdqi_arena_array(kept->arena, (size_t)n + 1, sizeof *ret->nodes);
    bool ok = ret->nodes;
    while (ok && ret->n_nodes < (size_t)n) {
        char *line = cut(lines, '\n');
        ok = line && read_kernel(line, &ret->nodes[ret->n_nodes]);
        ret->n_nodes++;
    }
    return ok;
}

static struct row *
add_row(struct qdqi_kept_times *kept)
{
    struct row *rows = qdqi_arena_grow(kept->arena, kept->rows, kept->n,
                                       &kept->capacity, sizeof *rows);
    if (!rows)
        return NULL;
    kept->rows = rows;
    rows[kept->n] = (struct row){0};
    return &rows[kept->n++];
}

static bool
read_row(struct qdqi_kept_times *kept, char *line, char **lines)
{
    char *at = line, *word = cut(&at, ' ');
    struct row *row = add_row(kept);
    double number;
    if (!row || !word || !read_key(&at, &row->key) || !read_number(&at, &number) || at)
        return false;
    row->is_trace = strcmp(word, "trace") == 0;
    row->ratio = number;
    return row->is_trace ? read_kernels(kept, lines, number, &row->trace)
                         : strcmp(word, "ratio") == 0 && number > 0;
}

/* Returns the part of the file between its identity and its sum, or NULL. */
static char *
find_rows(const struct qdqi_kept_times *kept, char *text, size_t n)
{
    char sum[SUM_LINE + 1];
    const size_t head = strlen(kept->identity);
    if (n < head + SUM_LINE || memchr(text, '\0', n))
        return NULL;
    snprintf(sum, sizeof sum, "sum %016" PRIx64 "\n",
             add_bytes(HASH_BEGIN, text, n - SUM_LINE));
    if (memcmp(text, kept->identity, head) != 0 ||
        memcmp(text + n - SUM_LINE, sum, SUM_LINE) != 0)
        return NULL;
    text[n - SUM_LINE] = '\0';
    return text + head;
}

static void
read_rows(struct qdqi_kept_times *kept, char *text, size_t n)
{
    char *lines = find_rows(kept, text, n);
    bool ok = lines;
    while (ok && lines && *lines && kept->n < MOST_ROWS)
        ok = read_row(kept, cut(&lines, '\n'), &lines);
    if (!ok)
        kept->n = 0;
}

static enum qdq_code
read_file(struct qdqi_kept_times *kept, struct qdq_error *err)
{
    struct stat st;
    size_t got = 0;
    if (kept->fd < 0 || fstat(kept->fd, &st) || st.st_size > MOST_BYTES)
        return QDQ_OK;
    char *text = qdqi_arena_alloc(kept->arena, (size_t)st.st_size + 1);
    if (!text)
        return qdqi_no_memory(err);
    if (qdqi_file_read(kept->fd, 0, text, (size_t)st.st_size, &got) == 0)
        read_rows(kept, text, got);
    return QDQ_OK;
}

char *
qdq_times_identity(const struct qdq_spec *spec, const char *model_id)
{
    const struct qdq_profile_spec *profile = &spec->profile;
    const bool asked = profile->runs > 0;
    char processor[64], *text;
    qdqi_host_processor(processor, sizeof processor);
    return asprintf(&text,
                    "times\nengine %s\nprocessor %s\nmodel %s\nthreads %lld\n"
                    "batch %lld\n",
                    qdq_version(), processor, model_id,
                    (long long)(asked ? profile->threads : QDQ_PROFILE_THREADS),
                    (long long)(asked ? profile->batch : QDQ_PROFILE_BATCH)) < 0
               ? NULL
               : text;
}

static const char *
identify(const struct qdqi_attempt *a, int threads, int64_t batch,
         struct qdqi_arena *arena)
{
    char processor[64];
    struct qdqi_deploy deploy;
    struct qdq_error why = {0};
    struct stat st = {.st_size = -1};
    const char *library = qdqi_engine_runtime_path(a->context->engine);
    const bool runs = qdqi_deployed_runtime(a->context, &deploy, &why) == QDQ_OK;
    if (library && strchr(library, '/') && stat(library, &st))
        st.st_size = -1;
    qdqi_host_processor(processor, sizeof processor);
    return qdqi_arena_printf(
        arena,
        QDQ_TIMES_MAGIC "engine %s\nprocessor %s\nruntime %s %s %lld %lld.%09ld\n"
                        "threads %d\nbatch %lld\n\n",
        qdq_version(), processor, a->spec->target->runtime,
        runs ? deploy.ops->version(deploy.place) : "", (long long)st.st_size,
        (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, threads, (long long)batch);
}

enum qdq_code
qdqi_kept_times_read(const struct qdqi_attempt *a, int threads, int64_t batch,
                     struct qdqi_arena *arena, struct qdqi_kept_times **ret,
                     struct qdq_error *err)
{
    const struct qdq_work *work = a->context->work;
    struct qdqi_kept_times *kept = qdqi_arena_alloc(arena, sizeof *kept);
    if (!kept || !(kept->identity = identify(a, threads, batch, arena)))
        return qdqi_no_memory(err);
    kept->arena = arena;
    kept->fd = work->times ? work->times(work->times_arg) : -1;
    *ret = kept;
    return read_file(kept, err);
}

/* --- the rows ------------------------------------------------------------------------ */

double
qdqi_kept_times_take_ratio(struct qdqi_kept_times *kept, uint64_t key)
{
    for (size_t i = 0; i < kept->n; i++) {
        struct row *row = &kept->rows[i];
        if (row->is_trace || row->is_of_job || row->key != key)
            continue;
        row->is_of_job = true;
        return row->ratio;
    }
    return NAN;
}

bool
qdqi_kept_times_take_trace(struct qdqi_kept_times *kept, uint64_t key,
                           struct qdqi_trace *ret)
{
    for (size_t i = 0; i < kept->n; i++) {
        struct row *row = &kept->rows[i];
        if (!row->is_trace || row->key != key)
            continue;
        row->is_of_job = true;
        *ret = row->trace;
        return true;
    }
    return false;
}

enum qdq_code
qdqi_kept_times_add_ratio(struct qdqi_kept_times *kept, uint64_t key, double ratio,
                          struct qdq_error *err)
{
    struct row *row = add_row(kept);
    if (!row)
        return qdqi_no_memory(err);
    *row = (struct row){.key = key, .is_of_job = true, .ratio = ratio};
    kept->has_new = true;
    return QDQ_OK;
}

enum qdq_code
qdqi_kept_times_add_trace(struct qdqi_kept_times *kept, uint64_t key,
                          const struct qdqi_trace *trace, struct qdq_error *err)
{
    struct row *row = add_row(kept);
    if (!row)
        return qdqi_no_memory(err);
    *row =
        (struct row){.key = key, .is_trace = true, .is_of_job = true, .trace = *trace};
    kept->has_new = true;
    return QDQ_OK;
}

bool
qdqi_kept_times_has_new(const struct qdqi_kept_times *kept)
{
    return kept->has_new;
}

/* --- writing ------------------------------------------------------------------------- */

static void
print_trace(struct text *to, const struct row *row)
{
    const struct qdqi_trace *t = &row->trace;
    print(to, "trace %016" PRIx64 " %zu\n", row->key, t->n_nodes);
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct qdqi_traced_node *k = &t->nodes[i];
        print(to, "kernel %d %.17g %.17g ", (int)k->kind, k->least_ms, k->made_bytes);
        print_name(to, k->op);
        print(to, " ");
        print_name(to, k->name);
        print(to, "\n");
    }
}

static void
print_rows(const struct qdqi_kept_times *kept, bool all, struct text *to)
{
    to->n = 0;
    print(to, "%s", kept->identity);
    for (size_t i = 0; i < kept->n; i++) {
        const struct row *row = &kept->rows[i];
        if (!all && !row->is_of_job)
            continue;
        if (row->is_trace)
            print_trace(to, row);
        else
            print(to, "ratio %016" PRIx64 " %.17g\n", row->key, row->ratio);
    }
    if (!to->failed)
        print(to, "sum %016" PRIx64 "\n", add_bytes(HASH_BEGIN, to->bytes, to->n));
}

enum qdq_code
qdqi_kept_times_write(const struct qdqi_kept_times *kept, const struct qdqi_attempt *a,
                      struct qdq_error *err)
{
    struct text text = {0};
    if (kept->fd < 0 || !kept->has_new)
        return QDQ_OK;
    print_rows(kept, kept->n < MOST_ROWS, &text);
    if (!text.failed && text.n > MOST_BYTES)
        print_rows(kept, false, &text);
    int failed = text.failed || text.n > MOST_BYTES;
    enum qdq_code code = text.failed ? qdqi_no_memory(err) : QDQ_OK;
    if (!failed)
        failed =
            ftruncate(kept->fd, 0) || qdqi_file_write(kept->fd, 0, text.bytes, text.n);
    free(text.bytes);
    return code || !failed
               ? code
               : qdqi_attempt_warn(a, err, "times_not_kept", NULL,
                                   "a later job of the same model will measure the "
                                   "times of its candidates again");
}
