/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/kept_times.h"

#include "files/data/file.h"
#include "ground/base/host.h"
#include "runtimes/engine.h"
#include "stages/attempt/journal.h"
#include "stages/attempt/kept_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limits of a file, and of the rows that are kept beside those of the job. */
enum {
    MOST_BYTES = 4 << 20,
    MOST_ROWS = 4000,
    MOST_KERNELS = 100000,
    MOST_NUMBERS = 60000,
    MOST_WORDS = 1000,
    SUM_LINE = 21
};

enum row_kind { RATIO, TRACE, NUMBERS, WORDS };

static const char *const kind_names[] = {"ratio", "trace", "numbers", "words"};

enum { N_KINDS = sizeof kind_names / sizeof *kind_names };

struct row {
    uint64_t key;
    enum row_kind kind;
    bool is_of_job; /* the job took or added it */
    double ratio;   /* 0: the measurement failed */
    struct qdqi_trace trace;
    size_t n; /* numbers, or words */
    const double *numbers;
    const char *const *words;
};

struct qdqi_kept_times {
    struct qdqi_arena *arena;
    const char *identity;
    int fd; /* the caller's; -1: none */
    struct row *rows;
    size_t n, capacity;
    bool has_new;                /* times */
    bool has_added;              /* rows that the file has not */
    bool is_journal;             /* the rows are those of a journal */
    struct qdqi_journal journal; /* without a file where the job has none */
};

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
    if (!name || at || !qdqi_kept_text_read_name(op) || !qdqi_kept_text_read_name(name))
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

/* Reads a number of any value from a line of its own. */
static bool
read_any_number(const char *line, double *ret)
{
    char *end;
    *ret = strtod(line, &end);
    return end != line && *end == '\0';
}

/* Reads the numbers of a row from the lines that follow. */
static bool
read_numbers(struct qdqi_kept_times *kept, char **lines, double n, struct row *row)
{
    if (!(n <= MOST_NUMBERS) || n != floor(n))
        return false;
    double *numbers = qdqi_arena_array(kept->arena, (size_t)n + 1, sizeof *numbers);
    bool ok = numbers;
    while (ok && row->n < (size_t)n) {
        const char *line = cut(lines, '\n');
        ok = line && read_any_number(line, &numbers[row->n++]);
    }
    row->numbers = numbers;
    return ok;
}

/* Does the same for words. */
static bool
read_words(struct qdqi_kept_times *kept, char **lines, double n, struct row *row)
{
    if (!(n <= MOST_WORDS) || n != floor(n))
        return false;
    const char **words = qdqi_arena_array(kept->arena, (size_t)n + 1, sizeof *words);
    bool ok = words;
    while (ok && row->n < (size_t)n) {
        char *line = cut(lines, '\n');
        ok = line && qdqi_kept_text_read_name(line);
        words[row->n++] = line;
    }
    row->words = words;
    return ok;
}

static bool
read_row(struct qdqi_kept_times *kept, char *line, char **lines)
{
    char *at = line, *word = cut(&at, ' ');
    struct row *row = add_row(kept);
    int kind = 0;
    double number;
    if (!row || !word || !read_key(&at, &row->key) || !read_number(&at, &number) || at)
        return false;
    while (kind < N_KINDS && strcmp(word, kind_names[kind]) != 0)
        kind++;
    row->kind = (enum row_kind)kind;
    row->ratio = number;
    return kind == RATIO     ? number > 0 || kept->is_journal
           : kind == TRACE   ? read_kernels(kept, lines, number, &row->trace)
           : kind == NUMBERS ? read_numbers(kept, lines, number, row)
           : kind == WORDS   ? read_words(kept, lines, number, row)
                             : false;
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
             qdqi_kept_hash(text, n - SUM_LINE));
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
                    "times\nengine %s\nprocessor %s\ntarget %s\nmodel %s\n"
                    "threads %lld\nbatch %lld\n",
                    qdq_version(), processor, spec->target->name, model_id,
                    (long long)(asked ? profile->threads : QDQ_PROFILE_THREADS),
                    (long long)(asked ? profile->batch : QDQ_PROFILE_BATCH)) < 0
               ? NULL
               : text;
}

