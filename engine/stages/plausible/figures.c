/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/plausible/figures.h"

#include <math.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 16 }; /* of an output whose spread is looked at */

/* --- inputs ----------------------------------------------------------------- */

/* FNV-1a of 64 bits (Fowler, Noll, Vo). */
static uint64_t
hash_of(const unsigned char *data, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 0x100000001b3U;
    return hash;
}

static void
add_extremes(struct qdqi_input_figures *to, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            to->n_nonfinite++;
            continue;
        }
        to->low = (double)x[i] < to->low ? (double)x[i] : to->low;
        to->high = (double)x[i] > to->high ? (double)x[i] : to->high;
    }
    to->n += n;
}

/* Adds the differences along one axis; `step` elements lie between neighbours. */
static double
roughness(const float *x, size_t n, size_t step, size_t size)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (i / step % size + 1 < size)
            sum += fabs((double)x[i + step] - (double)x[i]);
    return sum;
}

/* Looks at arrays of four axes, of which the last three have one size: a layout cannot be told
   by the shape there. */
static void
add_roughness(struct qdqi_input_figures *to, const struct qdqi_input *input, size_t n)
{
    const int64_t *shape = input->shape;
    if (input->rank != 4 || shape[1] != shape[2] || shape[2] != shape[3] ||
        shape[1] < 3)
        return;
    const size_t size = (size_t)shape[1];
    to->rough[0] += roughness(input->data, n, size * size, size);
    to->rough[1] += roughness(input->data, n, size, size);
    to->rough[2] += roughness(input->data, n, 1, size);
}

/* Returns the bytes of one sample: a share of the data, where axis 0 is the batch. */
static size_t
bytes_of_sample(const struct qdqi_input *input, size_t samples)
{
    const bool is_batch = input->rank > 0 && input->shape[0] == (int64_t)samples;
    return is_batch ? input->size / samples : input->size;
}

static void
add_input(struct qdqi_input_figures *to, const struct qdqi_input *input, size_t first,
          size_t samples)
{
    const size_t size = bytes_of_sample(input, samples);
    for (size_t i = 0; i < samples && first + i < QDQI_MOST_PROBED_SAMPLES; i++)
        to->hashes[first + i] = hash_of((const unsigned char *)input->data +
                                            (size < input->size ? i * size : 0),
                                        size);
    to->has_places = input->rank > 3;
    if (input->dtype != QDQI_FLOAT32)
        return;
    add_extremes(to, input->data, input->size / sizeof(float));
    add_roughness(to, input, input->size / sizeof(float));
}

static bool
are_equal(const struct qdqi_data_figures *figures, size_t a, size_t b)
{
    for (size_t i = 0; i < figures->n_inputs; i++)
        if (figures->inputs[i].hashes[a] != figures->inputs[i].hashes[b])
            return false;
    return true;
}

size_t
qdqi_repeated_samples(const struct qdqi_data_figures *figures)
{
    size_t repeated = 0;
    for (size_t i = 1; i < figures->samples && i < QDQI_MOST_PROBED_SAMPLES; i++)
        for (size_t k = 0; k < i; k++)
            if (are_equal(figures, i, k)) {
                repeated++;
                break;
            }
    return repeated;
}

/* --- outputs ---------------------------------------------------------------- */

/* Makes room for an output when it is seen first. Returns false when out of memory. */
static bool
begin_answer(struct qdqi_answer_figures *to, const struct qdqi_output *output, size_t n,
             struct qdqi_arena *arena)
{
    const size_t last = output->rank > 0 ? (size_t)output->shape[output->rank - 1] : 0;
    to->n = n;
    to->sum = qdqi_arena_array(arena, n, sizeof *to->sum);
    to->sum2 = qdqi_arena_array(arena, n, sizeof *to->sum2);
    if (!to->sum || !to->sum2)
        return false;
    if (!to->lists_classes || last != n || last < 3)
        return true;
    to->classes = last;
    to->chosen = qdqi_arena_array(arena, last, sizeof *to->chosen);
    return to->chosen;
}

