/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/judged_files.h"

const struct qdqi_judged_file *
qdqi_judged_files_find(const struct qdqi_judged_files *files,
                       const struct qdqi_judged_file *like)
{
    for (size_t i = files->n; i > 0; i--)
        if (files->rows[i - 1].key == like->key &&
            files->rows[i - 1].is_wide == like->is_wide &&
            files->rows[i - 1].is_literal == like->is_literal)
            return &files->rows[i - 1];
    return NULL;
}

bool
qdqi_judged_files_keep(struct qdqi_judged_files *files,
                       const struct qdqi_judged_file *file, struct qdqi_arena *arena)
{
    struct qdqi_judged_file *rows =
        qdqi_arena_grow(arena, files->rows, files->n, &files->capacity, sizeof *rows);
    if (!rows)
        return false;
    files->rows = rows;
    rows[files->n++] = *file;
    return true;
}
