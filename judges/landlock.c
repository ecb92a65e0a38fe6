/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "judges/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Constants of linux/landlock.h, which Debian 12 has from an older kernel. The system call
 * numbers are the same on every architecture.
 */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, ASK_VERSION = 1 };
enum { RULE_PATH_BENEATH = 1 };
enum { BIND_TCP = 1 << 0, CONNECT_TCP = 1 << 1 };

/* Rights that a rule about a file, and not about a folder, can have. */
enum {
    FILE_RIGHTS =
        WALL_EXECUTE | WALL_WRITE_FILE | WALL_READ_FILE | WALL_TRUNCATE | WALL_IOCTL_DEV
};

/* Access rights by the version of the interface that introduced them. */
static const struct {
    int since;
    uint64_t mask; /* access rights that this version knows */
} file_rights[] = {
    {5, 0xffff}, /* ioctl on devices */
    {3, 0x7fff}, /* truncate */
    {2, 0x3fff}, /* move between folders */
    {1, 0x1fff},
};

struct ruleset {
    uint64_t files, net, scope;
};

struct path_rule {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

static bool
fail(char lacking[WALL_TEXT], const char *what)
{
    snprintf(lacking, WALL_TEXT, "%.100s: %s", what, strerror(errno));
    return false;
}

/* Allows access below a path. A folder of the process in procfs stays open until the process ends: the
   rule is bound to the folder's inode, and procfs makes another one as soon as nothing holds
   the folder. */
static bool
allow_path(int ruleset, const char *path, uint64_t rights)
{
    struct path_rule rule = {rights, open(path, O_PATH | O_CLOEXEC)};
    struct stat st;
    if (rule.folder < 0)
        return errno == ENOENT || errno == ENOTDIR;
    if (fstat(rule.folder, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.allowed &= FILE_RIGHTS;
    long rc = syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
    if (strncmp(path, "/proc/self", strlen("/proc/self")) != 0)
        close(rule.folder);
    return rc == 0;
}

static struct ruleset
rules_of(bool connects, long version)
{
    struct ruleset rules = {0, 0, 0};
    for (size_t i = 0; !rules.files && i < sizeof file_rights / sizeof *file_rights;
         i++)
        if (version >= file_rights[i].since)
            rules.files = file_rights[i].mask;
    if (version >= 4)
        rules.net = connects ? BIND_TCP : BIND_TCP | CONNECT_TCP;
    if (version >= 6)
        rules.scope = 3; /* abstract sockets, signals */
    return rules;
}

bool
landlock_enter(const struct wall_path *paths, size_t n, bool connects, bool *ret_there,
               char lacking[WALL_TEXT])
{
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    *ret_there = version > 0;
    if (!*ret_there) {
        snprintf(lacking, WALL_TEXT, "the kernel has no Landlock: %s", strerror(errno));
        return true;
    }
    struct ruleset rules = rules_of(connects, version);
    size_t size = (version >= 6 ? 3 : version >= 4 ? 2 : 1) * sizeof(uint64_t);
    int ruleset = (int)syscall(CREATE_RULESET, &rules, size, 0);
    if (ruleset < 0)
        return fail(lacking, "landlock_create_ruleset");
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        if (!(ok = allow_path(ruleset, paths[i].path, paths[i].rights & rules.files)))
            fail(lacking, paths[i].path);
    if (ok && !(ok = syscall(RESTRICT_SELF, ruleset, 0) == 0))
        fail(lacking, "landlock_restrict_self");
    close(ruleset);
    return ok;
}
