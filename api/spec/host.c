/* SPDX-License-Identifier: Apache-2.0 */
/* The members host and version: the class of processors, and the release of the target's engine,
   that the model is made for. */
#include "config.h"
#include "qdq/targets.h"
#include "spec/members.h"

#include <stdio.h>
#include <string.h>

/* Returns the name of value i: the classes in the order of their enum, then "auto". */
const char *
api_host_name(size_t i)
{
    return i == QDQ_N_HOSTS ? "auto" : qdq_host_name(i);
}

bool
api_decode_host(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &d->to->spec;
    if (!api_decode_choice(d, m, value))
        return false;
    if (spec->host == QDQ_N_HOSTS)
        spec->host = QDQ_HOST_AUTO;
    return true;
}

bool
api_check_version(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    return spec->version == QDQ_VERSION_UNSTATED || spec->target->has_versions ||
           api_refuse(d, API_UNSUPPORTED, "/version",
                      "the target %s has no versions: leave the member out",
                      spec->target->name);
}

/* Refuses a processor for a target that computes on an accelerator, and the other way round. */
bool
api_check_host(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    const struct qdq_target *target = spec->target;
    const bool is_other = qdq_host_is_accelerator(spec->host) != (target->host != NULL);
    char list[64] = "";
    if (spec->host < 0 || !is_other)
        return true;
    for (size_t i = 0; i < QDQ_N_HOSTS; i++)
        if (qdq_host_is_accelerator((enum qdq_host)i) == (target->host != NULL))
            snprintf(list + strlen(list), sizeof list - strlen(list), ", %s",
                     qdq_host_name(i));
    return api_refuse(d, API_INVALID_SPEC, "/host",
                      "the target %s has the hosts auto%s, and not %s", target->name,
                      list, qdq_host_name((size_t)spec->host));
}

/* Returns whether the spec asks for the automatic state of a rule. */
static bool
leaves_rule(const json_t *rules)
{
    const char *id;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)rules, id, value)
        if (json_is_string(value))
            return true;
    return false;
}

/*
 * A frozen spec of version 0.1 has a `calibration.source` and no `host`. It gives the
 * bytes that it gave then: it stays without a host, and rules that depend on one are
 * off unless it switches them on.
 */
void
api_settle_host(struct decoder *d)
{
    struct qdq_spec *spec = &d->to->spec;
    const json_t *root = d->to->root;
    if (!spec->calibration.source || json_object_get(root, "host") ||
        leaves_rule(json_object_get(root, "rules")))
        return;
    spec->host = QDQ_HOST_UNSTATED;
    if (!json_object_get(root, "recipe"))
        spec->recipe = QDQ_RECIPE_UNSTATED;
}
