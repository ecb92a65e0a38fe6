/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/patches.h"

#include "numbers/arithmetic/products.h"
#include "numbers/range/shifts.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SHARES = 8, /* into which the work on rows is divided */
    ELEMENTS = 16,  /* of a kernel, whose places are computed at once */
};

/* The work on one sample. */
struct taking {
    struct qdqi_patched_sample from;
    qdqi_share_fn *share;
    void *arg;
    size_t first, rows, n_shares; /* those that are copied now */
    /* Those that are copied of a convolution: where each element of the kernel lies in a
       channel, by row. -1: padding. */
    size_t element, n_elements;
    ptrdiff_t (*places)[QDQI_MOMENT_ROWS];
    bool is_finite[MAX_SHARES];
};

static void
set_padding(const struct qdqi_window *w, size_t i, struct qdqi_geometry *g)
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
            struct qdqi_geometry *g)
{
    const struct qdqi_window *w = &p->window;
    size_t kernel = 1;
    if (input->rank != w->axes + 2 || (size_t)input->dims[1] % p->groups != 0)
        return false;
    *g = (struct qdqi_geometry){.channels = (size_t)input->dims[1] / p->groups,
                                .plane = 1};
    for (size_t i = 0; i < w->axes; i++) {
        g->in[i] = input->dims[i + 2];
        g->plane *= (size_t)g->in[i];
        kernel *= (size_t)w->kernel[i];
        set_padding(w, i, g);
    }
    return g->channels * kernel == p->moments[0].k;
}

/* Returns the place in a channel of element `e` of the kernel at `at`; -1: padding. */
static ptrdiff_t
place_of(const struct qdqi_window *w, const struct qdqi_geometry *g, const int64_t *at,
         size_t e)
{
    ptrdiff_t place = 0, size = 1;
    for (size_t i = w->axes; i-- > 0; e /= (size_t)w->kernel[i]) {
        int64_t k = (int64_t)(e % (size_t)w->kernel[i]);
        int64_t x = at[i] * w->stride[i] - g->begin[i] + k * w->dilation[i];
        if (x < 0 || x >= g->in[i])
            return -1;
        place += (ptrdiff_t)x * size;
        size *= (ptrdiff_t)g->in[i];
    }
    return place;
}

size_t
qdqi_patched_position(const struct qdqi_patched_sample *s, size_t row)
{
    double interval = (double)row + s->offset;
    size_t at = (size_t)(interval * (double)s->positions / (double)s->wanted);
    return at < s->positions ? at : s->positions - 1;
}

/* Returns the position of a row that is copied now. */
static size_t
position_of(const struct taking *t, size_t row)
{
    return qdqi_patched_position(&t->from, t->first + row);
}

/* Returns where a position is: the steps of the kernel along each axis. */
static void
find_steps(const struct qdqi_window *w, const struct qdqi_geometry *g, size_t position,
           int64_t *at)
{
    for (size_t i = w->axes; i-- > 0; position /= (size_t)g->out[i])
        at[i] = (int64_t)(position % (size_t)g->out[i]);
}

void
qdqi_patched_row(const struct qdqi_patched_sample *s, size_t group, size_t position,
                 float *to)
{
    const struct qdqi_geometry *g = s->geometry;
    const size_t k = s->patches->moments->k;
    int64_t at[QDQI_PATCH_AXES];
    if (!g) {
        memcpy(to, s->data + position * k, k * sizeof *to);
        return;
    }
    const size_t kernel = k / g->channels;
    const float *data = s->data + group * g->channels * g->plane;
    find_steps(&s->patches->window, g, position, at);
    for (size_t e = 0; e < kernel; e++) {
        const ptrdiff_t place = place_of(&s->patches->window, g, at, e);
        for (size_t c = 0; c < g->channels; c++)
            to[c * kernel + e] = place < 0 ? 0 : data[c * g->plane + (size_t)place];
    }
}