static const char *
identify(const struct qdqi_attempt *a, struct qdqi_arena *arena)
{
    const struct qdq_profile_spec *profile = &a->spec->profile;
    const bool asked = profile->runs > 0;
    const char *runtime = a->spec->target->runtime;
    char processor[64];
    struct qdqi_deploy deploy;
    struct qdq_error why = {0};
    struct stat st = {.st_size = -1};
    const char *library = qdqi_engine_runtime_path(a->context->engine);
    const bool runs =
        runtime && qdqi_engine_ops(a->context->engine, runtime) &&
        qdqi_engine_deploy(a->context->engine, runtime, &deploy, &why) == QDQ_OK;
    if (library && strchr(library, '/') && stat(library, &st))
        st.st_size = -1;
    qdqi_host_processor(processor, sizeof processor);
    return qdqi_arena_printf(
        arena,
        QDQ_TIMES_MAGIC "engine %s\nprocessor %s\nruntime %s %s %lld %lld.%09ld\n"
                        "threads %lld\nbatch %lld\n\n",
        qdq_version(), processor, runtime ? runtime : "none",
        runs ? deploy.ops->version(deploy.place) : "", (long long)st.st_size,
        (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
        (long long)(asked ? profile->threads : QDQ_PROFILE_THREADS),
        (long long)(asked ? profile->batch : QDQ_PROFILE_BATCH));
}

/* Returns what a program of the operator's that runs the target's models says of itself; NULL: there is none. Under
   the same version of the same runtime it may compute other numbers, and take other times. */
static const struct qdq_runtime_about *
about_runner(const struct qdqi_attempt *a)
{
    struct qdq_engine *engine = a->context->engine;
    const char *runtime = a->spec->target->runtime;
    const struct qdqi_deploy_ops *ops =
        runtime ? qdqi_engine_ops(engine, runtime) : NULL;
    struct qdqi_deploy deploy;
    struct qdq_error why = {0};
    return ops && ops->about && !qdqi_engine_deploy(engine, runtime, &deploy, &why)
               ? qdqi_deploy_about(&deploy)
               : NULL;
}

/* --- the journal ------------------------------------------------------------------- */

/* Returns whether the job keeps a journal: times of a program of the operator's are of use to this job alone, which may be
   begun again. */
static bool
has_journal(const struct qdqi_attempt *a)
{
    const struct qdq_work *work = a->context->work;
    return work->journal && qdq_spec_keeps_journal(a->context->asked) &&
           about_runner(a);
}

/* Returns what the entries belong to, a hash of the engine, the model, the data, what the caller says of the job,
   and the program. */
static enum qdq_code
identify_job(const struct qdqi_attempt *a, const struct qdqi_kept_times *kept,
             uint64_t *ret, struct qdq_error *err)
{
    const struct qdq_work *work = a->context->work;
    const struct qdq_runtime_about *about = about_runner(a);
    const char *text = qdqi_arena_printf(
        kept->arena, "%sjob %s\nmodel %s\nrunner %s %s %s\n", kept->identity,
        work->journal_of ? work->journal_of : "", work->model_id ? work->model_id : "",
        about->runner, about->name, about->device);
    if (!text)
        return qdqi_no_memory(err);
    *ret = qdqi_kept_key_add(qdqi_kept_key_of_data(a),
                             (int64_t)qdqi_kept_hash(text, strlen(text)));
    return QDQ_OK;
}

static enum qdq_code
open_journal(const struct qdqi_attempt *a, struct qdqi_kept_times *kept,
             struct qdq_error *err)
{
    const struct qdq_work *work = a->context->work;
    uint64_t identity = 0;
    char *lines = NULL;
    kept->is_journal = true;
    enum qdq_code code = identify_job(a, kept, &identity, err);
    if (!code)
        code = qdqi_journal_open(work->journal(work->journal_arg), identity,
                                 kept->arena, &kept->journal, &lines, err);
    kept->has_new =
        true; /* what the job reports does not depend on when it was killed */
    while (!code && *lines && kept->n < MOST_ROWS)
        if (!read_row(kept, cut(&lines, '\n'), &lines)) {
            kept->n--;
            break;
        }
    return code;
}

static enum qdq_code
open_kept(const struct qdqi_attempt *a, struct qdqi_kept_times *kept,
          struct qdq_error *err)
{
    const struct qdq_work *work = a->context->work;
    kept->arena = qdqi_arena_new();
    if (!kept->arena || !(kept->identity = identify(a, kept->arena)))
        return qdqi_no_memory(err);
    kept->journal.fd = kept->fd = -1;
    if (has_journal(a))
        return open_journal(a, kept, err);
    if (work->times && !about_runner(a))
        kept->fd = work->times(work->times_arg);
    return read_file(kept, err);
}

static void
free_kept(struct qdqi_kept_times **kept)
{
    if (*kept)
        qdqi_arena_free(&(*kept)->arena);
    free(*kept);
    *kept = NULL;
}

enum qdq_code
qdqi_kept_times_get(const struct qdqi_attempt *a, struct qdqi_kept_times **ret,
                    struct qdq_error *err)
{
    struct qdqi_kept_times **kept = a->context->kept;
    enum qdq_code code = QDQ_OK;
    if (!*kept) {
        *kept = calloc(1, sizeof **kept);
        code = *kept ? open_kept(a, *kept, err) : qdqi_no_memory(err);
    }
    if (code)
        free_kept(kept);
    *ret = *kept;
    return code;
}

bool
qdqi_keeps_figures(const struct qdqi_attempt *a)
{
    const struct qdq_work *work = a->context->work;
    return work->times && work->dataset >= 0 && work->dataset_id && !a->context->dev &&
           !about_runner(a);
}

bool
qdqi_keeps_grades(const struct qdqi_attempt *a)
{
    return qdqi_keeps_figures(a) || has_journal(a);
}

/* --- the rows ------------------------------------------------------------------------ */

double
qdqi_kept_times_take_ratio(struct qdqi_kept_times *kept, uint64_t key)
{
    for (size_t i = 0; i < kept->n; i++) {
        struct row *row = &kept->rows[i];
        if (row->kind != RATIO || row->is_of_job || row->key != key)
            continue;
        row->is_of_job = true;
        return row->ratio;
    }
    return NAN;
}

/* Returns the row of a kind that has one for each key, which the job now takes; or NULL. */
static struct row *
take(struct qdqi_kept_times *kept, enum row_kind kind, uint64_t key)
{
    for (size_t i = 0; i < kept->n; i++) {
        struct row *row = &kept->rows[i];
        if (row->kind != kind || row->key != key)
            continue;
        row->is_of_job = true;
        return row;
    }
    return NULL;
}

bool
qdqi_kept_times_take_trace(struct qdqi_kept_times *kept, uint64_t key,
                           struct qdqi_trace *ret)
{
    const struct row *row = take(kept, TRACE, key);
    if (row)
        *ret = row->trace;
    return row != NULL;
}

bool
qdqi_kept_times_take_numbers(struct qdqi_kept_times *kept, uint64_t key,
                             const double **ret, size_t *ret_n)
{
    const struct row *row = take(kept, NUMBERS, key);
    *ret = row ? row->numbers : NULL;
    *ret_n = row ? row->n : 0;
    return row != NULL;
}

bool
qdqi_kept_times_take_words(struct qdqi_kept_times *kept, uint64_t key,
                           const char *const **ret, size_t *ret_n)
{
    const struct row *row = take(kept, WORDS, key);
    *ret = row ? row->words : NULL;
    *ret_n = row ? row->n : 0;
    return row != NULL;
}

/* --- adding rows -------------------------------------------------------------------- */

static void
print_trace(struct qdqi_kept_text *to, const struct row *row)
{
    const struct qdqi_trace *t = &row->trace;
    qdqi_kept_text_print(to, "trace %016" PRIx64 " %zu\n", row->key, t->n_nodes);
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct qdqi_traced_node *k = &t->nodes[i];
        qdqi_kept_text_print(to, "kernel %d %.17g %.17g ", (int)k->kind, k->least_ms,
                             k->made_bytes);
        qdqi_kept_text_print_name(to, k->op);
        qdqi_kept_text_print(to, " ");
        qdqi_kept_text_print_name(to, k->name);
        qdqi_kept_text_print(to, "\n");
    }
}

