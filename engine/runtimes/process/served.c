/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/process/served.h"

#include "ground/base/errors.h"
#include "runtimes/process/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum qdq_code
qdqi_served_new(const struct qdq_served_runtime *as,
                const struct qdqi_deploy_ops *linked, struct qdqi_served **ret,
                struct qdq_error *err)
{
    const char *title = as->title ? as->title : linked ? linked->row->title : as->name;
    struct qdqi_served *s = calloc(1, sizeof *s);
    if (!s || !(s->name = strdup(as->name)) || !(s->title = strdup(title))) {
        qdqi_served_free(&s);
        return qdqi_no_memory(err);
    }
    s->connect = as->connect;
    s->arg = as->arg;
    s->row = (struct qdq_runtime_row){.name = s->name,
                                      .title = s->title,
                                      .library = "",
                                      .installed = "",
                                      .own_process = true};
    s->ops = qdqi_remote_ops(&s->row, linked);
    *ret = s;
    return QDQ_OK;
}

/* Reaches a process, which takes the place of one that has ended. */
static void
reach(struct qdqi_served *s)
{
    struct qdq_error *why = &s->no_remote;
    char text[256] = "";
    const bool again = s->remote != NULL;
    int fd = s->connect(s->arg, again, text, sizeof text);
    if (fd >= 0 && again)
        snprintf(s->crashed, sizeof s->crashed, "%.*s", (int)sizeof s->crashed - 1,
                 text);
    if (fd < 0)
        qdq_error_set(why, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL, "%s", text);
    else if (again)
        (void)!qdqi_remote_renew(s->remote, fd, why);
    else
        (void)!qdqi_remote_open(fd, s->name, &s->remote, why);
}

enum qdq_code
qdqi_served_reach(struct qdqi_served *s, struct qdqi_deploy *ret, struct qdq_error *err)
{
    struct qdq_error *why = &s->no_remote;
    const bool gone = s->remote && qdqi_remote_is_gone(s->remote);
    if (gone && s->renewed && !why->code)
        qdq_error_set(why, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                      "the process that judges %s, and the one in its place ended, too",
                      *s->crashed ? s->crashed : "ended");
    if ((gone || !s->remote) && !why->code)
        reach(s);
    s->renewed = s->renewed || gone;
    *ret = (struct qdqi_deploy){&s->ops, s->remote};
    return qdqi_error_copy(why, err);
}

void
qdqi_served_release(struct qdqi_served *s)
{
    qdqi_remote_close(&s->remote);
    s->no_remote = (struct qdq_error){0};
    s->renewed = false;
    *s->crashed = '\0';
}

void
qdqi_served_free(struct qdqi_served **served)
{
    struct qdqi_served *s = *served;
    if (!s)
        return;
    qdqi_served_release(s);
    free(s->name);
    free(s->title);
    free(s);
    *served = NULL;
}
