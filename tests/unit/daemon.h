/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the daemon's unit programs: a scratch folder that exists during one
   test. */
#ifndef TESTS_UNIT_DAEMON_H
#define TESTS_UNIT_DAEMON_H

#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[64];

static inline void
scratch_make(void)
{
    unit_make_folder(scratch, sizeof scratch);
}

static inline int
scratch_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void
scratch_remove(void)
{
    nftw(scratch, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Returns the path of a file in the folder, in a static buffer. */
static inline const char *
scratch_path(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

static inline void
scratch_write(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Counts the files directly in a folder below the scratch folder. */
static inline int
scratch_count(const char *name)
{
    int n = 0;
    DIR *dir = opendir(scratch_path(name));
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

#endif