static void
print_figures(struct qdqi_kept_text *to, const struct row *row)
{
    qdqi_kept_text_print(to, "%s %016" PRIx64 " %zu\n", kind_names[row->kind], row->key,
                         row->n);
    for (size_t i = 0; i < row->n; i++) {
        if (row->kind == NUMBERS)
            qdqi_kept_text_print(to, "%.17g", row->numbers[i]);
        else
            qdqi_kept_text_print_name(to, row->words[i]);
        qdqi_kept_text_print(to, "\n");
    }
}

static void
print_row(struct qdqi_kept_text *to, const struct row *row)
{
    if (row->kind == TRACE)
        print_trace(to, row);
    else if (row->kind != RATIO)
        print_figures(to, row);
    else
        qdqi_kept_text_print(to, "ratio %016" PRIx64 " %.17g\n", row->key, row->ratio);
}

/* Writes a row into the journal, where there is one. A job whose journal cannot be written goes on without. */
static enum qdq_code
enter(struct qdqi_kept_times *kept, const struct row *row, struct qdq_error *err)
{
    struct qdqi_kept_text text = {0};
    if (kept->journal.fd < 0)
        return QDQ_OK;
    print_row(&text, row);
    const bool failed = text.failed;
    if (!failed)
        (void)!qdqi_journal_append(&kept->journal, text.bytes, text.n);
    free(text.bytes);
    return failed ? qdqi_no_memory(err) : QDQ_OK;
}

