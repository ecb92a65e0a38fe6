/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/observations.h"

#include "numbers/arithmetic/both.h"
#include "qdq/quantize.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAGIC = sizeof QDQ_OBSERVATIONS_MAGIC - 1,
    MIN_EXPONENT = -126,
    MAX_EXPONENT = 117, /* largest exponent that a histogram of float32 can have */
};

_Static_assert(MAGIC == 8, "the head has room for so much");

static const off_t MOST = (off_t)1 << 31;    /* bytes of a file */
static const char OLD_MAGIC[] = "QDQOBS1\n"; /* with another sum */

/* --- the sum -------------------------------------------------------------- */

static const uint64_t SUM_BEGIN = 0xcbf29ce484222325ULL;
static const uint64_t SUM_BY = 0x100000001b3ULL;

enum { WORDS = 4, STRIPE = WORDS * sizeof(uint64_t) };

/* Hashes under way, one for each word of a stripe. */
struct sum {
    uint64_t words[WORDS];
};

static struct sum
begin_sum(void)
{
    struct sum sum;
    for (size_t i = 0; i < WORDS; i++)
        sum.words[i] = SUM_BEGIN + i;
    return sum;
}

static uint64_t
add_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * SUM_BY;
    return hash ^ hash >> 32;
}

/* Adds bytes; all calls but the last add whole stripes. */
static void
sum_up(struct sum *sum, const unsigned char *bytes, size_t n)
{
    for (uint64_t words[WORDS]; n > 0;) {
        size_t used = n < STRIPE ? n : STRIPE;
        memset(words, 0, sizeof words);
        memcpy(words, bytes, used);
        for (size_t i = 0; i < WORDS; i++)
            sum->words[i] = add_word(sum->words[i], words[i]);
        bytes += used;
        n -= used;
    }
}

static uint64_t
end_sum(const struct sum *sum)
{
    uint64_t one = SUM_BEGIN;
    for (size_t i = 0; i < WORDS; i++)
        one = add_word(one, sum->words[i]);
    return one;
}

uint64_t
qdqi_observations_sum(const void *bytes, size_t n)
{
    struct sum sum = begin_sum();
    sum_up(&sum, bytes, n);
    return end_sum(&sum);
}

/* Returns the sum of a file of version 1. */
static uint64_t
old_sum(const unsigned char *bytes, size_t n)
{
    uint64_t sum = SUM_BEGIN;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * SUM_BY;
    return sum;
}

/* --- reading -------------------------------------------------------------- */

/* The unread rest of a file. `broken` is set at the first error of the format. */
struct cursor {
    const unsigned char *at;
    size_t left;
    bool broken;
};

struct row {
    struct qdqi_extremes extremes;
    struct qdqi_average average;
    int64_t runs;
    int32_t exponent;
    uint32_t used;
    const unsigned char *counts;
};

static const unsigned char *
get_bytes(struct cursor *c, size_t n)
{
    if (c->broken || n > c->left) {
        c->broken = true;
        return NULL;
    }
    const unsigned char *bytes = c->at;
    c->at += n;
    c->left -= n;
    return bytes;
}

/* Reads n bytes, or sets them to zero at the end of the file. */
static void
get(struct cursor *c, void *to, size_t n)
{
    const unsigned char *bytes = get_bytes(c, n);
    memset(to, 0, n);
    if (bytes)
        memcpy(to, bytes, n);
}

static const unsigned char *
get_text(struct cursor *c, uint32_t *ret_len)
{
    get(c, ret_len, sizeof *ret_len);
    const unsigned char *text = get_bytes(c, *ret_len);
    if (text && memchr(text, '\0', *ret_len))
        c->broken = true;
    return text;
}

static uint64_t
count_at(const struct row *row, size_t i)
{
    uint64_t count;
    memcpy(&count, row->counts + i * sizeof count, sizeof count);
    return count;
}

/* Returns whether the counts can be those of a histogram with this largest value. */
static bool
counts_fit(const struct row *row)
{
    double amax = (double)qdqi_extremes_amax(&row->extremes);
    uint64_t total = 0;
    for (size_t i = 0; i < row->used; i++) {
        uint64_t count = count_at(row, i);
        if (count > INT64_MAX - total)
            return false;
        total += count;
    }
    return floor(ldexp(amax, -row->exponent)) + 1 == (double)row->used &&
           count_at(row, row->used - 1) > 0;
}