static void
add_elements(struct qdqi_answer_figures *to, const float *x)
{
    size_t largest = 0;
    for (size_t i = 0; i < to->n; i++) {
        to->sum[i] += (double)x[i];
        to->sum2[i] += (double)x[i] * (double)x[i];
        if (x[i] > x[largest])
            largest = i;
    }
    if (to->classes)
        to->chosen[largest]++;
}

static enum qdq_code
add_answer(struct qdqi_answer_figures *to, const struct qdqi_output *output,
           size_t samples, struct qdqi_arena *arena, struct qdq_error *err)
{
    const bool is_batch = output->rank > 0 && output->shape[0] == (int64_t)samples;
    const size_t n = is_batch ? output->n / samples : 0;
    if (output->dtype != QDQI_FLOAT32 || n == 0 || n > MOST_ELEMENTS)
        to->differs = true;
    if (!to->differs && to->n == 0 && !begin_answer(to, output, n, arena))
        return qdqi_no_memory(err);
    if (to->n != n)
        to->differs = true;
    for (size_t i = 0; i < samples && !to->differs; i++)
        add_elements(to, (const float *)output->data + i * n);
    return QDQ_OK;
}

/* --- activations ------------------------------------------------------------ */

/* The axis of channels: axis 1 of three or more axes as convolutions have it, else the last
   one. */
static size_t
channel_axis(const struct qdqi_output *output)
{
    return output->rank >= 4 ? 1 : output->rank - 1;
}

/* Elements so near to a bound carry nothing: a rounding error of float32. */
static bool
is_at(double x, double bound)
{
    return fabs(x - bound) <= 1e-6;
}

static void
add_channels(struct qdqi_probe_figures *to, const struct qdqi_output *output)
{
    const size_t axis = channel_axis(output);
    const float *x = output->data;
    size_t inner = 1;
    for (size_t i = axis + 1; i < output->rank; i++)
        inner *= (size_t)output->shape[i];
    for (size_t i = 0; i < output->n / inner; i++, x += inner) {
        struct qdqi_channel *channel = &to->channels[i % to->n];
        channel->n += inner;
        for (size_t k = 0; k < inner; k++) {
            channel->at_low += is_at((double)x[k], to->probe.low);
            channel->at_high += is_at((double)x[k], to->probe.high);
        }
    }
}

static enum qdq_code
add_probe(struct qdqi_probe_figures *to, const struct qdqi_output *output,
          struct qdqi_arena *arena, struct qdq_error *err)
{
    if (output->dtype != QDQI_FLOAT32 || output->rank < 2 || output->n == 0)
        to->differs = true;
    if (to->differs)
        return QDQ_OK;
    const size_t n = (size_t)output->shape[channel_axis(output)];
    if (to->n == 0) {
        to->n = n;
        to->channels = qdqi_arena_array(arena, n, sizeof *to->channels);
        if (!to->channels)
            return qdqi_no_memory(err);
    }
    to->differs = to->n != n;
    if (!to->differs)
        add_channels(to, output);
    return QDQ_OK;
}

enum qdq_code
qdqi_data_figures_add(struct qdqi_data_figures *f, size_t samples,
                      const struct qdqi_input *inputs,
                      const struct qdqi_output *outputs, struct qdq_error *err)
{
    const size_t n_probes = f->samples < QDQI_SAMPLES_WITH_PROBES ? f->n_probes : 0;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < f->n_inputs; i++)
        add_input(&f->inputs[i], &inputs[i], f->samples, samples);
    for (size_t i = 0; !code && i < f->n_answers; i++)
        code = add_answer(&f->answers[i], &outputs[i], samples, f->arena, err);
    for (size_t i = 0; !code && i < n_probes; i++)
        code = add_probe(&f->probes[i], &outputs[f->n_answers + i], f->arena, err);
    f->samples += samples;
    return code;
}
