/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/shifts.h"

#include "ground/base/zeros.h"
#include "numbers/arithmetic/products.h"

#include <stdlib.h>
#include <string.h>

/*
 * The products that are summed. Those of whole images are moved by (0, 0) to (0, 2), (1,
 * -2) to (1, 2) and (2, -2) to (2, 2); the rest are transposes of these. Those of an edge
 * are moved along it by 0 to 2, and those of a corner are not moved.
 */
enum {
    REACH = 2, /* of a shift in one direction */
    N_IMAGE = REACH + 1 + REACH * (2 * REACH + 1),
    N_EDGES = 4, /* first row, last row, first column, last column */
    N_EDGE = REACH + 1,
    EDGES = N_IMAGE,
    CORNERS = EDGES + N_EDGES * N_EDGE, /* 2 * whether it is last row + last column */
    N_PRODUCTS = CORNERS + 4,
    TAPS = 9,    /* of the kernel */
    LINES = 256, /* pixels that are added at once, at most */
    /* Images are put aside, and multiplied together while a tile of sums is in the
       cache. */
    IMAGE_ROOM = 2048, /* pixels, unless one image has more */
    MAX_IMAGES = 64,
    STEP = QDQI_PRODUCTS_STEP,
};

/* Pixels of all channels: [strip][room][STEP]. */
struct pixels {
    float *at;
    size_t used, room;
};

/* An image that was put aside, from its first pixel on, row by row. */
struct image {
    size_t first, height, width;
};

struct qdqi_shifts {
    size_t channels, strips;
    size_t width, tiles; /* of a tile, and along a side */
    uint64_t rows;       /* positions */
    float *sums;         /* [N_PRODUCTS][tiles][tiles][width][width] */
    /* [N_EDGES + 5][channels]: the pixels of the edges, the corners, and all of them */
    double *means;
    struct pixels pixels, edges[N_EDGES], corners[4];
    struct image images[MAX_IMAGES]; /* in `pixels` */
    size_t n_images;
};

/* The image that is taken in. */
struct taken {
    struct qdqi_shifts *s;
    const float *image;
    size_t height, width;
    size_t first;    /* where its first pixel is put */
    bool *is_finite; /* by strip */
};

enum { ALL = N_EDGES + 4, N_MEANS };

static size_t
strips_of(size_t channels)
{
    return (channels + STEP - 1) / STEP;
}

static size_t
width_of(size_t channels)
{
    size_t whole = strips_of(channels) * STEP;
    return whole < QDQI_PRODUCTS_WIDE ? whole : QDQI_PRODUCTS_WIDE;
}

static size_t
tiles_of(size_t channels)
{
    return (channels + width_of(channels) - 1) / width_of(channels);
}

static size_t
n_sums(size_t channels)
{
    size_t side = tiles_of(channels) * width_of(channels);
    return N_PRODUCTS * side * side;
}

uint64_t
qdqi_shifts_bytes(size_t channels)
{
    size_t pixels = strips_of(channels) * STEP * IMAGE_ROOM;
    return (n_sums(channels) + pixels) * sizeof(float);
}

