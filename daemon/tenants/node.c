/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tenants/node.h"
#include "base/clock.h"
#include "jobs/job.h"
#include "library/library.h"
#include "settings/settings.h"
#include "store/nodes.h"
#include "tenants/service.h"
#include "tenants/tenants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define HOST_SIZE 48

/* Written by node_begin() alone. */
static struct {
    char id[API_NODE_ID];
    int64_t begun; /* steady clock, in ms */
} self;

bool
node_begin(struct api_problem *p)
{
    char host[HOST_SIZE] = "";
    uint32_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                               "the number of this daemon: %s", strerror(errno));
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "node");
    snprintf(self.id, sizeof self.id, "%s-%08x", host, (unsigned)number);
    self.begun = clock_steady_ms();
    return true;
}

const char *
node_id(void)
{
    return self.id;
}

static void
count_running(void *arg, const struct service *service)
{
    int64_t *running = arg;
    *running += jobs_count_running(service->jobs);
}

static bool
describe(struct tenants *tenants, struct api_node *ret, struct store **ret_store,
         struct api_problem *p)
{
    const struct service *service;
    if (!tenants_get(tenants, "", false, &service, p))
        return false;
    *ret_store = library_store(service->library);
    *ret = (struct api_node){.lanes = service->settings->workers_count,
                             .seen_at = clock_wall_ms()};
    ret->started_at = ret->seen_at - (clock_steady_ms() - self.begun);
    snprintf(ret->id, sizeof ret->id, "%s", self.id);
    snprintf(ret->version, sizeof ret->version, "%s", PACKAGE_VERSION);
    tenants_each(tenants, count_running, &ret->running);
    return true;
}

bool
node_renew(struct tenants *tenants, int64_t keep_ms, struct api_problem *p)
{
    struct api_node node;
    struct store *store;
    return describe(tenants, &node, &store, p) &&
           (!store_is_shared(store) ||
            store_node_seen(store, &node, clock_steady_ms() - self.begun, keep_ms, p));
}

bool
node_leave(struct tenants *tenants, struct api_problem *p)
{
    struct api_node node;
    struct store *store;
    return describe(tenants, &node, &store, p) &&
           (!store_is_shared(store) || store_node_gone(store, self.id, p));
}

bool
node_list(struct tenants *tenants, struct api_node **ret, size_t *ret_n,
          struct api_problem *p)
{
    struct api_node node;
    struct store *store;
    if (!describe(tenants, &node, &store, p))
        return false;
    if (store_is_shared(store))
        return store_nodes(store, ret, ret_n, p);
    if (!(*ret = malloc(sizeof **ret)))
        return api_problem_no_memory(p);
    **ret = node;
    *ret_n = 1;
    return true;
}