static void
find_places(struct taking *t)
{
    const struct qdqi_window *w = &t->from.patches->window;
    for (size_t r = 0; r < t->rows; r++) {
        int64_t at[QDQI_PATCH_AXES];
        find_steps(w, t->from.geometry, position_of(t, r), at);
        for (size_t e = 0; e < t->n_elements; e++)
            t->places[e][r] = place_of(w, t->from.geometry, at, t->element + e);
    }
}

/* Copies one element of n rows. Returns whether all are finite. */
static bool
copy_element(const float *channel, const ptrdiff_t *places, size_t n, float *to)
{
    uint32_t marks = 0;
    for (size_t r = 0; r < n; r++) {
        float x = places[r] < 0 ? 0 : channel[places[r]];
        to[r * QDQI_PRODUCTS_STEP] = x;
        marks |= qdqi_moment_mark(x);
    }
    return !(marks >> 31);
}

/* Copies share i of the channels. (Going by channels and not by rows reads and writes
   memory in its order.) */
static void
copy_channels(void *arg, size_t share)
{
    struct taking *t = arg;
    const struct qdqi_geometry *g = t->from.geometry;
    size_t channels = t->from.patches->groups * g->channels;
    size_t kernel = t->from.patches->moments->k / g->channels;
    size_t end = channels * (share + 1) / t->n_shares;
    bool finite = true;
    for (size_t c = channels * share / t->n_shares; c < end; c++) {
        const struct qdqi_moment *m = &t->from.patches->moments[c / g->channels];
        for (size_t e = 0; e < t->n_elements; e++) {
            size_t i = c % g->channels * kernel + t->element + e;
            finite &= copy_element(t->from.data + c * g->plane, t->places[e], t->rows,
                                   qdqi_moment_element(m, i, m->n_pending));
        }
    }
    t->is_finite[share] = finite;
}

typedef float floats4 __attribute__((vector_size(16), aligned(4)));
typedef uint32_t marks4 __attribute__((vector_size(16)));

/* Copies one element of n rows of four groups, whose channels are given. Returns whether all
   are finite. */
static bool
copy_four(const float *const channels[4], const ptrdiff_t *places, size_t n,
          size_t step, float *to)
{
    const float *a = channels[0], *b = channels[1], *c = channels[2], *d = channels[3];
    marks4 marks = {0};
    for (size_t r = 0; r < n; r++, to += step) {
        floats4 x = {0};
        ptrdiff_t i = places[r];
        if (i >= 0)
            x = (floats4){a[i], b[i], c[i], d[i]};
        *(floats4 *)to = x;
        marks |= ((marks4)x & 0x7fffffff) + 0x00800000; /* as qdqi_moment_mark() */
    }
    return !((marks[0] | marks[1] | marks[2] | marks[3]) >> 31);
}

/* Copies n rows from `first` on of four groups: those of a strip from `lane` on. Lanes behind
   the last group get a copy of it, because there is no other channel to read. */
static bool
copy_groups(const struct taking *t, size_t strip, size_t lane, size_t first, size_t n)
{
    const struct qdqi_patches *p = t->from.patches;
    const struct qdqi_geometry *g = t->from.geometry;
    size_t kernel = p->lanes->k / g->channels, step = p->lanes->k * QDQI_LANES;
    float *row = qdqi_lanes_row(p->lanes, strip, p->lanes->n_pending + first) + lane;
    bool finite = true;
    for (size_t c = 0; c < g->channels; c++) {
        const float *channels[4];
        for (size_t i = 0; i < 4; i++) {
            size_t group = strip * QDQI_LANES + lane + i;
            group = group < p->groups ? group : p->groups - 1;
            channels[i] = t->from.data + (group * g->channels + c) * g->plane;
        }
        for (size_t e = 0; e < t->n_elements; e++)
            finite &= copy_four(channels, t->places[e] + first, n, step,
                                row + (c * kernel + t->element + e) * QDQI_LANES);
    }
    return finite;
}