bool
qdqi_shifts_pay(const struct qdqi_window *w, size_t channels, size_t height,
                size_t width, size_t wanted)
{
    bool same = w->same_upper || w->same_lower;
    if (w->axes != 2 || channels < STEP || channels > QDQI_MOMENT_WHOLE / TAPS ||
        height < 3 || width < 3)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (w->kernel[i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1 ||
            (!same && (w->begin[i] != 1 || w->end[i] != 1)))
            return false;
    /* rows of products for each pair of channels */
    size_t positions = height * width, row = 5 * width - 6;
    size_t image = (3 * width - 3) * height + row * (height - 1) + row * (height - 2);
    size_t edges = 2 * N_EDGE * (width + height + 2 * REACH);
    size_t patches = wanted < positions ? wanted : positions;
    return image + edges < patches * TAPS * TAPS / 2;
}

struct qdqi_shifts *
qdqi_shifts_new(size_t channels)
{
    struct qdqi_shifts *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->channels = channels;
    s->width = width_of(channels);
    s->tiles = tiles_of(channels);
    s->strips = s->tiles * s->width / STEP;
    s->sums = qdqi_zeros_new(n_sums(channels), sizeof *s->sums);
    s->means = calloc(N_MEANS * channels, sizeof *s->means);
    if (!s->sums || !s->means)
        qdqi_shifts_free(&s);
    return s;
}

void
qdqi_shifts_free(struct qdqi_shifts **shifts)
{
    struct qdqi_shifts *s = *shifts;
    if (!s)
        return;
    free(s->pixels.at);
    for (size_t i = 0; i < N_EDGES; i++)
        free(s->edges[i].at);
    for (size_t i = 0; i < 4; i++)
        free(s->corners[i].at);
    free(s->sums);
    free(s->means);
    free(s);
    *shifts = NULL;
}

/* --- products --------------------------------------------------------------- */

/* A product of pixels with those `shift` behind them. */
struct product {
    const struct pixels *pixels;
    size_t which, first; /* `first`: of the pixels */
    struct qdqi_runs runs;
    ptrdiff_t shift;
};

struct multiplication {
    struct qdqi_shifts *s;
    struct product products[N_PRODUCTS];
    size_t n;
};

static float *
tile_at(const struct qdqi_shifts *s, size_t which, size_t i, size_t j)
{
    return s->sums + ((which * s->tiles + i) * s->tiles + j) * s->width * s->width;
}

/* Adds to tile (i, j) of a product. */
static void
multiply_tile(const struct qdqi_shifts *s, const struct product *p, size_t i, size_t j)
{
    const struct pixels *x = p->pixels;
    size_t stride = x->room * STEP, wide = s->width / STEP;
    size_t at_once = p->runs.rows < LINES ? LINES / p->runs.rows : 1;
    for (size_t r = 0; r < p->runs.n; r += at_once) {
        struct qdqi_runs runs = p->runs;
        size_t first = p->first + r * runs.step;
        runs.n = runs.n - r < at_once ? runs.n - r : at_once;
        const float *a = x->at + i * wide * stride + first * STEP;
        const float *b =
            x->at + j * wide * stride + (size_t)((ptrdiff_t)first + p->shift) * STEP;
        qdqi_products_add(a, b, stride, runs, s->width, tile_at(s, p->which, i, j));
    }
}

/* Adds a row of tiles of one product. A product that is not moved is symmetric: its tiles
   below the diagonal stay 0. */
static void
multiply_part(void *arg, size_t part)
{
    const struct multiplication *m = arg;
    const struct qdqi_shifts *s = m->s;
    const struct product *p = &m->products[part / s->tiles];
    size_t i = part % s->tiles;
    for (size_t j = p->shift == 0 ? i : 0; j < s->tiles; j++)
        multiply_tile(s, p, i, j);
}

static void
multiply(struct multiplication *m, qdqi_share_fn *share, void *arg)
{
    if (m->n > 0)
        share(arg, multiply_part, m->n * m->s->tiles, m);
    m->n = 0;
}

static void
add_product(struct multiplication *m, const struct pixels *pixels, size_t which,
            size_t n, ptrdiff_t shift)
{
    /* Pixel 0 has REACH zeros before it. */
    m->products[m->n++] = (struct product){pixels, which, REACH, {1, n, n}, shift};
}

/* Adds a row of tiles of one product of the images that were put aside. */
static void
multiply_images_part(void *arg, size_t part)
{
    const struct qdqi_shifts *s = arg;
    size_t which = part / s->tiles, i = part % s->tiles;
    size_t dy = which < N_EDGE ? 0 : 1 + (which - N_EDGE) / (2 * REACH + 1);
    ptrdiff_t dx = (ptrdiff_t)which;
    if (dy > 0)
        dx = (ptrdiff_t)((which - N_EDGE) % (2 * REACH + 1)) - REACH;
    for (size_t j = which == 0 ? i : 0; j < s->tiles; j++)
        for (size_t k = 0; k < s->n_images; k++) {
            const struct image *image = &s->images[k];
            size_t aside = (size_t)(dx < 0 ? -dx : dx), width = image->width;
            const struct product p = {&s->pixels,
                                      which,
                                      image->first + (dx < 0 ? aside : 0),
                                      {image->height - dy, width - aside, width},
                                      (ptrdiff_t)(dy * width) + dx};
            multiply_tile(s, &p, i, j);
        }
}

static void
multiply_images(struct qdqi_shifts *s, qdqi_share_fn *share, void *arg)
{
    if (s->n_images > 0)
        share(arg, multiply_images_part, N_IMAGE * s->tiles, s);
    s->n_images = s->pixels.used = 0;
}

/* Adds the products of the edges and corners that were put aside. */
static void
multiply_edges(struct qdqi_shifts *s, qdqi_share_fn *share, void *arg)
{
    struct multiplication m = {.s = s};
    for (size_t e = 0; e < N_EDGES; e++)
        for (size_t d = 0; d < N_EDGE && s->edges[e].used > REACH; d++)
            add_product(&m, &s->edges[e], EDGES + e * N_EDGE + d,
                        s->edges[e].used - REACH, (ptrdiff_t)d);
    for (size_t c = 0; c < 4; c++)
        if (s->corners[c].used > REACH)
            add_product(&m, &s->corners[c], CORNERS + c, s->corners[c].used - REACH, 0);
    multiply(&m, share, arg);
    for (size_t e = 0; e < N_EDGES; e++)
        s->edges[e].used = 0;
    for (size_t c = 0; c < 4; c++)
        s->corners[c].used = 0;
}

/* --- pixels ------------------------------------------------------------------ */

/* Makes room for so many pixels, and REACH zeros before and behind them. Pixels that were
   there are lost when the buffer has to grow. */
static bool
make_room(const struct qdqi_shifts *s, struct pixels *p, size_t n)
{
    n += 2 * REACH;
    if (p->room >= n)
        return true;
    free(p->at);
    *p = (struct pixels){.at = qdqi_zeros_new(s->strips * n, STEP * sizeof *p->at)};
    p->room = p->at ? n : 0;
    return p->at;
}

/* Copies a strip of the image's channels and checks it. */
static void
copy_strip(void *arg, size_t strip)
{
    struct taken *t = arg;
    const struct qdqi_shifts *s = t->s;
    float *to = s->pixels.at + (strip * s->pixels.room + t->first) * STEP;
    uint32_t marks = 0;
    size_t first = strip * STEP, plane = t->height * t->width;
    size_t n = first < s->channels ? s->channels - first : 0;
    n = n < STEP ? n : STEP;
    if (n < STEP)
        memset(to, 0, plane * STEP * sizeof *to);
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < plane; i++) {
            float pixel = t->image[(first + c) * plane + i];
            to[i * STEP + c] = pixel;
            marks |= qdqi_moment_mark(pixel);
        }
    t->is_finite[strip] = !(marks >> 31);
}

