/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "adopt.h"
#include "library/library.h"
#include "tenants/tenants.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool
adopt_tenant(const char *folder, const char *name, uint64_t *ret_n,
             struct api_problem *p)
{
    char path[PATH_MAX];
    uint64_t n = 0;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: too long", folder);
    bool ok = library_adopt(path, &n, p);
    *ret_n += n;
    return ok;
}

bool
adopt_state(const char *state, uint64_t *ret_n, struct api_problem *p)
{
    char folder[PATH_MAX];
    *ret_n = 0;
    if (snprintf(folder, sizeof folder, "%s/tenants", state) >= (int)sizeof folder)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: too long", state);
    bool ok = library_adopt(state, ret_n, p);
    DIR *stream = ok ? opendir(folder) : NULL;
    if (ok && !stream)
        return errno == ENOENT || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                                  "%s: %s", folder, strerror(errno));
    for (struct dirent *entry; ok && (entry = readdir(stream));)
        ok = !tenant_is_name(entry->d_name) ||
             adopt_tenant(folder, entry->d_name, ret_n, p);
    if (stream)
        closedir(stream);
    return ok;
}