/* Adds a row, which the job has taken. */
static enum qdq_code
add(struct qdqi_kept_times *kept, const struct row *from, struct qdq_error *err)
{
    struct row *row = add_row(kept);
    if (!row)
        return qdqi_no_memory(err);
    *row = *from;
    row->is_of_job = true;
    kept->has_added = true;
    return enter(kept, row, err);
}

enum qdq_code
qdqi_kept_times_add_numbers(struct qdqi_kept_times *kept, uint64_t key,
                            const double *numbers, size_t n, struct qdq_error *err)
{
    const struct row row = {
        .key = key,
        .kind = NUMBERS,
        .n = n,
        .numbers = qdqi_arena_copy(kept->arena, numbers, n, sizeof *numbers)};
    if (n > MOST_NUMBERS)
        return QDQ_OK;
    return row.numbers ? add(kept, &row, err) : qdqi_no_memory(err);
}

enum qdq_code
qdqi_kept_times_add_words(struct qdqi_kept_times *kept, uint64_t key,
                          const char *const *words, size_t n, struct qdq_error *err)
{
    const char **copy = qdqi_arena_array(kept->arena, n + 1, sizeof *copy);
    const struct row row = {.key = key, .kind = WORDS, .n = n, .words = copy};
    bool ok = copy;
    for (size_t i = 0; ok && i < n; i++)
        ok = (copy[i] = qdqi_arena_strdup(kept->arena, words[i])) != NULL;
    if (n > MOST_WORDS)
        return QDQ_OK;
    return ok ? add(kept, &row, err) : qdqi_no_memory(err);
}

enum qdq_code
qdqi_kept_times_add_ratio(struct qdqi_kept_times *kept, uint64_t key, double ratio,
                          struct qdq_error *err)
{
    const struct row row = {.key = key, .kind = RATIO, .ratio = ratio};
    kept->has_new = true;
    return add(kept, &row, err);
}

enum qdq_code
qdqi_kept_times_add_failure(struct qdqi_kept_times *kept, uint64_t key,
                            struct qdq_error *err)
{
    const struct row row = {.key = key, .kind = RATIO};
    return kept->journal.fd < 0 ? QDQ_OK : add(kept, &row, err);
}

/* Copies the nodes of a trace, and what is kept of each. */
static bool
copy_trace(struct qdqi_kept_times *kept, struct qdqi_trace *trace)
{
    struct qdqi_traced_node *nodes =
        qdqi_arena_copy(kept->arena, trace->nodes, trace->n_nodes, sizeof *nodes);
    bool ok = nodes;
    for (size_t i = 0; ok && i < trace->n_nodes; i++) {
        nodes[i].op = qdqi_arena_strdup(kept->arena, nodes[i].op);
        nodes[i].name = qdqi_arena_strdup(kept->arena, nodes[i].name);
        ok = nodes[i].op && nodes[i].name;
    }
    trace->nodes = nodes;
    return ok;
}

enum qdq_code
qdqi_kept_times_add_trace(struct qdqi_kept_times *kept, uint64_t key,
                          const struct qdqi_trace *trace, struct qdq_error *err)
{
    struct row row = {.key = key, .kind = TRACE, .trace = *trace};
    kept->has_new = true;
    return copy_trace(kept, &row.trace) ? add(kept, &row, err) : qdqi_no_memory(err);
}

bool
qdqi_kept_times_has_new(const struct qdqi_kept_times *kept)
{
    return kept->has_new;
}

/* --- writing ------------------------------------------------------------------------- */

static void
print_rows(const struct qdqi_kept_times *kept, bool all, struct qdqi_kept_text *to)
{
    to->n = 0;
    qdqi_kept_text_print(to, "%s", kept->identity);
    for (size_t i = 0; i < kept->n; i++) {
        const struct row *row = &kept->rows[i];
        if (all || row->is_of_job)
            print_row(to, row);
    }
    if (!to->failed)
        qdqi_kept_text_print(to, "sum %016" PRIx64 "\n",
                             qdqi_kept_hash(to->bytes, to->n));
}

enum qdq_code
qdqi_kept_times_write(struct qdqi_kept_times *kept, const struct qdqi_attempt *a,
                      struct qdq_error *err)
{
    struct qdqi_kept_text text = {0};
    if (kept->fd < 0 || !kept->has_added)
        return QDQ_OK;
    kept->has_added = false;
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

void
qdqi_kept_times_close(struct qdqi_kept_times **kept, const struct qdqi_attempt *a)
{
    struct qdq_error ignored = {0};
    if (*kept && a)
        (void)!qdqi_kept_times_write(*kept, a, &ignored);
    free_kept(kept);
}