/* Copies share i of the strips of groups. */
static void
copy_strips(void *arg, size_t share)
{
    struct taking *t = arg;
    const struct qdqi_lanes *l = t->from.patches->lanes;
    size_t strips = qdqi_lanes_strips(l), end = strips * (share + 1) / t->n_shares;
    size_t near = qdqi_lanes_near(l);
    bool finite = true;
    for (size_t s = strips * share / t->n_shares; s < end; s++)
        for (size_t r = 0, n; r < t->rows; r += n) {
            n = t->rows - r < near ? t->rows - r : near;
            for (size_t lane = 0; lane < QDQI_LANES; lane += 4)
                finite &= copy_groups(t, s, lane, r, n);
        }
    t->is_finite[share] = finite;
}

static void
check_patches(struct qdqi_patches *p, size_t n, bool finite)
{
    for (size_t s = 0; p->lanes && s < qdqi_lanes_strips(p->lanes); s++)
        qdqi_lanes_check(p->lanes, s, p->lanes->n_pending, n, finite);
    for (size_t g = 0; !p->lanes && g < p->groups; g++)
        qdqi_moment_check(&p->moments[g], p->moments[g].n_pending, n, finite);
}

static void
copy_patches(struct taking *t)
{
    ptrdiff_t places[ELEMENTS][QDQI_MOMENT_ROWS];
    struct qdqi_patches *p = t->from.patches;
    size_t kernel = p->moments->k / t->from.geometry->channels;
    size_t most =
        p->lanes ? qdqi_lanes_strips(p->lanes) : p->groups * t->from.geometry->channels;
    bool finite = true;
    t->places = places;
    t->n_shares = t->n_shares < most ? t->n_shares : most;
    for (t->element = 0; t->element < kernel; t->element += t->n_elements) {
        size_t left = kernel - t->element;
        t->n_elements = left < ELEMENTS ? left : ELEMENTS;
        find_places(t);
        t->share(t->arg, p->lanes ? copy_strips : copy_channels, t->n_shares, t);
        for (size_t i = 0; i < t->n_shares; i++)
            finite &= t->is_finite[i];
    }
    check_patches(p, t->rows, finite);
    t->places = NULL;
}

/* Copies share i of the rows of a matrix. */
static void
copy_rows(void *arg, size_t i)
{
    const struct taking *t = arg;
    struct qdqi_moment *m = t->from.patches->moments;
    size_t end = t->rows * (i + 1) / t->n_shares;
    for (size_t r = t->rows * i / t->n_shares; r < end; r++)
        qdqi_moment_put(m, m->n_pending + r, t->from.data + position_of(t, r) * m->k);
}

static void
add_part(void *arg, size_t i)
{
    const struct qdqi_patches *p = arg;
    size_t parts = qdqi_moment_parts(p->moments);
    qdqi_moment_add_part(&p->moments[i / parts], i % parts);
}

static void
add_strip(void *arg, size_t strip)
{
    const struct qdqi_patches *p = arg;
    qdqi_lanes_add(p->lanes, strip, p->moments);
}

static size_t
count_pending(const struct qdqi_patches *p)
{
    return p->lanes ? p->lanes->n_pending : p->moments->n_pending;
}

static void
add_pending(struct qdqi_patches *p, qdqi_share_fn *share, void *arg)
{
    if (count_pending(p) == 0)
        return;
    if (p->lanes) {
        share(arg, add_strip, qdqi_lanes_strips(p->lanes), p);
        p->lanes->n_pending = 0;
        return;
    }
    share(arg, add_part, p->groups * qdqi_moment_parts(p->moments), p);
    for (size_t g = 0; g < p->groups; g++)
        qdqi_moment_added(&p->moments[g]);
}

/* Takes in the next n rows, which were copied. Adds all that are pending when no more of
   them have room. */
static void
push(struct qdqi_patches *p, size_t n, qdqi_share_fn *share, void *arg)
{
    if (p->lanes)
        p->lanes->n_pending += n;
    for (size_t g = 0; !p->lanes && g < p->groups; g++)
        qdqi_moment_push(&p->moments[g], n);
    if (count_pending(p) == QDQI_MOMENT_ROWS)
        add_pending(p, share, arg);
}

