/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "migrate_record.h"
#include "folders.h"
#include "library/folder/state_folder.h"
#include "store/postgres/offline.h"
#include "tenants/token_rows.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

struct migration {
    struct transfer *transfer;
    struct migrated_record *done;
    int state; /* the state folder, which stays locked */
};

static bool
copy_folder(void *arg, const char *path, const char *tenant, struct api_problem *p)
{
    struct migration *migration = arg;
    char database[PATH_MAX];
    int dir = -1;
    if (snprintf(database, sizeof database, "%s/" FOLDER_DATABASE, path) >=
        (int)sizeof database)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: too long", path);
    if (access(database, F_OK) != 0)
        return *tenant || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                          "%s: there is no record", database);
    bool ok = folder_open(path, &dir, p) &&
              transfer_record(migration->transfer, database, tenant,
                              &migration->done->rows, p);
    migration->done->tenants += ok;
    if (!*tenant)
        migration->state = dir;
    else if (dir >= 0)
        close(dir);
    return ok;
}

bool
migrate_record(const struct settings *settings, const char *url,
               struct migrated_record *ret, struct api_problem *p)
{
    struct migration migration = {.done = ret, .state = -1};
    char tokens[TOKEN_PATH];
    *ret = (struct migrated_record){0};
    bool ok = tokens_path(settings, tokens, p) &&
              transfer_open(url, &migration.transfer, p) &&
              folders_each(settings->state_dir, copy_folder, &migration, p) &&
              token_rows_transfer(migration.transfer, tokens, &ret->tokens, p) &&
              transfer_commit(migration.transfer, p);
    transfer_close(&migration.transfer);
    if (migration.state >= 0)
        close(migration.state);
    return ok;
}
