/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/choices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
qdqi_is_choice(enum qdqi_dtype dtype)
{
    switch (dtype) {
    case QDQI_BOOL:
    case QDQI_INT8:
    case QDQI_INT16:
    case QDQI_INT32:
    case QDQI_INT64:
    case QDQI_UINT8:
    case QDQI_UINT16:
    case QDQI_UINT32:
    case QDQI_UINT64:
        return true;
    default:
        return false;
    }
}

static void
add_elements(struct qdqi_metrics *m, const struct qdqi_output *f,
             const struct qdqi_output *q, int64_t samples)
{
    const size_t size = qdqi_dtype_size((int)f->dtype);
    const size_t parts =
        samples > 0 && f->n % (size_t)samples == 0 ? (size_t)samples : 1;
    const size_t part = f->n / parts;
    for (size_t i = 0; i < parts; i++) {
        const char *a = (const char *)f->data + i * part * size;
        const char *b = (const char *)q->data + i * part * size;
        size_t equal = 0;
        for (size_t k = 0; k < part; k++)
            equal += memcmp(a + k * size, b + k * size, size) == 0;
        m->rows += (int64_t)part;
        m->agreeing += (int64_t)equal;
        qdqi_samples_add(&m->by_sample, (double)part, (double)(part - equal));
    }
}

/* --- in any order ------------------------------------------------------------- */

/* Rows behind the first axis. */
struct rows {
    const char **at;
    size_t n;
};

static _Thread_local size_t row_size; /* of the rows that are sorted */

static int
compare_rows(const void *a, const void *b)
{
    return memcmp(*(const char *const *)a, *(const char *const *)b, row_size);
}

/* Returns the bytes of a row, or 0 where more than the first sizes differ. */
static size_t
common_row(const struct qdqi_output *f, const struct qdqi_output *q)
{
    size_t size = qdqi_dtype_size((int)f->dtype);
    if (f->rank == 0 || f->rank != q->rank)
        return 0;
    for (size_t i = 1; i < f->rank; i++) {
        if (f->shape[i] != q->shape[i])
            return 0;
        size *= (size_t)f->shape[i];
    }
    return size;
}

static bool
sort_rows(const struct qdqi_output *o, struct rows *ret)
{
    ret->n = (size_t)o->shape[0];
    ret->at = calloc(ret->n + 1, sizeof *ret->at);
    for (size_t i = 0; ret->at && i < ret->n; i++)
        ret->at[i] = (const char *)o->data + i * row_size;
    if (ret->at)
        qsort(ret->at, ret->n, sizeof *ret->at, compare_rows);
    return ret->at;
}

static size_t
count_common(const struct rows *a, const struct rows *b)
{
    size_t i = 0, k = 0, n = 0;
    while (i < a->n && k < b->n) {
        const int order = compare_rows(&a->at[i], &b->at[k]);
        n += order == 0;
        i += order <= 0;
        k += order >= 0;
    }
    return n;
}

/* Counts what stands behind the first axis. Returns false where it cannot. */
static bool
add_entries(struct qdqi_metrics *m, const struct qdqi_output *f,
            const struct qdqi_output *q)
{
    struct rows a = {NULL, 0}, b = {NULL, 0};
    row_size = common_row(f, q);
    const bool ok = row_size > 0 && sort_rows(f, &a) && sort_rows(q, &b);
    if (ok) {
        m->entries += (int64_t)(a.n > b.n ? a.n : b.n);
        m->found += (int64_t)count_common(&a, &b);
        m->has_other_entries |= a.n != b.n;
    }
    free(a.at);
    free(b.at);
    return ok;
}

bool
qdqi_choices_add(struct qdqi_metrics *m, const struct qdqi_output *f,
                 const struct qdqi_output *q, int64_t samples)
{
    if (f->dtype != q->dtype || !qdqi_is_choice(f->dtype))
        return false;
    m->is_choice = true;
    m->samples += samples;
    const bool counted = add_entries(m, f, q);
    if (f->n != q->n)
        return counted;
    add_elements(m, f, q, samples);
    return true;
}

void
qdqi_choices_finish(const struct qdqi_metrics *m, struct qdq_output_report *ret)
{
    const int64_t n = m->has_other_entries ? m->entries : m->rows;
    const int64_t equal = m->has_other_entries ? m->found : m->agreeing;
    ret->is_choice = true;
    ret->rows = n;
    ret->cosine = ret->max_abs_error = NAN;
    ret->top1_agreement = n > 0 ? (double)equal / (double)n : 1;
    ret->sqnr_db = equal == n ? INFINITY : -10 * log10((double)(n - equal) / (double)n);
    ret->centred_db = ret->sqnr_db;
    if (m->has_other_entries)
        ret->samples = (struct qdq_sample_report){
            .n = 0, .worst_db = NAN, .p5_db = NAN, .median_db = NAN};
}