bool
qdqi_patches_begin(struct qdqi_patches *p)
{
    bool ok = true;
    if (p->window.axes > 0 && qdqi_lanes_fit(p->groups, p->moments->k)) {
        p->lanes = p->lanes ? p->lanes : qdqi_lanes_new(p->groups, p->moments->k);
        return p->lanes;
    }
    for (size_t g = 0; g < p->groups; g++)
        ok = ok && qdqi_moment_begin(&p->moments[g]);
    return ok;
}

void
qdqi_patches_finish(struct qdqi_patches *p, qdqi_share_fn *share, void *arg)
{
    add_pending(p, share, arg);
    if (p->shifts)
        qdqi_shifts_finish(p->shifts, p->moments, share, arg);
}

void
qdqi_patches_reset(struct qdqi_patches *p)
{
    qdqi_shifts_free(&p->shifts);
    p->taken = 0;
    if (p->lanes)
        p->lanes->n_pending = 0;
    for (size_t g = 0; g < p->groups; g++)
        qdqi_moment_reset(&p->moments[g]);
}

void
qdqi_patches_fini(struct qdqi_patches *p)
{
    qdqi_shifts_free(&p->shifts);
    qdqi_lanes_free(&p->lanes);
    for (size_t g = 0; g < p->groups; g++)
        qdqi_moment_end(&p->moments[g]);
}

enum { ROWS_OF_A_SHARE = 1 << 14 }; /* elements that are worth a thread's while */

/* Takes the wanted positions. */
static void
add_sample(struct taking *t)
{
    struct qdqi_patches *p = t->from.patches;
    for (t->first = 0; t->first < t->from.wanted; t->first += t->rows) {
        size_t room = QDQI_MOMENT_ROWS - count_pending(p);
        size_t left = t->from.wanted - t->first;
        t->rows = left < room ? left : room;
        t->n_shares = 1 + t->rows * p->moments->k * p->groups / ROWS_OF_A_SHARE;
        if (t->n_shares > MAX_SHARES)
            t->n_shares = MAX_SHARES;
        if (t->from.geometry)
            copy_patches(t);
        else
            t->share(t->arg, copy_rows, t->n_shares, t);
        push(p, t->rows, t->share, t->arg);
    }
}

/* Takes all positions of the sample by products of the image with itself, if that is less
   work than the wanted ones. */
static bool
add_whole(const struct taking *t)
{
    struct qdqi_patches *p = t->from.patches;
    const struct qdqi_geometry *g = t->from.geometry;
    if (!g || p->groups > 1 ||
        !qdqi_shifts_pay(&p->window, g->channels, (size_t)g->in[0], (size_t)g->in[1],
                         t->from.wanted))
        return false;
    if (!p->shifts)
        p->shifts = qdqi_shifts_new(g->channels);
    return p->shifts && qdqi_shifts_add(p->shifts, t->from.data, (size_t)g->in[0],
                                        (size_t)g->in[1], t->share, t->arg);
}

/* --- samples -------------------------------------------------------------- */

static size_t
count_elements(const struct qdqi_patched *input)
{
    size_t elements = 1;
    for (size_t i = 0; i < input->rank; i++)
        elements *= (size_t)input->dims[i];
    return elements;
}

/* Returns element i of van der Corput's sequence. */
static double
van_der_corput(uint64_t i)
{
    double sum = 0, bit = 0.5;
    for (; i > 0; i >>= 1, bit /= 2)
        sum += i & 1 ? bit : 0;
    return sum;
}

