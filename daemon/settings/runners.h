/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's runners: sections [runner NAME], in a set with the remotes (remotes.h). */
#ifndef QDQD_SETTINGS_RUNNERS_H
#define QDQD_SETTINGS_RUNNERS_H

#include "settings/remotes.h"
#include "api/digest.h"

struct runner_section {
    struct section section;
#define RUNNER_TEXT(key, def, text) char *key;
#define RUNNER_CHOICE(key, def, choices, text) char *key;
#define RUNNER_NUMBER(key, def, min, max, unit, text) _Atomic int64_t key;
#include "settings/runner_keys.h"
#undef RUNNER_TEXT
#undef RUNNER_CHOICE
#undef RUNNER_NUMBER
};

enum { RUNNER_LIST = 1024 };

/* The rows of the keys, for the table of named sections. */
enum {
#define RUNNER_TEXT(key, def, text) RUNNER_ROW_##key,
#define RUNNER_CHOICE(key, def, choices, text) RUNNER_ROW_##key,
#define RUNNER_NUMBER(key, def, min, max, unit, text) RUNNER_ROW_##key,
#include "settings/runner_keys.h"
#undef RUNNER_TEXT
#undef RUNNER_CHOICE
#undef RUNNER_NUMBER
    N_RUNNER_ROWS
};
extern const struct setting_row runner_rows[N_RUNNER_ROWS];

/* Checks a section, and that no other one is for the same targets. */
bool runner_section_check(const struct remotes *set,
                          const struct runner_section *section,
                          char error[SETTINGS_ERROR]);
/* Checks that no runner can read the daemon's store. */
bool runners_check_store(const struct remotes *set, const struct settings *settings,
                         char error[SETTINGS_ERROR]);

/* Returns the section for results that the runtime of that name judges, or NULL. */
const struct runner_section *runners_find(const struct remotes *set,
                                          const char *runtime);
/* Writes the names of the runtimes that have runners, with commas between. */
void runners_list(const struct remotes *set, char ret[RUNNER_LIST]);
/* Writes a digest of all sections and of the identity of the programs' files, for the question
   whether a result would be the same today; "" where there is no runner. False when out of memory. */
bool runners_digest(const struct remotes *set, const struct settings *settings,
                    char ret[DIGEST_SIZE]);
/* Encodes a section for the process that will start the program (judges/runner.h); the caller
   frees it. NULL when out of memory. */
char *runner_section_encode(const struct runner_section *section,
                            const struct settings *settings);

#endif