/* Appends n pixels of those put aside, `step` apart, and zeros behind them. */
static void
append(const struct qdqi_shifts *s, struct pixels *to, size_t from, size_t step,
       size_t n)
{
    size_t at = to->used ? to->used : REACH;
    for (size_t strip = 0; strip < s->strips; strip++) {
        float *row = to->at + (strip * to->room + at) * STEP;
        const float *pixel = s->pixels.at + (strip * s->pixels.room + from) * STEP;
        for (size_t i = 0; i < n; i++)
            memcpy(row + i * STEP, pixel + i * step * STEP, STEP * sizeof *row);
        memset(row + n * STEP, 0, REACH * STEP * sizeof *row);
    }
    to->used = at + n + (n > 1 ? REACH : 0);
}

static void
append_edges(const struct taken *t)
{
    struct qdqi_shifts *s = t->s;
    size_t top = t->first, bottom = top + (t->height - 1) * t->width;
    size_t right = t->width - 1;
    append(s, &s->edges[0], top, 1, t->width);
    append(s, &s->edges[1], bottom, 1, t->width);
    append(s, &s->edges[2], top, t->width, t->height);
    append(s, &s->edges[3], top + right, t->width, t->height);
    for (size_t c = 0; c < 4; c++)
        append(s, &s->corners[c], (c & 2 ? bottom : top) + (c & 1 ? right : 0), 1, 1);
}

/* Makes room for one more image. */
static bool
make_image_room(struct qdqi_shifts *s, size_t pixels, qdqi_share_fn *share, void *arg)
{
    if (s->n_images == MAX_IMAGES || s->pixels.used + pixels > s->pixels.room)
        multiply_images(s, share, arg);
    return s->n_images > 0 ||
           make_room(s, &s->pixels, pixels < IMAGE_ROOM ? IMAGE_ROOM : pixels);
}

