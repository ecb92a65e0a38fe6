/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/warnings.h"

#include <stdio.h>
#include <string.h>

void
qdqi_names_add(struct qdqi_names *to, const char *name)
{
    size_t len = strlen(to->text), room = sizeof to->text - len;
    if (to->n == 0)
        to->first = name;
    if (to->n < QDQI_NAMES_SHOWN)
        snprintf(to->text + len, room, "%s%.*s%s", to->n ? ", " : "", QDQI_NAME_SHOWN,
                 name, strlen(name) > QDQI_NAME_SHOWN ? "..." : "");
    else if (to->n == QDQI_NAMES_SHOWN)
        snprintf(to->text + len, room, ", ...");
    to->n++;
}

enum qdq_code
qdqi_warn_text(struct qdqi_warnings *w, struct qdqi_arena *arena, struct qdq_error *err,
               const char *code, const char *node, const char *text)
{
    struct qdq_warning *rows =
        qdqi_arena_grow(arena, w->rows, w->n, &w->cap, sizeof *rows);
    char *detail = qdqi_arena_strdup(arena, text);
    const char *where = node ? qdqi_arena_strdup(arena, node) : NULL;
    if (!rows || !detail || (node && !where))
        return qdqi_no_memory(err);
    qdq_text_print(detail, strlen(text) + 1, "%s", text);
    w->rows = rows;
    w->rows[w->n++] = (struct qdq_warning){code, detail, where, NULL};
    return QDQ_OK;
}

enum qdq_code
qdqi_warn(struct qdqi_warnings *w, struct qdqi_arena *arena, struct qdq_error *err,
          const char *code, const char *node, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    qdq_text_vprint(text, sizeof text, fmt, args);
    va_end(args);
    return qdqi_warn_text(w, arena, err, code, node, text);
}
