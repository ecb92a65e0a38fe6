/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the kernels in bytes of a 256 MB tensor per second, compared with a copy of as
 * many bytes within the device's memory. A copy reads each byte once and writes it once,
 * as fake quantization does; a histogram in two passes reads it twice; extremes and a
 * histogram in one pass once; error sums read two tensors, of 256 MB together.
 *
 * For small tensors it measures what one call takes of the host's time, and of the
 * device's: most tensors of a model are so small that these decide how long a job takes.
 *
 *     bench/cuda [MODULE]
 */
#include "config.h"

#include "numbers/cuda/device.h"

#include "numbers/arithmetic/moment.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PATTERN = 1 << 20, WARM_UPS = 3, ROUNDS = 15, CALLS = 10, SMALL_CALLS = 200 };
static const size_t BYTES = (size_t)256 << 20;

static struct qdqi_cuda *cuda;
static const struct qdqi_cuda_api *gpu;

static struct {
    uint8_t *in, *out, *workspace;
    float *scales;
    struct qdqi_extremes *extremes;
    struct qdqi_cuda_histogram *histogram;
    struct qdqi_noise *sums;
    struct qdqi_cuda_moment moment;
    struct qdqi_extremes *pinned; /* in the host's memory */
    void *stream, *begin, *end;
} on;

static void
fine(int status)
{
    struct qdq_error err = {0};
    if (qdqi_cuda_check(cuda, status, "bench", &err) == QDQ_OK)
        return;
    fprintf(stderr, "%s\n", err.text);
    exit(EXIT_FAILURE);
}

/* --- data ----------------------------------------------------------------- */

enum kind { NORMAL, RELU, ONE };

static float
value(enum kind kind, uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 6; i++) {
        *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
        sum += (double)(*state >> 32) * 0x1p-32 - 0.5;
    }
    return kind == ONE ? 3 : kind == RELU && sum < 0 ? 0 : (float)sum;
}

/* Fills with a repeating pattern, most of which has left the caches when it repeats. */
static void
fill(int type, enum kind kind)
{
    static float floats[PATTERN];
    static uint16_t halves[PATTERN];
    uint64_t state = 1;
    for (size_t i = 0; i < PATTERN; i++) {
        floats[i] = value(kind, &state);
        halves[i] = qdqi_half_narrowed(floats[i]);
    }
    size_t n = type == QDQI_FLOAT16 ? sizeof halves : sizeof floats;
    const void *from = type == QDQI_FLOAT16 ? (void *)halves : (void *)floats;
    fine(gpu->upload(on.in, from, n, on.stream));
    for (; n < BYTES; n *= 2)
        fine(gpu->copy(on.in + n, on.in, n, on.stream));
    fine(gpu->copy(on.out, on.in, BYTES, on.stream));
    fine(gpu->stream_wait(on.stream));
}

/* --- the work that is measured -------------------------------------------- */

static size_t
elements(int type)
{
    return BYTES / (type == QDQI_FLOAT16 ? 2 : 4);
}

static void
copy(int type)
{
    (void)type;
    fine(gpu->copy(on.out, on.in, BYTES, on.stream));
}

static void
extremes(int type)
{
    fine(gpu->extremes_update(type, on.in, elements(type), on.extremes, on.stream));
}

static void
histogram(int type)
{
    fine(gpu->histogram_update(type, on.in, elements(type), on.histogram, on.stream));
}

static void
histogram_at_once(int type)
{
    fine(gpu->histogram_continue(type, on.in, elements(type), on.histogram, on.stream));
}

static void
fake(int type, enum qdqi_format format, size_t channels, size_t inner)
{
    size_t outer = elements(type) / channels / inner;
    struct qdqi_grid g = {format, outer, channels, inner, on.scales, NULL};
    fine(gpu->fake(type, &g, on.in, on.out, on.stream));
}

static void
int8_tensor(int type)
{
    fake(type, QDQI_TO_INT8, 1, 1);
}

static void
int8_channel(int type)
{
    fake(type, QDQI_TO_INT8, 256, 64);
}

static void
int8_columns(int type)
{
    fake(type, QDQI_TO_INT8, 1024, 1);
}

static void
float8_tensor(int type)
{
    fake(type, QDQI_TO_FLOAT8E4M3FN, 1, 1);
}

static void
sums(int type)
{
    fine(gpu->sums_update(type, on.in, on.in + BYTES / 2, elements(type) / 2, on.sums,
                          on.workspace, on.stream));
}

static const struct row {
    const char *name, *data;
    enum kind kind;
    void (*call)(int type);
} rows[] = {
    {"copy", "normal", NORMAL, copy},
    {"extremes", "normal", NORMAL, extremes},
    {"histogram in two", "normal", NORMAL, histogram},
    {"histogram in two", "half zeros", RELU, histogram},
    {"histogram in two", "all the same", ONE, histogram},
    {"histogram in one pass", "normal", NORMAL, histogram_at_once},
    {"histogram in one pass", "half zeros", RELU, histogram_at_once},
    {"histogram in one pass", "all the same", ONE, histogram_at_once},
    {"int8, per tensor", "normal", NORMAL, int8_tensor},
    {"int8, 256 channels of 64", "normal", NORMAL, int8_channel},
    {"int8, 1024 columns", "normal", NORMAL, int8_columns},
    {"float8e4m3fn, per tensor", "normal", NORMAL, float8_tensor},
    {"error sums", "normal", NORMAL, sums},
};

