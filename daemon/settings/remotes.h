/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's remotes, hooks and runners: sections [remote NAME] and [hook NAME] of the
 * configuration file and of the files in its folder remotes.d, and [runner NAME] (runners.h) of the
 * file and of the folder runners.d. A set of them never changes. SIGHUP makes a new one,
 * and the old one lives until its last user has released it.
 */
#ifndef QDQD_SETTINGS_REMOTES_H
#define QDQD_SETTINGS_REMOTES_H

#include "settings/sections.h"

#include <stdatomic.h>

#define REMOTE_KINDS 64
#define REMOTE_HOST 256 /* bytes of a host with its port */

struct remote {
    struct section section;
#define REMOTE_TEXT(key, def, kinds, text) char *key;
#define REMOTE_CHOICE(key, def, choices, kinds, text) char *key;
#define REMOTE_NUMBER(key, def, min, max, unit, kinds, text) _Atomic int64_t key;
#include "settings/remote_keys.h"
#undef REMOTE_TEXT
#undef REMOTE_CHOICE
#undef REMOTE_NUMBER
};

/* The operator's rule for messages and new versions of a remote. */
struct hook {
    struct section section;
#define HOOK_TEXT(key, def, text) char *key;
#define HOOK_CHOICE(key, def, choices, text) char *key;
#define HOOK_NUMBER(key, def, min, max, unit, text) _Atomic int64_t key;
#include "settings/hook_keys.h"
#undef HOOK_TEXT
#undef HOOK_CHOICE
#undef HOOK_NUMBER
};

struct remotes {
    struct sections sections;
    atomic_int users;
};

/* The kinds of sections, for the reader of files and for the printer of the manual. */
enum { REMOTE_SECTION, HOOK_SECTION, RUNNER_SECTION, N_NAMED_SECTIONS };
extern const struct section_kind named_sections[N_NAMED_SECTIONS];

/* Makes an empty set, which the caller fills by settings_file_read(), before it is
   shared, and releases. NULL when out of memory. */
struct remotes *remotes_new(void);
/* Adds the files *.conf of the folders remotes.d and runners.d below `above`, in the order of their
   names. A folder that does not exist has none. Then checks all sections, with the files that they
   name. */
bool remotes_finish(struct remotes *remotes, const char *above,
                    char error[SETTINGS_ERROR]);
struct remotes *remotes_hold(struct remotes *remotes);
void remotes_release(struct remotes **remotes);

/* Returns the first remote, or the one behind another; NULL: there is none. */
const struct remote *remotes_first(const struct remotes *remotes);
const struct remote *remotes_next(const struct remote *remote);
const struct remote *remotes_find(const struct remotes *remotes, const char *name);
/* Do the same with hooks. */
const struct hook *hooks_first(const struct remotes *remotes);
const struct hook *hooks_next(const struct hook *hook);
const struct hook *hooks_find(const struct remotes *remotes, const char *name);
/* Writes the host and the port of the remote's URL, for the log: clients see only its name. */
void remote_host(const struct remote *remote, char ret[REMOTE_HOST]);
/* Returns whether a list of tenants, with commas between, has the tenant; - stands for the one without a
   name, and * for all. */
bool tenant_is_listed(const char *list, const char *tenant);
/* Returns whether a token of a tenant ("": the one without a name) may use the remote.
   `scopes` are the token's, with commas between. */
bool remote_allows(const struct remote *remote, const char *tenant, const char *scopes);

#define MOST_WEBHOOKS 64 /* remotes of kind webhook that are told of jobs */

/* The texts of a webhook in the form that events are matched with: the events with commas
   between and around, and the two parts of its label ("": any). */
struct webhook_texts {
    char events[128], key[256], value[256];
};
void webhook_split(const struct remote *remote, struct webhook_texts *ret);

/* Returns whether a key (a row of its kind) is for this section. */
bool named_section_has(const struct section *section, size_t row);
/* Writes the kinds of remotes that a key is for, with commas between; "": all. */
void named_key_kinds(const struct section_kind *kind, size_t row,
                     char ret[REMOTE_KINDS]);
/* Prints the values that apply and the places of the sections, a line each
   (settings/print.c). Secrets stand in files of their own and are not printed. */
void remotes_print(const struct remotes *remotes, FILE *out);

#endif