/* Returns whether there is room for the edges of one more image. */
static bool
have_room(const struct qdqi_shifts *s, size_t height, size_t width)
{
    for (size_t e = 0; e < N_EDGES; e++)
        if (s->edges[e].used + (e < 2 ? width : height) + 2 * REACH > s->edges[e].room)
            return false;
    return s->corners[0].used + 2 * REACH < s->corners[0].room;
}

static bool
make_edge_room(struct qdqi_shifts *s, size_t height, size_t width)
{
    bool ok = true;
    for (size_t e = 0; e < N_EDGES; e++) {
        size_t n = e < 2 ? width : height;
        ok = ok && make_room(s, &s->edges[e], n < LINES ? LINES : n);
    }
    for (size_t c = 0; c < 4; c++)
        ok = ok && make_room(s, &s->corners[c], LINES);
    return ok;
}

/* --- means -------------------------------------------------------------------- */

static void
add_means(const struct taken *t)
{
    struct qdqi_shifts *s = t->s;
    size_t bottom = t->height - 1, right = t->width - 1;
    for (size_t c = 0; c < s->channels; c++) {
        const float *x = t->image + c * t->height * t->width;
        double all = 0, edge[N_EDGES] = {0};
        for (size_t i = 0; i < t->height * t->width; i++)
            all += (double)x[i];
        for (size_t i = 0; i < t->width; i++) {
            edge[0] += (double)x[i];
            edge[1] += (double)x[bottom * t->width + i];
        }
        for (size_t i = 0; i < t->height; i++) {
            edge[2] += (double)x[i * t->width];
            edge[3] += (double)x[i * t->width + right];
        }
        for (size_t e = 0; e < N_EDGES; e++)
            s->means[e * s->channels + c] += edge[e];
        for (size_t k = 0; k < 4; k++)
            s->means[(N_EDGES + k) * s->channels + c] +=
                (double)x[(k & 2 ? bottom * t->width : 0) + (k & 1 ? right : 0)];
        s->means[ALL * s->channels + c] += all;
    }
}

bool
qdqi_shifts_add(struct qdqi_shifts *s, const float *image, size_t height, size_t width,
                qdqi_share_fn *share, void *arg)
{
    struct taken t = {s, image, height, width, 0, NULL};
    size_t pixels = height * width;
    bool finite = true;
    if (!have_room(s, height, width)) {
        multiply_edges(s, share, arg);
        if (!make_edge_room(s, height, width))
            return false;
    }
    if (!make_image_room(s, pixels, share, arg))
        return false;
    t.first = s->pixels.used;
    t.is_finite = calloc(s->strips, sizeof *t.is_finite);
    if (!t.is_finite)
        return false;
    share(arg, copy_strip, s->strips, &t);
    for (size_t i = 0; i < s->strips; i++)
        finite = finite && t.is_finite[i];
    free(t.is_finite);
    if (!finite)
        return true;
    append_edges(&t);
    s->images[s->n_images++] = (struct image){t.first, height, width};
    s->pixels.used += pixels;
    add_means(&t);
    s->rows += height * width;
    return true;
}

/* --- the moment ------------------------------------------------------------------ */

/* The sums of products of two channels: of the second moved by -REACH to REACH, down and to
   the right; along each edge; and of the corners. */
struct pair {
    float moved[2 * REACH + 1][2 * REACH + 1];
    float edges[N_EDGES][2 * REACH + 1];
    float corners[4];
};

/* Reads the sums of channels a <= b. Those of a shift to the other side are the sums of the
   channels in the other order. */
static void
read_pair(const struct qdqi_shifts *s, size_t a, size_t b, struct pair *ret)
{
    const size_t each = s->tiles * s->tiles * s->width * s->width;
    size_t i = a / s->width, j = b / s->width, x = a % s->width, y = b % s->width;
    const float *ab = tile_at(s, 0, i, j) + x * s->width + y;
    const float *ba = tile_at(s, 0, j, i) + y * s->width + x;
    for (int d = 0; d <= REACH; d++) {
        ret->moved[REACH][REACH - d] = (d ? ba : ab)[(size_t)d * each];
        ret->moved[REACH][REACH + d] = ab[(size_t)d * each];
        for (size_t e = 0; e < N_EDGES; e++) {
            size_t at = (EDGES + e * N_EDGE + (size_t)d) * each;
            ret->edges[e][REACH - d] = (d ? ba : ab)[at];
            ret->edges[e][REACH + d] = ab[at];
        }
    }
    for (int dy = 1; dy <= REACH; dy++)
        for (int dx = -REACH; dx <= REACH; dx++) {
            size_t at =
                (size_t)(N_EDGE + (dy - 1) * (2 * REACH + 1) + REACH + dx) * each;
            ret->moved[REACH + dy][REACH + dx] = ab[at];
            ret->moved[REACH - dy][REACH - dx] = ba[at];
        }
    for (size_t c = 0; c < 4; c++)
        ret->corners[c] = ab[(CORNERS + c) * each];
}

