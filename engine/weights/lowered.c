/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "weights/lowered.h"

#include "number/low.h"

struct lowered {
    struct qdqi_made made; /* must be the first member: callers have a pointer to it */
    enum qdqi_dtype low;
    const uint8_t *bytes;
    size_t n;
};

static enum qdq_code
write_lowered(const struct qdqi_made *made, struct qdqi_sink *sink,
              struct qdq_error *err)
{
    enum { PIECE = 4096 };
    const struct lowered *l = (const struct lowered *)made;
    uint16_t piece[PIECE];
    enum qdq_code code = QDQ_OK;
    for (size_t at = 0, n; at < l->n && !code; at += n) {
        n = l->n - at < PIECE ? l->n - at : PIECE;
        qdqi_low_of_floats(piece, l->low, l->bytes + at * sizeof(float), n);
        code = sink->bytes(sink, piece, n * sizeof *piece, err);
    }
    return code;
}

const struct qdqi_made *
qdqi_lowered_new(struct qdqi_arena *arena, enum qdqi_dtype low,
                 const struct qdqi_constant *constant)
{
    struct lowered *l = qdqi_arena_alloc(arena, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct lowered){{write_lowered}, low, constant->bytes, constant->n};
    return &l->made;
}
