/* SPDX-License-Identifier: Apache-2.0 */
/* The text that identifies observations: the members of a spec that decide what is fed or
   seen. */
#include "config.h"
#include "qdq/quantize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a name with its length, because it may contain any characters. */
static void
say_name(FILE *to, const char *what, const char *name)
{
    fprintf(to, "%s %zu:%s", what, name ? strlen(name) : 0, name ? name : "");
}

/* Prints the bits of a number, which do not depend on the locale. */
static void
say_real(FILE *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    fprintf(to, " %016" PRIx64, bits);
}

static void
say_all(FILE *to, const char *what, const double *values, size_t n)
{
    fprintf(to, " %s", what);
    for (size_t i = 0; i < n; i++)
        say_real(to, values[i]);
}

/* Prints what the spec does with images, where it says anything about them. */
static void
say_images(FILE *to, const struct qdq_preprocess *row)
{
    if (row->n_size > 0 || row->crop[0] > 0 || row->channels || row->resize)
        fprintf(to,
                " channels %d resize %d size %zu %" PRId64 " %" PRId64 " crop %" PRId64
                " %" PRId64,
                (int)row->channels, (int)row->resize, row->n_size, row->size[0],
                row->size[1], row->crop[0], row->crop[1]);
}

/* A spec without `preprocess` prints nothing, as it did before there was one. */
static void
say_preprocess(FILE *to, const struct qdq_spec *spec)
{
    for (size_t i = 0; i < spec->n_preprocess; i++) {
        const struct qdq_preprocess *row = &spec->preprocess[i];
        say_name(to, "preprocess", row->input);
        fprintf(to, " layout %d", row->channels_last);
        say_real(to, row->scale);
        say_all(to, "mean", row->mean, row->n_mean);
        say_all(to, "std", row->std, row->n_std);
        say_images(to, row);
        fputc('\n', to);
    }
}

char *
qdq_observations_identity(const struct qdq_spec *spec, const char *model_id,
                          const char *dataset_id)
{
    const struct qdq_calibration_spec *c = &spec->calibration;
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fprintf(to, "engine %s\ndevice %s\n", qdq_version(),
            spec->device == QDQ_DEVICE_CUDA ? "cuda" : "cpu");
    say_name(to, "model", model_id);
    say_name(to, "\ndata", dataset_id);
    fprintf(to,
            "\nexisting_qdq %d\nequalize %d\nmax_samples %" PRId64 "\nbatch %" PRId64
            "\non_nonfinite %d\n",
            (int)spec->existing_qdq, spec->equalize, c->max_samples, c->batch,
            (int)c->on_nonfinite);
    if (spec->smooth > 0) {
        fputs("smooth", to);
        say_real(to, spec->smooth);
        fputs(spec->smooth_insert ? " insert\n" : "\n", to);
    }
    for (size_t i = 0; i < c->n_dims; i++) {
        say_name(to, "dim", c->dims[i].symbol);
        fprintf(to, " %" PRId64 "\n", c->dims[i].size);
    }
    fprintf(to, "random_samples %" PRId64 "\n", c->random_samples);
    for (size_t i = 0; i < c->n_random && c->random_samples > 0; i++) {
        say_name(to, "random", c->random[i].input);
        say_real(to, c->random[i].low);
        say_real(to, c->random[i].high);
        fputc('\n', to);
    }
    say_preprocess(to, spec);
    bool bad = ferror(to);
    if (fclose(to) || bad) {
        free(text);
        return NULL;
    }
    return text;
}
