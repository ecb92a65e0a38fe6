/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the files of an archive, as archives of images and of samples read them. */
#ifndef QDQI_FILES_DATA_MEMBER_NAMES_H
#define QDQI_FILES_DATA_MEMBER_NAMES_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static inline const char *
qdqi_base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Returns whether the name has something before that ending, in letters of either case. */
static inline bool
qdqi_ends_in(const char *name, const char *ending)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n > m && strcasecmp(name + n - m, ending) == 0;
}

/* Hidden files are none of the user's: some systems put one beside each. */
static inline bool
qdqi_is_hidden(const char *name)
{
    return *qdqi_base_of(name) == '.' || strncmp(name, "__MACOSX/", 9) == 0;
}

#endif
