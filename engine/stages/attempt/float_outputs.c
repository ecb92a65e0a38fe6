/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/float_outputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MOST_BYTES = 64 << 20, PART_OF_LIMIT = 16 };

void
qdqi_float_outputs_begin(struct qdqi_float_outputs *kept, size_t n_outputs)
{
    struct rlimit limit;
    *kept = (struct qdqi_float_outputs){.n_outputs = n_outputs, .most = MOST_BYTES};
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur / PART_OF_LIMIT < MOST_BYTES)
        kept->most = (size_t)(limit.rlim_cur / PART_OF_LIMIT);
}

static void
drop_oldest(struct qdqi_float_outputs *kept)
{
    struct qdqi_float_run *run = &kept->runs[kept->begin++];
    kept->bytes -= run->bytes;
    free(run->outputs);
}

void
qdqi_float_outputs_end(struct qdqi_float_outputs *kept)
{
    while (kept->begin < kept->end)
        drop_oldest(kept);
    free(kept->runs);
    *kept = (struct qdqi_float_outputs){0};
}

static size_t
round_up(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static size_t
data_bytes(const struct qdqi_output *output)
{
    return output->n * qdqi_dtype_size((int)output->dtype);
}

/* Returns the bytes of a copy; 0 where one of the outputs cannot be copied. */
static size_t
bytes_of(const struct qdqi_output *outputs, size_t n)
{
    size_t size = round_up(n * sizeof *outputs);
    for (size_t i = 0; i < n; i++) {
        if (qdqi_dtype_size((int)outputs[i].dtype) == 0)
            return 0;
        size += round_up(outputs[i].rank * sizeof(int64_t)) +
                round_up(data_bytes(&outputs[i]));
    }
    return size;
}

/* Copies the outputs into one block; NULL: there is no memory. */
static struct qdqi_output *
copy_outputs(const struct qdqi_output *from, size_t n, size_t size)
{
    struct qdqi_output *to = malloc(size);
    char *at = (char *)to + round_up(n * sizeof *to);
    for (size_t i = 0; to && i < n; i++) {
        const size_t shape = from[i].rank * sizeof(int64_t),
                     data = data_bytes(&from[i]);
        to[i] = from[i];
        to[i].shape = memcpy(at, from[i].shape, shape);
        at += round_up(shape);
        to[i].data = at;
        if (data > 0)
            memcpy(at, from[i].data, data);
        at += round_up(data);
    }
    return to;
}

/* Makes room for another row. Returns false when out of memory. */
static bool
make_row(struct qdqi_float_outputs *kept)
{
    const size_t n = kept->end - kept->begin;
    if (kept->end < kept->capacity)
        return true;
    if (kept->begin > 0 && n <= kept->capacity / 2) {
        memmove(kept->runs, kept->runs + kept->begin, n * sizeof *kept->runs);
        kept->begin = 0;
        kept->end = n;
        return true;
    }
    const size_t capacity = 2 * kept->capacity + 64;
    struct qdqi_float_run *runs = realloc(kept->runs, capacity * sizeof *runs);
    if (!runs)
        return false;
    kept->runs = runs;
    kept->capacity = capacity;
    return true;
}

struct qdqi_float_run
qdqi_float_run_copy(int64_t first, int64_t samples, const struct qdqi_output *outputs,
                    size_t n, size_t most)
{
    const size_t size = n > 0 ? bytes_of(outputs, n) : 0;
    return (struct qdqi_float_run){
        .first = first,
        .samples = samples,
        .outputs = size > 0 && size <= most ? copy_outputs(outputs, n, size) : NULL,
        .n = n,
        .bytes = size};
}

void
qdqi_float_outputs_put(struct qdqi_float_outputs *kept, struct qdqi_float_run *run)
{
    const bool is_next =
        kept->begin == kept->end || run->first > kept->runs[kept->end - 1].first;
    if (run->outputs && is_next && run->n == kept->n_outputs &&
        run->bytes <= kept->most && make_row(kept)) {
        while (kept->bytes + run->bytes > kept->most)
            drop_oldest(kept);
        kept->runs[kept->end++] = *run;
        kept->bytes += run->bytes;
    } else {
        free(run->outputs);
    }
    run->outputs = NULL;
}

void
qdqi_attempt_put_outputs(const struct qdqi_attempt *a, int64_t first, int64_t samples,
                         const struct qdqi_output *outputs, size_t n)
{
    struct qdqi_float_outputs *kept = a->context->float_outputs;
    if (a->model->proto != a->context->original->proto)
        return;
    struct qdqi_float_run run =
        qdqi_float_run_copy(first, samples, outputs, n, kept->most);
    qdqi_float_outputs_put(kept, &run);
}

const struct qdqi_output *
qdqi_float_outputs_of(const struct qdqi_float_outputs *kept, int64_t first,
                      int64_t samples)
{
    size_t low = kept->begin, high = kept->end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (kept->runs[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < kept->end && kept->runs[low].first == first &&
                   kept->runs[low].samples == samples
               ? kept->runs[low].outputs
               : NULL;
}
