/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "watch/trace.h"

#include <stdio.h>
#include <string.h>

#define HEX "0123456789abcdef"

static bool
is_id(const char *id)
{
    static const char good[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    size_t len = id ? strlen(id) : 0;
    return len > 0 && len < TRACE_ID && strspn(id, good) == len;
}

/* Returns whether the text is `n` hex digits, not all 0, followed by `end`. */
static bool
is_hex(const char *text, size_t n, char end)
{
    return strspn(text, HEX) == n && strspn(text, "0") < n && text[n] == end;
}

/* Version 00 has exactly four parts; a later version may have more behind them. */
static bool
is_parent(const char *parent)
{
    if (!parent || strspn(parent, HEX) != 2 || !strncmp(parent, "ff", 2) ||
        parent[2] != '-' || !is_hex(parent + 3, 32, '-') ||
        !is_hex(parent + 36, 16, '-') || strspn(parent + 53, HEX) != 2)
        return false;
    return parent[55] == '\0' || (parent[55] == '-' && strncmp(parent, "00", 2) != 0);
}

void
trace_begin(struct trace *ret, const char *id, const char *parent, uint32_t start,
            uint64_t n)
{
    char own[TRACE_ID];
    snprintf(own, sizeof own, "%08lx%08llx", (unsigned long)start,
             (unsigned long long)(n & 0xffffffff));
    snprintf(ret->id, sizeof ret->id, "%s", is_id(id) ? id : own);
    ret->parent[0] = '\0';
    if (is_parent(parent))
        snprintf(ret->parent, sizeof ret->parent, "00-%.32s-%.16s-%.2s", parent + 3,
                 own, parent + 53);
}