static bool
row_fits(const struct row *row)
{
    if (row->runs < 0 || row->exponent < MIN_EXPONENT || row->exponent > MAX_EXPONENT)
        return false;
    if (qdqi_extremes_empty(&row->extremes))
        return row->used == 0 && !row->average.begun && row->average.min == 0 &&
               row->average.max == 0;
    return qdqi_extremes_finite(&row->extremes) && row->used > 0 && counts_fit(row) &&
           row->average.begun && isfinite(row->average.min) &&
           isfinite(row->average.max) && row->average.min <= row->average.max;
}

static bool
get_row(struct cursor *c, struct row *ret)
{
    uint32_t begun;
    *ret = (struct row){0};
    get(c, &ret->extremes.min, sizeof ret->extremes.min);
    get(c, &ret->extremes.max, sizeof ret->extremes.max);
    get(c, &begun, sizeof begun);
    get(c, &ret->average.min, sizeof ret->average.min);
    get(c, &ret->average.max, sizeof ret->average.max);
    get(c, &ret->runs, sizeof ret->runs);
    get(c, &ret->exponent, sizeof ret->exponent);
    get(c, &ret->used, sizeof ret->used);
    if (begun > 1 || ret->used > QDQI_BINS)
        return false;
    ret->average.begun = begun == 1;
    ret->counts = get_bytes(c, ret->used * sizeof(uint64_t));
    return !c->broken && row_fits(ret);
}

/* Reads everything before the rows. */
static bool
get_all(struct cursor *c, const char *identity, struct qdqi_observations *o)
{
    uint32_t len;
    const unsigned char *text = get_text(c, &len);
    if (!text || len != strlen(identity) || memcmp(text, identity, len) != 0)
        return false;
    get(c, &o->all.samples, sizeof o->all.samples);
    get(c, &o->all.skipped, sizeof o->all.skipped);
    text = get_text(c, &len);
    if (c->broken || len >= sizeof o->all.which)
        return false;
    memcpy(o->all.which, text, len);
    o->all.which[len] = '\0';
    get(c, &o->n, sizeof o->n);
    return !c->broken && o->all.skipped >= 0 && o->all.skipped < o->all.samples;
}

/* Returns whether all numbers are finite; they may be unaligned. */
static bool
are_finite(const unsigned char *at, size_t n)
{
    float zero = 0;
    for (size_t i = 0; i < n; i++) {
        zero += qdqi_float_at(at, i) * 0;
        if (zero != 0)
            return false;
    }
    return true;
}

/* Reads one group of a moment to `to`; NULL only checks it. */
static bool
get_moment(struct cursor *c, size_t k, struct qdqi_moment *to)
{
    uint64_t rows;
    get(c, &rows, sizeof rows);
    const unsigned char *sums = get_bytes(c, k * sizeof(double));
    size_t n = qdqi_moment_products(k);
    const unsigned char *products = get_bytes(c, n * sizeof(float));
    if (c->broken)
        return false;
    if (to) {
        to->rows = rows;
        memcpy(to->sums, sums, k * sizeof(double));
        memcpy(to->products, products, n * sizeof(float));
        return true;
    }
    bool good = rows <= INT64_MAX && are_finite(products, n);
    for (size_t i = 0; good && i < k; i++) {
        double sum;
        memcpy(&sum, sums + i * sizeof sum, sizeof sum);
        good = isfinite(sum);
    }
    return good;
}

/* Reads the shape of a moment. */
static bool
get_shape(struct cursor *c, uint32_t *groups, uint32_t *k)
{
    get(c, groups, sizeof *groups);
    get(c, k, sizeof *k);
    return !c->broken && *groups > 0 && *k > 0;
}

/* Reads the largest magnitudes of an activation to `to`; NULL only checks them. */
static bool
get_peaks(struct cursor *c, uint32_t *channels, float *to)
{
    get(c, channels, sizeof *channels);
    const unsigned char *all = get_bytes(c, *channels * sizeof(float));
    if (c->broken || !are_finite(all, *channels))
        return false;
    for (size_t i = 0; i < *channels; i++) {
        float x = qdqi_float_at(all, i);
        if (x < 0)
            return false;
        if (to)
            to[i] = x;
    }
    return true;
}

/* --- the index ------------------------------------------------------------ */

static bool
check_row(struct cursor *c)
{
    struct row row;
    return get_row(c, &row);
}

