/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/candidate_file.h"

#include "transform/rewrite/insert.h"

enum qdq_code
qdqi_candidate_write(const struct qdqi_attempt *a, int fd, uint64_t *ret_bytes,
                     struct qdq_error *err)
{
    const struct qdqi_destination destination = {
        .fd = fd, .data = -1, .external = QDQ_EXTERNAL_NEVER};
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_edited edited;
    struct qdqi_written written;
    enum qdq_code code = arena ? qdqi_insert_pairs(a->model, a->plan, &a->scales, NULL,
                                                   0, arena, &edited, err)
                               : qdqi_no_memory(err);
    if (!code)
        code = qdqi_model_write_result(a->model, &edited, &destination, &written, err);
    if (!code)
        *ret_bytes = written.model + written.data;
    qdqi_arena_free(&arena);
    return code;
}