/* Returns the edge whose pixels a patch that is `d` off has no centre for: the first row
   or column for 1, the last for -1. */
static size_t
edge_of(int d, size_t first)
{
    return first + (d < 0);
}

/* Returns the sum over all positions of an element of a patch and one of the other
   channel. */
static double
patch_sum(const struct pair *p, int tap, int other)
{
    int ay = tap / 3 - 1, ax = tap % 3 - 1, by = other / 3 - 1, bx = other % 3 - 1;
    double sum = (double)p->moved[REACH + by - ay][REACH + bx - ax];
    bool row = ay != 0 && ay == by, column = ax != 0 && ax == bx;
    if (row)
        sum -= (double)p->edges[edge_of(ay, 0)][REACH + bx - ax];
    if (column)
        sum -= (double)p->edges[edge_of(ax, 2)][REACH + by - ay];
    if (row && column)
        sum += (double)p->corners[2 * (ay < 0) + (ax < 0)];
    return sum;
}

static double
patch_mean(const struct qdqi_shifts *s, size_t c, int tap)
{
    int y = tap / 3 - 1, x = tap % 3 - 1;
    double sum = s->means[ALL * s->channels + c];
    if (y)
        sum -= s->means[edge_of(y, 0) * s->channels + c];
    if (x)
        sum -= s->means[edge_of(x, 2) * s->channels + c];
    if (y && x)
        sum += s->means[(N_EDGES + (size_t)(2 * (y < 0) + (x < 0))) * s->channels + c];
    return sum;
}

struct finishing {
    struct qdqi_shifts *s;
    struct qdqi_moment *to;
};

enum { COLUMNS = 32 }; /* channels whose products are added at once */

/* Adds the products of channel a with channels b to end - 1. */
static void
finish_channels(const struct finishing *f, size_t a, size_t b, size_t end)
{
    float products[TAPS][COLUMNS * TAPS];
    size_t n = (end - b) * TAPS;
    for (size_t c = b; c < end; c++) {
        struct pair pair;
        read_pair(f->s, a, c, &pair);
        for (size_t i = 0; i < TAPS; i++)
            for (size_t j = 0; j < TAPS; j++)
                products[i][(c - b) * TAPS + j] =
                    (float)patch_sum(&pair, (int)i, (int)j);
    }
    for (size_t i = 0; i < TAPS; i++) {
        size_t first = a == b ? i : 0; /* those below the diagonal are not kept */
        qdqi_moment_add_products(f->to, a * TAPS + i, b * TAPS + first, n - first,
                                 products[i] + first);
    }
}

/* Adds the products of one channel with itself and those behind it. */
static void
finish_channel(void *arg, size_t a)
{
    const struct finishing *f = arg;
    const struct qdqi_shifts *s = f->s;
    for (size_t i = 0; i < TAPS; i++)
        f->to->sums[a * TAPS + i] += patch_mean(s, a, (int)i);
    for (size_t b = a, end; b < s->channels; b = end) {
        end = s->channels - b < COLUMNS ? s->channels : b + COLUMNS;
        finish_channels(f, a, b, end);
    }
}

void
qdqi_shifts_finish(struct qdqi_shifts *s, struct qdqi_moment *to, qdqi_share_fn *share,
                   void *arg)
{
    struct finishing f = {s, to};
    multiply_images(s, share, arg);
    multiply_edges(s, share, arg);
    share(arg, finish_channel, s->channels, &f);
    to->rows += s->rows;
    s->rows = 0;
    memset(s->sums, 0, n_sums(s->channels) * sizeof *s->sums);
    memset(s->means, 0, N_MEANS * s->channels * sizeof *s->means);
}