/* --- measuring ------------------------------------------------------------ */

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the seconds of one call, the median of the rounds. */
static double
measure(const struct row *row, int type)
{
    double seconds[ROUNDS];
    fill(type, row->kind);
    for (int i = 0; i < WARM_UPS; i++)
        row->call(type);
    for (int i = 0; i < ROUNDS; i++) {
        fine(gpu->event_record(on.begin, on.stream));
        for (int k = 0; k < CALLS; k++)
            row->call(type);
        fine(gpu->event_record(on.end, on.stream));
        fine(gpu->event_seconds(on.begin, on.end, &seconds[i]));
    }
    qsort(seconds, ROUNDS, sizeof *seconds, compare);
    return seconds[ROUNDS / 2] / CALLS;
}

/* --- small tensors ---------------------------------------------------------- */

enum {
    CHANNELS = 512,
    SIDE = 7,
    KERNEL = 3,
    WANTED = 31, /* rows of a sample */
};

static void
small_extremes(size_t n)
{
    fine(gpu->extremes_update(QDQI_FLOAT32, on.in, n, on.extremes, on.stream));
}

static void
small_histogram(size_t n)
{
    fine(gpu->histogram_update(QDQI_FLOAT32, on.in, n, on.histogram, on.stream));
}

static void
small_histogram_at_once(size_t n)
{
    fine(gpu->histogram_continue(QDQI_FLOAT32, on.in, n, on.histogram, on.stream));
}

static void
small_int8(size_t n)
{
    struct qdqi_grid g = {QDQI_TO_INT8, 1, 1, n, on.scales, NULL};
    fine(gpu->fake(QDQI_FLOAT32, &g, on.in, on.out, on.stream));
}

/* Copies rows of n samples, as the moments of a convolution need them. */
static void
small_rows(size_t n)
{
    const struct qdqi_cuda_window w = {.axes = 2,
                                       .kernel = {KERNEL, KERNEL},
                                       .out = {SIDE, SIDE},
                                       .stride = {1, 1},
                                       .dilation = {1, 1},
                                       .begin = {1, 1},
                                       .in = {SIDE, SIDE},
                                       .elements = CHANNELS * SIDE * SIDE};
    struct qdqi_cuda_rows rows = {
        .positions = SIDE * SIDE, .wanted = WANTED, .n = n * WANTED, .n_pieces = n};
    for (size_t i = 0; i < n; i++)
        rows.pieces[i] = (struct qdqi_cuda_piece){(const float *)on.in + i * w.elements,
                                                  0, WANTED, 0.5};
    fine(gpu->moment_gather(&w, &on.moment, &rows, on.stream));
}

/* Adds n rows of the moments of a convolution. */
static void
small_products(size_t n)
{
    fine(gpu->moment_add(&on.moment, n, on.stream));
}

/* Reads the extremes as a session does after each run. */
static void
small_read(size_t n)
{
    fine(gpu->histogram_extremes(on.histogram, n, on.pinned, NULL));
    fine(gpu->stream_wait(NULL));
}

static const struct small_row {
    const char *name;
    size_t n;
    void (*call)(size_t n);
} calls[] = {
    {"extremes of 100352 elements", 100352, small_extremes},
    {"extremes of 802816 elements", 802816, small_extremes},
    {"histogram in two passes, 100352", 100352, small_histogram},
    {"histogram in two passes, 802816", 802816, small_histogram},
    {"histogram in one pass, 100352", 100352, small_histogram_at_once},
    {"histogram in one pass, 802816", 802816, small_histogram_at_once},
    {"int8, 100352 elements", 100352, small_int8},
    {"int8, 802816 elements", 802816, small_int8},
    {"31 rows of 4608 elements, 1 sample", 1, small_rows},
    {"31 rows of 4608 elements, 8 samples", 8, small_rows},
    {"products of 256 rows of 4608 elements", QDQI_CUDA_MOMENT_ROWS, small_products},
    {"extremes of 1 histogram, read", 1, small_read},
};

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Measures one call of many in a row, the medians of the rounds: how long it takes until it
   returns, and until the device has done it. */
