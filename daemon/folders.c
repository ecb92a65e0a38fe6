/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "folders.h"
#include "tenants/tenants.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bool
folders_each(const char *state,
             bool (*fn)(void *arg, const char *path, const char *tenant,
                        struct api_problem *p),
             void *arg, struct api_problem *p)
{
    char folder[PATH_MAX], path[PATH_MAX + TENANT_SIZE + 1];
    if (snprintf(folder, sizeof folder, "%s/tenants", state) >= (int)sizeof folder)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: too long", state);
    bool ok = fn(arg, state, "", p);
    DIR *stream = ok ? opendir(folder) : NULL;
    if (ok && !stream)
        return errno == ENOENT || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                                  "%s: %s", folder, strerror(errno));
    for (struct dirent *entry; ok && (entry = readdir(stream));) {
        if (!tenant_is_name(entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%.63s", folder, entry->d_name);
        ok = fn(arg, path, entry->d_name, p);
    }
    if (stream)
        closedir(stream);
    return ok;
}
