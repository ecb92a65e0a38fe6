/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "range/patches.h"

#include <string.h>

/* Where a convolution stands in its input. */
struct geometry {
    int64_t in[QDQI_PATCH_AXES], out[QDQI_PATCH_AXES], begin[QDQI_PATCH_AXES];
    size_t channels; /* of one group */
    size_t plane;    /* elements of a channel */
};

/* The work on one sample. */
struct taking {
    struct qdqi_patches *patches;
    const struct geometry *geometry; /* NULL: rows of a matrix */
    qdqi_add_rows_fn *add;
    void *arg;
};

static void
set_padding(const struct qdqi_window *w, size_t i, struct geometry *g)
{
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t both = w->begin[i] + w->end[i];
    g->begin[i] = w->begin[i];
    if (w->same_upper || w->same_lower) {
        g->out[i] = (g->in[i] + w->stride[i] - 1) / w->stride[i];
        both = (g->out[i] - 1) * w->stride[i] + reach - g->in[i];
        both = both > 0 ? both : 0;
        g->begin[i] = w->same_upper ? both / 2 : both - both / 2;
    } else {
        int64_t room = g->in[i] + both - reach;
        g->out[i] = room < 0 ? 0 : room / w->stride[i] + 1;
    }
}

/* Returns false when the input does not fit. */
static bool
geometry_of(const struct qdqi_patches *p, const struct qdqi_patched *input,
            struct geometry *g)
{
    const struct qdqi_window *w = &p->window;
    size_t kernel = 1;
    if (input->rank != w->axes + 2 || (size_t)input->dims[1] % p->groups != 0)
        return false;
    *g = (struct geometry){.channels = (size_t)input->dims[1] / p->groups, .plane = 1};
    for (size_t i = 0; i < w->axes; i++) {
        g->in[i] = input->dims[i + 2];
        g->plane *= (size_t)g->in[i];
        kernel *= (size_t)w->kernel[i];
        set_padding(w, i, g);
    }
    return g->channels * kernel == p->moments[0].k;
}

/* Copies the part of a patch that lies on one line of the last axis. A NULL line is
   padding. */
static float *
copy_line(const struct qdqi_window *w, const struct geometry *g, const float *line,
          const int64_t *at, float *to)
{
    size_t last = w->axes - 1;
    int64_t x = at[last] * w->stride[last] - g->begin[last];
    for (int64_t k = 0; k < w->kernel[last]; k++, x += w->dilation[last])
        *to++ = line && x >= 0 && x < g->in[last] ? line[x] : 0;
    return to;
}

/* Copies one channel's part of the patch at `at`. Returns the end of what it wrote. */
static float *
copy_channel(const struct qdqi_window *w, const struct geometry *g, const float *plane,
             const int64_t *at, float *to)
{
    size_t lines = 1;
    for (size_t i = 0; i + 1 < w->axes; i++)
        lines *= (size_t)w->kernel[i];
    for (size_t l = 0; l < lines; l++) {
        size_t rest = l, skipped = (size_t)g->in[w->axes - 1];
        const float *line = plane;
        for (size_t i = w->axes - 1; i-- > 0; rest /= (size_t)w->kernel[i]) {
            int64_t k = (int64_t)(rest % (size_t)w->kernel[i]);
            int64_t x = at[i] * w->stride[i] - g->begin[i] + k * w->dilation[i];
            line = line && x >= 0 && x < g->in[i] ? line + (size_t)x * skipped : NULL;
            skipped *= (size_t)g->in[i];
        }
        to = copy_line(w, g, line, at, to);
    }
    return to;
}

static void
push(const struct taking *t, struct qdqi_moment *m)
{
    if (qdqi_moment_push(m))
        t->add(t->arg, m);
}

static void
take_patch(const struct taking *t, const float *sample, size_t position)
{
    const struct qdqi_window *w = &t->patches->window;
    const struct geometry *g = t->geometry;
    int64_t at[QDQI_PATCH_AXES];
    for (size_t i = w->axes; i-- > 0; position /= (size_t)g->out[i])
        at[i] = (int64_t)(position % (size_t)g->out[i]);
    for (size_t group = 0; group < t->patches->groups; group++) {
        struct qdqi_moment *m = &t->patches->moments[group];
        float *to = qdqi_moment_next(m);
        for (size_t c = 0; c < g->channels; c++)
            to = copy_channel(w, g, sample + (group * g->channels + c) * g->plane, at,
                              to);
        push(t, m);
    }
}

static void
take_row(const struct taking *t, const float *sample, size_t position)
{
    struct qdqi_moment *m = &t->patches->moments[0];
    memcpy(qdqi_moment_next(m), sample + position * m->k, m->k * sizeof(float));
    push(t, m);
}

/* Takes `wanted` of n positions. Each has one of as many equal intervals, and the place
   in the interval changes from sample to sample (van der Corput's sequence). */
static void
take_sample(const struct taking *t, const float *sample, size_t n, size_t wanted)
{
    double offset = 0, bit = 0.5;
    for (uint64_t i = t->patches->taken; i > 0; i >>= 1, bit /= 2)
        offset += i & 1 ? bit : 0;
    if (wanted >= n) {
        wanted = n;
        offset = 0;
    }
    for (size_t j = 0; j < wanted; j++) {
        size_t at = (size_t)(((double)j + offset) * (double)n / (double)wanted);
        (t->geometry ? take_patch : take_row)(t, sample, at < n ? at : n - 1);
    }
}

bool
qdqi_patches_take(struct qdqi_moments *all, size_t slot,
                  const struct qdqi_patched *input, qdqi_add_rows_fn *add, void *arg)
{
    struct qdqi_patches *p = all->rows[slot];
    struct geometry g;
    struct taking t = {.patches = p, .add = add, .arg = arg};
    size_t samples = (size_t)all->samples, elements = 1, positions = 1;
    for (size_t i = 0; i < input->rank; i++)
        elements *= (size_t)input->dims[i];
    if (elements == 0)
        return true;
    bool cut = input->rank > 0 && input->dims[0] == all->samples;
    if (p->window.axes > 0) {
        if (!geometry_of(p, input, &g))
            return false;
        t.geometry = &g;
        for (size_t i = 0; i < p->window.axes; i++)
            positions *= (size_t)g.out[i];
        samples = (size_t)input->dims[0];
    } else {
        if (input->rank == 0 || (size_t)input->dims[input->rank - 1] != p->moments->k)
            return false;
        samples = cut && input->rank > 1 ? samples : 1;
        positions = elements / p->moments->k / samples;
    }
    size_t wanted = cut ? all->per_sample : all->per_sample * (size_t)all->samples;
    if (!cut && p->window.axes > 0) /* the batch of the layer is not that of the run */
        wanted = (wanted + samples - 1) / samples;
    for (size_t i = 0; positions > 0 && i < samples; i++, p->taken++)
        take_sample(&t, input->data + i * (elements / samples), positions, wanted);
    return true;
}