static void
measure_small(const struct small_row *row, double *ret_host, double *ret_device)
{
    double host[ROUNDS], device[ROUNDS];
    for (int i = 0; i < WARM_UPS; i++)
        row->call(row->n);
    for (int i = 0; i < ROUNDS; i++) {
        fine(gpu->stream_wait(on.stream));
        double began = now();
        fine(gpu->event_record(on.begin, on.stream));
        for (int k = 0; k < SMALL_CALLS; k++)
            row->call(row->n);
        host[i] = now() - began;
        fine(gpu->event_record(on.end, on.stream));
        fine(gpu->event_seconds(on.begin, on.end, &device[i]));
    }
    qsort(host, ROUNDS, sizeof *host, compare);
    qsort(device, ROUNDS, sizeof *device, compare);
    *ret_host = host[ROUNDS / 2] / SMALL_CALLS;
    *ret_device = device[ROUNDS / 2] / SMALL_CALLS;
}

static void
small_table(void)
{
    fill(QDQI_FLOAT32, RELU);
    fine(gpu->histogram_init(on.histogram, 1, on.stream));
    small_histogram(PATTERN);
    printf("| one call | host, us | device, us |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        double host, device;
        measure_small(&calls[i], &host, &device);
        printf("| %s | %.2f | %.2f |\n", calls[i].name, host * 1e6, device * 1e6);
    }
    printf("\n");
}

/* --- all ---------------------------------------------------------------------- */

static void
prepare_moment(void)
{
    struct qdqi_moment host;
    struct qdqi_cuda_moment *m = &on.moment;
    if (!qdqi_moment_init(&host, CHANNELS * KERNEL * KERNEL)) {
        fprintf(stderr, "no memory\n");
        exit(EXIT_FAILURE);
    }
    *m = (struct qdqi_cuda_moment){
        .groups = 1, .k = host.k, .block = host.block, .tile = host.tile};
    m->blocks = (m->k + m->block - 1) / m->block;
    m->tiles = (m->block + m->tile - 1) / m->tile;
    size_t products = qdqi_moment_products(m->k) * sizeof *m->products;
    size_t pending =
        QDQI_CUDA_MOMENT_ROWS * m->blocks * m->tiles * m->tile * sizeof *m->pending;
    fine(gpu->alloc(products, (void **)&m->products));
    fine(gpu->alloc(m->k * sizeof *m->sums, (void **)&m->sums));
    fine(gpu->alloc(sizeof *m->rows, (void **)&m->rows));
    fine(gpu->alloc(pending, (void **)&m->pending));
    fine(gpu->clear(m->products, products, on.stream));
    fine(gpu->clear(m->sums, m->k * sizeof *m->sums, on.stream));
    fine(gpu->clear(m->rows, sizeof *m->rows, on.stream));
    fine(gpu->clear(m->pending, pending, on.stream));
    qdqi_moment_fini(&host);
}

static void
prepare(void)
{
    static float scales[1024];
    for (size_t i = 0; i < 1024; i++)
        scales[i] = 0.01f + (float)i * 1e-5f;
    fine(gpu->alloc(BYTES, (void **)&on.in));
    fine(gpu->alloc(BYTES, (void **)&on.out));
    fine(gpu->alloc(gpu->sums_workspace(), (void **)&on.workspace));
    fine(gpu->alloc(sizeof scales, (void **)&on.scales));
    fine(gpu->alloc(sizeof *on.extremes, (void **)&on.extremes));
    fine(gpu->alloc(sizeof *on.histogram, (void **)&on.histogram));
    fine(gpu->alloc(sizeof *on.sums, (void **)&on.sums));
    fine(gpu->stream_open(&on.stream));
    fine(gpu->event_open(&on.begin));
    fine(gpu->event_open(&on.end));
    fine(gpu->upload(on.scales, scales, sizeof scales, on.stream));
    fine(gpu->extremes_init(on.extremes, 1, on.stream));
    fine(gpu->histogram_init(on.histogram, 1, on.stream));
    fine(gpu->sums_init(on.sums, 1, on.stream));
    fine(gpu->alloc_host(sizeof *on.pinned, (void **)&on.pinned));
    prepare_moment();
    fine(gpu->stream_wait(on.stream));
}

static void
table(int type)
{
    double copying = 0;
    printf("| %s | data | ms | GB/s | of the copy |\n| --- | --- | --- | --- | --- |\n",
           type == QDQI_FLOAT16 ? "float16" : "float32");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double seconds = measure(&rows[i], type);
        copying = i == 0 ? seconds : copying;
        printf("| %s | %s | %.3f | %.0f | %.0f %% |\n", rows[i].name, rows[i].data,
               seconds * 1e3, (double)BYTES / seconds * 1e-9, 100 * copying / seconds);
    }
    printf("\n");
}

int
main(int argc, char **argv)
{
    struct qdq_error err = {0};
    if (qdqi_cuda_open(argc > 1 ? argv[1] : "engine/numbers/cuda/qdq_cuda.so", &cuda,
                       &err) ||
        qdqi_cuda_use(cuda, 0, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    gpu = qdqi_cuda_functions(cuda);
    prepare();
    printf("%s, tensors of %zu MiB\n\n", qdqi_cuda_device(cuda, 0)->name, BYTES >> 20);
    table(QDQI_FLOAT32);
    table(QDQI_FLOAT16);
    small_table();
    return EXIT_SUCCESS;
}
