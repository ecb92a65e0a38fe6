/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a report as metrics of a run. */
#include "config.h"
#include "remote/remote.h"
#include "api/grow.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME 250 /* most characters that MLflow takes */

struct qdqr_metrics {
    struct qdqr_metric *list;
    size_t n;
};

static bool
add_metric(struct qdqr_metrics *metrics, const char *name, double value)
{
    struct qdqr_metric *list = api_grow(metrics->list, metrics->n, 1, sizeof *list);
    if (!list)
        return false;
    metrics->list = list;
    list[metrics->n] = (struct qdqr_metric){strdup(name), value};
    if (!list[metrics->n].name)
        return false;
    metrics->n++;
    return true;
}

/* Writes "FIGURE" or, for one of several outputs, "FIGURE_OUTPUT", with a '_' for each
   character that MLflow does not take. */
static void
make_name(char ret[NAME + 1], const char *figure, const char *output)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-./ ";
    snprintf(ret, NAME + 1, "%s%s%s", figure, *output ? "_" : "", output);
    for (char *c = ret; *c; c++)
        if (!strchr(letters, *c))
            *c = '_';
}

/* Adds the figures of the outputs. Figures that are null, such as that of an error of zero,
   are left out. */
static bool
add_outputs(struct qdqr_metrics *metrics, const json_t *outputs)
{
    static const char *const figures[] = {"sqnr_db", "cosine", "top1_agreement"};
    bool is_alone = json_array_size(outputs) == 1, ok = true;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const char *own = json_string_value(json_object_get(output, "name"));
        for (size_t k = 0; ok && k < sizeof figures / sizeof *figures; k++) {
            const json_t *value = json_object_get(output, figures[k]);
            char name[NAME + 1];
            make_name(name, figures[k], is_alone || !own ? "" : own);
            ok = !json_is_number(value) ||
                 add_metric(metrics, name, json_number_value(value));
        }
    }
    return ok;
}

bool
qdqr_metrics_of_report(const char *report, size_t len, struct qdqr_metric **ret,
                       size_t *ret_n, struct api_problem *problem)
{
    struct qdqr_metrics metrics = {0};
    json_t *json = json_loadb(report, len, 0, NULL);
    const json_t *evaluation = json_object_get(json, "evaluation");
    const json_t *summary = json_object_get(json, "summary");
    const json_t *deployed = json_object_get(evaluation, "deployed");
    const json_t *outputs =
        json_object_get(json_is_object(deployed) ? deployed : evaluation, "outputs");
    double before = json_number_value(json_object_get(summary, "size_before"));
    double after = json_number_value(json_object_get(summary, "size_after"));
    bool ok = add_outputs(&metrics, outputs) &&
              (!(before > 0) || add_metric(&metrics, "size_ratio", after / before));
    json_decref(json);
    if (ok) {
        *ret = metrics.list;
        *ret_n = metrics.n;
        return true;
    }
    qdqr_metrics_free(metrics.list, metrics.n);
    return api_problem_no_memory(problem);
}

void
qdqr_metrics_free(struct qdqr_metric *metrics, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)metrics[i].name);
    free(metrics);
}
