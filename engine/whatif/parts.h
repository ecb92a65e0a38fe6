/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of what-ifs in consecutive parts, a session each. What a part made of some
 * inputs is kept, and the part not run again where it and those in front of it are what
 * they were: a what-if about a late layer costs what is behind that layer.
 */
#ifndef QDQI_WHATIF_PARTS_H
#define QDQI_WHATIF_PARTS_H

#include "rewrite/cut.h"
#include "run/session.h"

struct qdqi_memo_row {
    uint64_t state;             /* that these were made in; 0: none are kept */
    uint64_t seen;              /* the last one in which something else was made */
    struct qdqi_output *values; /* by output of the part; own memory */
    size_t *room;               /* bytes, likewise */
};

/* What the parts made in a run, by part. */
struct qdqi_memo {
    struct qdqi_memo_row *rows; /* in the arena of the parts; NULL: nothing yet */
};

struct qdqi_parts {
    struct qdqi_arena *arena;
    struct qdqi_cut cut;
    const struct qdq_model *source;
    const Onnx__ModelProto *proto;
    struct qdqi_session **sessions;     /* by part */
    uint64_t *states;                   /* by part: of its switches and scales */
    uint64_t *keys;                     /* by slot: its share when it is on */
    bool *forgets;                      /* by part: what it makes takes too much */
    const struct qdqi_output **outputs; /* by part: of the run under way */
    struct qdqi_output *results;        /* of the model, likewise */
    struct qdqi_input *inputs;          /* room for a part's */
    size_t kept;                        /* bytes, of all memos */
};

/* Cuts the model into at most `most` parts. The arena, the source and `proto` outlive
   them. NO_MEMORY. */
enum qdq_code qdqi_parts_cut(const struct qdq_model *source,
                             const Onnx__ModelProto *proto, size_t most,
                             const struct qdqi_fakes *fakes, struct qdqi_arena *arena,
                             struct qdqi_parts *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Opens their sessions; also again, when they were closed: what was kept stays kept.
   RUN_FAILED. */
enum qdq_code qdqi_parts_open(struct qdqi_parts *parts, struct qdqi_runtime *runtime,
                              const struct qdqi_session_options *options,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_parts_close(struct qdqi_parts *parts);

/* The FakeQuant of that slot was switched, on or off; has got another scale. */
void qdqi_parts_switched(struct qdqi_parts *parts, size_t slot);
void qdqi_parts_rescaled(struct qdqi_parts *parts, size_t slot, bool is_on);

/*
 * As qdqi_session_run(), the model's own inputs in their order; a memo belongs to them.
 * `settled`: what comes will differ from this in little, so what is made is kept; else it
 * is where it is made for the second time running.
 */
enum qdq_code qdqi_parts_run(struct qdqi_parts *parts, struct qdqi_memo *memo,
                             bool settled, const struct qdqi_input *inputs,
                             const struct qdqi_output **ret, size_t *ret_n,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* There will be so many memos like this one: from now on only so much is kept as they
   have room for. */
void qdqi_parts_expect(struct qdqi_parts *parts, struct qdqi_memo *memo, size_t memos);
void qdqi_memo_clear(struct qdqi_parts *parts, struct qdqi_memo *memo);

#endif
