/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/tensorrt/tensorrt.h"

#include "plan/cases/case.h"

#include <stdio.h>
#include <string.h>

#define RESIDUAL_CASE "residual"

enum qdq_code
qdqi_residual_run(struct planner *p, const char *pointer, struct qdq_error *err)
{
    const struct qdq_case_use residual = {.name = RESIDUAL_CASE};
    size_t n = 0;
    return qdqi_run_case(p, &residual, pointer, &n, err);
}

/* Returns whether there is an Add or Sum about which only its class, or nothing,
   decides. */
static bool
has_open_adds(const struct planner *p)
{
    for (size_t i = 0; i < p->n_layers; i++)
        if (p->selection.choices[p->layers[i].node].rank < QDQI_BY_CASE &&
            (strcmp(p->layers[i].op, "Add") == 0 ||
             strcmp(p->layers[i].op, "Sum") == 0))
            return true;
    return false;
}

/* Returns whether the entry leaves an input of the layer without a pair, which shows
   that the layer is a residual connection. */
static bool
leaves_one_free(const struct planner *p, const struct qdqi_node *node,
                const struct qdq_layer_entry *entry)
{
    for (int i = 0; (size_t)i < node->proto->n_input; i++)
        if (qdqi_layer_input(p->graph, node, i) == QDQI_INPUT_DATA &&
            !qdqi_is_indexed(entry, i))
            return true;
    return false;
}

/* Counts the residual connections about which neither a case nor a name decides, and
   stores the name of the first. */
static enum qdq_code
count_open(struct planner *p, size_t *ret_n, const char **ret_first,
           struct qdq_error *err)
{
    const struct qdq_case_use residual = {.name = RESIDUAL_CASE};
    struct qdq_layer_entry *entries;
    size_t n_entries;
    const struct qdqi_script_host host = {
        .layers = p->graph, .spec = p->spec, .arena = p->plan->arena};
    enum qdq_code code =
        qdqi_case_run(&host, &residual, "", NULL, &entries, &n_entries, err);
    for (size_t i = 0; !code && i < n_entries; i++) {
        const struct qdqi_node *node = qdqi_layer_find(p->graph, entries[i].names[0]);
        size_t index = node ? qdqi_layer_index(p->graph, node) : 0;
        if (!node || p->selection.choices[index].rank >= QDQI_BY_CASE ||
            !leaves_one_free(p, node, &entries[i]))
            continue;
        *ret_first = (*ret_n)++ ? *ret_first : node->name;
    }
    return code;
}

enum qdq_code
qdqi_residual_warn(struct planner *p, const char *rule, struct qdq_error *err)
{
    const char *first = NULL;
    size_t n = 0;
    enum qdq_code code = has_open_adds(p) ? count_open(p, &n, &first, err) : QDQ_OK;
    if (code || !n)
        return code;
    char who[64] = "this residual connection is";
    if (n > 1)
        snprintf(who, sizeof who, "%zu residual connections, this one first, are", n);
    code =
        qdqi_warn(&p->warnings, p->plan->arena, err, "residual_without_case", first,
                  "%s planned without a case: \"cases\": [\"" RESIDUAL_CASE "\"] lets "
                  "one branch stay raw, so that the Add is fused with the layer that "
                  "makes it",
                  who);
    if (!code)
        p->warnings.rows[p->warnings.n - 1].rule = rule;
    return code;
}