bool
qdqi_patches_each(struct qdqi_moments *all, size_t slot,
                  const struct qdqi_patched *input,
                  void (*take)(void *arg, const struct qdqi_patched_sample *sample),
                  void *arg)
{
    struct qdqi_patches *p = all->rows[slot];
    struct qdqi_geometry g;
    struct qdqi_patched_sample s = {.patches = p};
    size_t samples = (size_t)all->samples, positions = 1;
    size_t elements = count_elements(input);
    if (elements == 0)
        return true;
    bool cut = input->rank > 0 && input->dims[0] == all->samples;
    if (p->window.axes > 0) {
        if (!geometry_of(p, input, &g))
            return false;
        s.geometry = &g;
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
    bool is_whole = wanted >= positions;
    s.positions = positions;
    s.wanted = is_whole ? positions : wanted;
    for (size_t i = 0; positions > 0 && i < samples; i++, p->taken++) {
        s.data = input->data + i * (elements / samples);
        s.offset = is_whole ? 0 : van_der_corput(p->taken);
        take(arg, &s);
    }
    return true;
}

struct sharing {
    qdqi_share_fn *share;
    void *arg;
};

static void
take_sample(void *arg, const struct qdqi_patched_sample *sample)
{
    const struct sharing *sharing = arg;
    struct taking t = {.from = *sample, .share = sharing->share, .arg = sharing->arg};
    if (!add_whole(&t))
        add_sample(&t);
}

static bool
take(struct qdqi_moments *all, size_t slot, const struct qdqi_patched *input,
     qdqi_share_fn *share, void *arg)
{
    struct sharing sharing = {share, arg};
    return qdqi_patches_each(all, slot, input, take_sample, &sharing);
}

/* --- inputs that are held ------------------------------------------------- */

/* A copy of an input. Its memory is kept for the inputs of later runs. */
struct qdqi_held {
    size_t slot, rank;
    int64_t *dims; /* capacity rank_room */
    float *data;   /* capacity data_room */
    size_t rank_room, data_room;
};

/* Makes room for n elements; false when out of memory. */
static bool
reserve(void **data, size_t *room, size_t n, size_t size)
{
    void *more = n > *room ? realloc(*data, n * size) : *data;
    if (n > *room && !more)
        return false;
    *data = more;
    *room = n > *room ? n : *room;
    return true;
}

/* Returns the next place for a copy, empty at first; NULL when out of memory. */
static struct qdqi_held *
next_held(struct qdqi_moments *all)
{
    void *held = all->held;
    size_t before = all->room, room = before;
    if (all->n_held == before &&
        !reserve(&held, &room, before ? 2 * before : 16, sizeof *all->held))
        return NULL;
    all->held = held;
    all->room = room;
    if (room > before)
        memset(all->held + before, 0, (room - before) * sizeof *all->held);
    return &all->held[all->n_held];
}

static bool
hold(struct qdqi_moments *all, size_t slot, const struct qdqi_patched *input)
{
    size_t n = count_elements(input);
    struct qdqi_held *h = next_held(all);
    void *dims = h ? h->dims : NULL, *data = h ? h->data : NULL;
    if (!h || !reserve(&dims, &h->rank_room, input->rank, sizeof *h->dims))
        return false;
    h->dims = dims;
    if (!reserve(&data, &h->data_room, n, sizeof *h->data))
        return false;
    h->data = data;
    h->slot = slot;
    h->rank = input->rank;
    if (input->rank)
        memcpy(h->dims, input->dims, input->rank * sizeof *h->dims);
    if (n)
        memcpy(h->data, input->data, n * sizeof *h->data);
    all->n_held++;
    return true;
}

bool
qdqi_patches_add(struct qdqi_moments *all, size_t slot,
                 const struct qdqi_patched *input, qdqi_share_fn *share, void *arg)
{
    return all->holds ? hold(all, slot, input) : take(all, slot, input, share, arg);
}

bool
qdqi_patches_take_held(struct qdqi_moments *all, qdqi_share_fn *share, void *arg)
{
    bool ok = true;
    for (size_t i = 0; i < all->n_held && ok; i++) {
        const struct qdqi_held *h = &all->held[i];
        const struct qdqi_patched input = {h->data, h->rank, h->dims};
        ok = take(all, h->slot, &input, share, arg);
    }
    all->n_held = 0;
    return ok;
}

void
qdqi_patches_discard_held(struct qdqi_moments *all)
{
    all->n_held = 0;
}

void
qdqi_patches_free_held(struct qdqi_moments *all)
{
    for (size_t i = 0; i < all->room; i++) {
        free(all->held[i].dims);
        free(all->held[i].data);
    }
    free(all->held);
    all->held = NULL;
    all->n_held = all->room = 0;
}