static bool
check_moments(struct cursor *c)
{
    uint32_t groups, k;
    bool good = get_shape(c, &groups, &k);
    for (; good && groups > 0; groups--)
        good = get_moment(c, k, NULL);
    return good;
}

static bool
check_peaks(struct cursor *c)
{
    uint32_t channels;
    return get_peaks(c, &channels, NULL);
}

/* Indexes n records by the names before them, up to one that is not valid. */
static enum qdq_code
index_records(struct cursor *c, uint32_t n, bool (*check)(struct cursor *c),
              struct qdqi_arena *arena, struct qdqi_map **ret, struct qdq_error *err)
{
    if (!(*ret = qdqi_map_new(arena)))
        return qdqi_no_memory(err);
    for (uint32_t i = 0; !c->broken && i < n; i++) {
        uint32_t len;
        const unsigned char *text = get_text(c, &len), *begin = c->at;
        c->broken = c->broken || !check(c);
        char *name =
            c->broken ? NULL : qdqi_arena_strndup(arena, (const char *)text, len);
        if (name && qdqi_map_get(*ret, name))
            c->broken = true;
        else if (!c->broken &&
                 (!name || !qdqi_map_put(*ret, name, (void *)(uintptr_t)begin)))
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

/* Reads a number of records; a file of an older version may end before it. */
static uint32_t
get_count(struct cursor *c)
{
    uint32_t n = 0;
    if (c->left > 0)
        get(c, &n, sizeof n);
    return n;
}

/* Indexes all records and sets *ret to whether the file is valid. */
static enum qdq_code
index_all(struct qdqi_observations *o, const char *identity, struct qdqi_arena *arena,
          bool *ret, struct qdq_error *err)
{
    struct cursor c = {.at = o->bytes + QDQI_OBSERVATIONS_HEAD,
                       .left = o->size - QDQI_OBSERVATIONS_HEAD};
    enum qdq_code code;
    c.broken = !get_all(&c, identity, o);
    o->first = o->size - c.left;
    if ((code = index_records(&c, o->n, check_row, arena, &o->rows, err)))
        return code;
    o->end_rows = o->size - c.left;
    o->n_moments = get_count(&c);
    o->first_moment = o->size - c.left;
    if ((code =
             index_records(&c, o->n_moments, check_moments, arena, &o->moments, err)))
        return code;
    o->end_moments = o->size - c.left;
    code = index_records(&c, get_count(&c), check_peaks, arena, &o->peaks, err);
    *ret = !c.broken && c.left == 0;
    return code;
}

/* Returns a cursor at a record, or at the end when there is none. */
static struct cursor
record_of(const struct qdqi_observations *o, const struct qdqi_map *records,
          const char *name)
{
    const unsigned char *begin = o->bytes ? qdqi_map_get(records, name) : NULL;
    return (struct cursor){.at = begin,
                           .left = begin ? (size_t)(o->bytes + o->size - begin) : 0};
}

/* --- files ---------------------------------------------------------------- */

static bool
read_at(int fd, unsigned char *to, size_t n, size_t offset)
{
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        n -= (size_t)got;
        offset += (size_t)got;
    }
    return true;
}

/* Reads the bytes of a file whose head is valid. For any other file o->bytes stays
   NULL. */
static enum qdq_code
read_file(int fd, struct qdqi_observations *o, struct qdq_error *err)
{
    unsigned char head[QDQI_OBSERVATIONS_HEAD];
    uint64_t size, sum;
    struct stat st;
    if (fstat(fd, &st) || st.st_size < (off_t)sizeof head || st.st_size > MOST ||
        !read_at(fd, head, sizeof head, 0))
        return QDQ_OK;
    bool is_old = memcmp(head, OLD_MAGIC, MAGIC) == 0;
    if (!is_old && memcmp(head, QDQ_OBSERVATIONS_MAGIC, MAGIC) != 0)
        return QDQ_OK;
    memcpy(&size, head + MAGIC, sizeof size);
    memcpy(&sum, head + MAGIC + sizeof size, sizeof sum);
    if (size != (uint64_t)st.st_size)
        return QDQ_OK;
    o->size = (size_t)size;
    o->bytes = malloc(o->size);
    if (!o->bytes)
        return qdqi_no_memory(err);
    const unsigned char *behind = o->bytes + sizeof head;
    size_t n = o->size - sizeof head;
    if (read_at(fd, o->bytes, o->size, 0) &&
        sum == (is_old ? old_sum(behind, n) : qdqi_observations_sum(behind, n)))
        return QDQ_OK;
    free(o->bytes);
    o->bytes = NULL;
    return QDQ_OK;
}

enum qdq_code
qdqi_observations_read(int fd, const char *identity, struct qdqi_arena *arena,
                       struct qdqi_observations *ret, struct qdq_error *err)
{
    bool good = false;
    *ret = (struct qdqi_observations){.bytes = NULL};
    enum qdq_code code = read_file(fd, ret, err);
    if (!code && ret->bytes)
        code = index_all(ret, identity, arena, &good, err);
    if (code || !good)
        qdqi_observations_fini(ret);
    return code;
}

void
qdqi_observations_fini(struct qdqi_observations *o)
{
    free(o->bytes);
    *o = (struct qdqi_observations){.bytes = NULL};
}

bool
qdqi_observations_have(const struct qdqi_observations *o, const char *tensor)
{
    return o->bytes && qdqi_map_get(o->rows, tensor);
}

void
qdqi_observations_restore(const struct qdqi_observations *o, struct qdqi_observer *to)
{
    struct cursor c = record_of(o, o->rows, to->tensor);
    struct row row;
    (void)get_row(&c, &row); /* cannot fail: the row was checked when it was indexed */
    to->all.extremes = row.extremes;
    to->average = row.average;
    to->runs = row.runs;
    qdqi_histogram_init(to->all.histogram);
    to->all.histogram->exponent = row.exponent;
    for (size_t i = 0; row.counts && i < row.used; i++)
        to->all.histogram->counts[i] = count_at(&row, i);
}

bool
qdqi_observations_restore_moments(const struct qdqi_observations *o, const char *key,
                                  size_t groups, struct qdqi_moment *to)
{
    struct cursor c = record_of(o, o->moments, key);
    uint32_t n, k;
    if (!get_shape(&c, &n, &k) || n != groups || k != to->k)
        return false;
    for (size_t g = 0; g < groups; g++)
        (void)get_moment(&c, k, &to[g]); /* was checked when it was indexed */
    return true;
}

bool
qdqi_observations_restore_peaks(const struct qdqi_observations *o, const char *tensor,
                                size_t channels, float *to)
{
    struct cursor c = record_of(o, o->peaks, tensor), ahead = c;
    uint32_t n;
    get(&ahead, &n, sizeof n);
    return n == channels && get_peaks(&c, &n, to);
}

/* --- writing -------------------------------------------------------------- */

struct output {
    int fd, error; /* error: errno of the first failure, or 0 */
    size_t offset; /* place of the buffer in the file */
    struct sum sum;
    size_t used;
    unsigned char buffer[1 << 14]; /* whole stripes */
};

static void
write_at(struct output *out, const unsigned char *bytes, size_t n, size_t offset)
{
    while (n > 0 && !out->error) {
        ssize_t put = pwrite(out->fd, bytes, n, (off_t)offset);
        if (put < 0 && errno != EINTR)
            out->error = errno;
        if (put > 0) {
            bytes += put;
            n -= (size_t)put;
            offset += (size_t)put;
        }
    }
}

static void
flush(struct output *out)
{
    sum_up(&out->sum, out->buffer, out->used);
    write_at(out, out->buffer, out->used, out->offset);
    out->offset += out->used;
    out->used = 0;
}

static void
put(struct output *out, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    while (n > 0) {
        if (out->used == sizeof out->buffer)
            flush(out);
        size_t room = sizeof out->buffer - out->used, m = n < room ? n : room;
        memcpy(out->buffer + out->used, at, m);
        out->used += m;
        at += m;
        n -= m;
    }
}

static void
put_text(struct output *out, const char *text)
{
    uint32_t len = (uint32_t)strlen(text);
    put(out, &len, sizeof len);
    put(out, text, len);
}

static void
put_row(struct output *out, const struct qdqi_observer *o)
{
    uint32_t begun = o->average.begun;
    uint32_t used = (uint32_t)qdqi_histogram_used(o->all.histogram);
    int32_t exponent = o->all.histogram->exponent;
    put_text(out, o->tensor);
    put(out, &o->all.extremes.min, sizeof o->all.extremes.min);
    put(out, &o->all.extremes.max, sizeof o->all.extremes.max);
    put(out, &begun, sizeof begun);
    put(out, &o->average.min, sizeof o->average.min);
    put(out, &o->average.max, sizeof o->average.max);
    put(out, &o->runs, sizeof o->runs);
    put(out, &exponent, sizeof exponent);
    put(out, &used, sizeof used);
    put(out, o->all.histogram->counts, used * sizeof *o->all.histogram->counts);
}

static void
put_moments(struct output *out, const struct qdqi_kept_moments *m)
{
    uint32_t groups = (uint32_t)m->groups, k = (uint32_t)m->moments->k;
    put_text(out, m->key);
    put(out, &groups, sizeof groups);
    put(out, &k, sizeof k);
    for (size_t g = 0; g < groups; g++) {
        const struct qdqi_moment *one = &m->moments[g];
        put(out, &one->rows, sizeof one->rows);
        put(out, one->sums, k * sizeof *one->sums);
        put(out, one->products, qdqi_moment_products(k) * sizeof *one->products);
    }
}

static void
put_all_peaks(struct output *out, const struct qdqi_kept_peaks *peaks)
{
    uint32_t n = 0;
    for (const struct qdqi_kept_peaks *p = peaks; p; p = p->next)
        n++;
    if (n == 0)
        return;
    put(out, &n, sizeof n);
    for (; peaks; peaks = peaks->next) {
        uint32_t channels = (uint32_t)peaks->channels;
        put_text(out, peaks->tensor);
        put(out, &channels, sizeof channels);
        put(out, peaks->largest, channels * sizeof *peaks->largest);
    }
}

/* Writes the moments of `earlier`, those behind, and the magnitudes. Without any the file
   ends, as one of an older version does. */
static void
put_behind_rows(struct output *out, const struct qdqi_observations *earlier,
                const struct qdqi_observed_rows *rows)
{
    uint32_t n = earlier->n_moments;
    for (const struct qdqi_kept_moments *m = rows->moments; m; m = m->next)
        n++;
    if (n == 0 && !rows->peaks)
        return;
    put(out, &n, sizeof n);
    if (earlier->bytes && earlier->n_moments > 0)
        put(out, earlier->bytes + earlier->first_moment,
            earlier->end_moments - earlier->first_moment);
    for (const struct qdqi_kept_moments *m = rows->moments; m; m = m->next)
        put_moments(out, m);
    put_all_peaks(out, rows->peaks);
}

/* Writes the head, after everything else: a file without a head is not valid. */
static void
put_head(struct output *out)
{
    unsigned char head[QDQI_OBSERVATIONS_HEAD];
    uint64_t size = out->offset, sum = end_sum(&out->sum);
    memcpy(head, QDQ_OBSERVATIONS_MAGIC, MAGIC);
    memcpy(head + MAGIC, &size, sizeof size);
    memcpy(head + MAGIC + sizeof size, &sum, sizeof sum);
    write_at(out, head, sizeof head, 0);
}

enum qdq_code
qdqi_observations_write(int fd, const char *identity, const struct qdqi_observed *all,
                        const struct qdqi_observations *earlier,
                        const struct qdqi_observed_rows *rows, struct qdq_error *err)
{
    const struct qdqi_observers *observers = rows->observers;
    struct output out = {
        .fd = fd, .offset = QDQI_OBSERVATIONS_HEAD, .sum = begin_sum()};
    uint32_t n = earlier->n;
    for (size_t i = 0; observers && i < observers->n; i++)
        n += rows->observed[i];
    if (ftruncate(fd, 0))
        out.error = errno;
    put_text(&out, identity);
    put(&out, &all->samples, sizeof all->samples);
    put(&out, &all->skipped, sizeof all->skipped);
    put_text(&out, all->which);
    put(&out, &n, sizeof n);
    if (earlier->bytes)
        put(&out, earlier->bytes + earlier->first, earlier->end_rows - earlier->first);
    for (size_t i = 0; observers && i < observers->n; i++)
        if (rows->observed[i])
            put_row(&out, &observers->rows[i]);
    put_behind_rows(&out, earlier, rows);
    flush(&out);
    put_head(&out);
    if (!out.error)
        return QDQ_OK;
    /* ignored because a file without a head is invalid anyway */
    int ignored = ftruncate(fd, 0);
    (void)ignored;
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                         "writing what was observed: %s", strerror(out.error));
}
