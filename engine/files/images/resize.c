/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/images/picture.h"

#include "ground/base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bits behind the point of a weight: sums of 8-bit pixels with weights that add up to about 1
   stay in 32 bits. */
enum { WEIGHT_BITS = 32 - 8 - 2 };

struct filter {
    double reach; /* the filter is 0 beyond */
    double (*at)(double x);
};

static double
bilinear(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double
bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* The pixels that become one, and their weights. */
struct window {
    size_t first, n;
    int32_t *weights;
};

/* The windows of all pixels along one axis. */
struct windows {
    struct window *of;
    int32_t *weights;
    double *exact; /* the weights of one window before they are rounded */
};

static void
free_windows(struct windows *w)
{
    free(w->of);
    free(w->weights);
    free(w->exact);
}

static void
weigh(struct window *window, double *exact, const struct filter *filter, double middle,
      double wider)
{
    const double narrower = 1.0 / wider;
    double sum = 0;
    for (size_t i = 0; i < window->n; i++) {
        exact[i] = filter->at(((double)(i + window->first) - middle + 0.5) * narrower);
        sum += exact[i];
    }
    for (size_t i = 0; i < window->n; i++) {
        if (sum != 0)
            exact[i] /= sum;
        const double scaled = exact[i] * (1 << WEIGHT_BITS);
        window->weights[i] = (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    }
}

static enum qdq_code
find_windows(size_t from, size_t to, const struct filter *filter, struct windows *ret,
             struct qdq_error *err)
{
    const double scale = (double)from / (double)to;
    const double wider = scale < 1 ? 1 : scale, reach = filter->reach * wider;
    const size_t most = (size_t)ceil(reach) * 2 + 1;
    *ret = (struct windows){calloc(to, sizeof *ret->of),
                            calloc(to * most, sizeof *ret->weights),
                            calloc(most, sizeof *ret->exact)};
    if (!ret->of || !ret->weights || !ret->exact)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < to; i++) {
        const double middle = ((double)i + 0.5) * scale;
        const double low = middle - reach + 0.5, high = middle + reach + 0.5;
        const size_t first = low < 0 ? 0 : (size_t)low;
        const size_t end = high > (double)from ? from : (size_t)high;
        ret->of[i] = (struct window){first, end - first, ret->weights + i * most};
        weigh(&ret->of[i], ret->exact, filter, middle, wider);
    }
    return QDQ_OK;
}

/* Sums n pixels that lie `step` bytes apart. */
static unsigned char
sum_of(const struct window *window, const unsigned char *p, size_t step)
{
    int32_t sum = 1 << (WEIGHT_BITS - 1);
    for (size_t i = 0; i < window->n; i++)
        sum += p[i * step] * window->weights[i];
    sum >>= WEIGHT_BITS;
    return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void
sum_rows(const struct qdqi_picture *from, const struct windows *w,
         const struct qdqi_picture *to)
{
    const size_t c = from->channels;
    unsigned char *t = to->pixels;
    for (size_t y = 0; y < to->height; y++)
        for (size_t x = 0; x < to->width; x++)
            for (size_t k = 0; k < c; k++)
                *t++ = sum_of(&w->of[x],
                              from->pixels + (y * from->width + w->of[x].first) * c + k,
                              c);
}

static void
sum_columns(const struct qdqi_picture *from, const struct windows *w,
            const struct qdqi_picture *to)
{
    const size_t row = from->width * from->channels;
    unsigned char *t = to->pixels;
    for (size_t y = 0; y < to->height; y++)
        for (size_t x = 0; x < row; x++)
            *t++ = sum_of(&w->of[y], from->pixels + w->of[y].first * row + x, row);
}

/* Resizes along one axis; with the size that is there it copies. */
static enum qdq_code
resize_axis(const struct qdqi_picture *from, size_t size, bool rows,
            const struct filter *filter, struct qdqi_picture *ret,
            struct qdq_error *err)
{
    const size_t there = rows ? from->width : from->height;
    struct windows windows = {0};
    enum qdq_code code =
        qdqi_picture_new(rows ? size : from->width, rows ? from->height : size,
                         from->channels, ret, err);
    if (code)
        return code;
    if (there == size) {
        memcpy(ret->pixels, from->pixels, from->width * from->height * from->channels);
        return QDQ_OK;
    }
    code = find_windows(there, size, filter, &windows, err);
    if (!code)
        (rows ? sum_rows : sum_columns)(from, &windows, ret);
    else
        qdqi_picture_free(ret);
    free_windows(&windows);
    return code;
}

/* Fills in which pixel each of `to` is. Positions are added up, as Pillow does it: their
   rounding is a part of the result. */
static void
find_nearest(size_t from, size_t to, size_t *ret)
{
    const double step = (double)from / (double)to;
    double at = step * 0.5;
    for (size_t i = 0; i < to; i++, at += step)
        ret[i] = (size_t)at < from ? (size_t)at : from - 1;
}

static enum qdq_code
take_nearest(const struct qdqi_picture *from, size_t width, size_t height,
             struct qdqi_picture *ret, struct qdq_error *err)
{
    const size_t c = from->channels;
    size_t *xs = calloc(width, sizeof *xs), *ys = calloc(height, sizeof *ys);
    enum qdq_code code = qdqi_picture_new(width, height, c, ret, err);
    if (!code && (!xs || !ys)) {
        qdqi_picture_free(ret);
        code = qdqi_no_memory(err);
    }
    if (!code) {
        find_nearest(from->width, width, xs);
        find_nearest(from->height, height, ys);
        for (size_t y = 0; y < height; y++)
            for (size_t x = 0; x < width; x++)
                memcpy(ret->pixels + (y * width + x) * c,
                       from->pixels + (ys[y] * from->width + xs[x]) * c, c);
    }
    free(xs);
    free(ys);
    return code;
}

/* Returns whether columns come before rows: where the height loses more than twice the pixels
   that the width loses, as in Pillow from version 13 on. */
static bool
goes_down_first(const struct qdqi_picture *from, size_t width, size_t height)
{
    return height < from->height && (int64_t)from->height - (int64_t)height >
                                        2 * ((int64_t)from->width - (int64_t)width);
}

enum qdq_code
qdqi_picture_resize(const struct qdqi_picture *from, size_t width, size_t height,
                    enum qdq_resize how, struct qdqi_picture *ret,
                    struct qdq_error *err)
{
    const struct filter filter = how == QDQ_RESIZE_BICUBIC
                                     ? (struct filter){2, bicubic}
                                     : (struct filter){1, bilinear};
    const bool rows_first = !goes_down_first(from, width, height);
    struct qdqi_picture half;
    if (how == QDQ_RESIZE_NEAREST)
        return take_nearest(from, width, height, ret, err);
    enum qdq_code code =
        resize_axis(from, rows_first ? width : height, rows_first, &filter, &half, err);
    if (code)
        return code;
    code =
        resize_axis(&half, rows_first ? height : width, !rows_first, &filter, ret, err);
    qdqi_picture_free(&half);
    return code;
}
