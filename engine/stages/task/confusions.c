/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/task/confusions.h"

#include <stdlib.h>

static int
compare_numbers(uint32_t x, uint32_t y)
{
    return (x > y) - (x < y);
}

static int
by_classes(const void *a, const void *b)
{
    const struct qdq_confusion *x = a, *y = b;
    const int label = compare_numbers(x->label, y->label);
    const int before = compare_numbers(x->float_class, y->float_class);
    return label    ? label
           : before ? before
                    : compare_numbers(x->quantized_class, y->quantized_class);
}

static int
most_rows_first(const void *a, const void *b)
{
    const struct qdq_confusion *x = a, *y = b;
    return x->rows != y->rows ? x->rows < y->rows ? 1 : -1 : by_classes(a, b);
}

/* Joins neighbours of the same classes. Returns how many are left. */
static size_t
join(struct qdq_confusion *all, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept > 0 && by_classes(&all[kept - 1], &all[i]) == 0)
            all[kept - 1].rows++;
        else
            all[kept++] = all[i];
    return kept;
}

enum qdq_code
qdqi_confusions(const struct qdqi_answers *of_float,
                const struct qdqi_answers *of_result, struct qdqi_arena *arena,
                struct qdq_task_report *to, struct qdq_error *err)
{
    size_t changed = 0;
    if (of_float->are_lost || of_result->are_lost || of_float->n != of_result->n)
        return QDQ_OK;
    for (size_t i = 0; i < of_float->n; i++)
        changed += of_float->rows[i].chosen != of_result->rows[i].chosen;
    struct qdq_confusion *all = qdqi_arena_array(arena, changed + 1, sizeof *all);
    if (!all)
        return qdqi_no_memory(err);
    for (size_t i = 0, k = 0; i < of_float->n; i++)
        if (of_float->rows[i].chosen != of_result->rows[i].chosen)
            all[k++] = (struct qdq_confusion){of_float->rows[i].label,
                                              of_float->rows[i].chosen,
                                              of_result->rows[i].chosen, 1};
    qsort(all, changed, sizeof *all, by_classes);
    const size_t n = join(all, changed);
    qsort(all, n, sizeof *all, most_rows_first);
    to->rows = (int64_t)of_float->n;
    to->changed = (int64_t)changed;
    to->n_confusions = n < QDQ_MOST_CONFUSIONS ? n : QDQ_MOST_CONFUSIONS;
    to->confusions = all;
    return QDQ_OK;
}
