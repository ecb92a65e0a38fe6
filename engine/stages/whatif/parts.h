/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of what-ifs, cut into consecutive parts with a session each. The outputs of
 * a part for given inputs are kept. The part does not run again while its switches and
 * scales, and those of the parts before it, are unchanged. So a what-if about a late
 * layer costs only the work behind that layer.
 */
#ifndef QDQI_STAGES_WHATIF_PARTS_H
#define QDQI_STAGES_WHATIF_PARTS_H

#include "transform/rewrite/split.h"
#include "run/session/session.h"

struct qdqi_memo_row {
    uint64_t state; /* state in which the values were computed; 0: no values are kept */
    uint64_t seen;  /* last state in which other values were computed */
    struct qdqi_output *values; /* by output of the part, in memory of their own */
    size_t *room;               /* bytes allocated for each value */
};

/* The outputs of all parts for the inputs of one run, by part. */
struct qdqi_memo {
    struct qdqi_memo_row *rows; /* in the arena of the parts; NULL: nothing yet */
};

struct qdqi_parts {
    struct qdqi_arena *arena;
    struct qdqi_split split;
    const struct qdq_model *source;
    const Onnx__ModelProto *proto;
    struct qdqi_session **sessions; /* by part */
    uint64_t *states;               /* by part: the state of its switches and scales */
    uint64_t *keys; /* by slot: what it adds to the state when it is on */
    bool *forgets;  /* by part: its outputs are too large to be kept */
    const struct qdqi_output **outputs; /* by part: the outputs in the current run */
    struct qdqi_output *results;        /* outputs of the model in the current run */
    struct qdqi_input *inputs;          /* room for the inputs of one part */
    size_t kept, most_kept;             /* bytes that all memos keep, and may keep */
};

/* Cuts the model into at most `most` parts. The arena, the source and `proto` must
   outlive the parts. NO_MEMORY. */
enum qdq_code qdqi_parts_split(const struct qdq_model *source,
                               const Onnx__ModelProto *proto, size_t most,
                               const struct qdqi_fakes *fakes, struct qdqi_arena *arena,
                               struct qdqi_parts *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Opens the sessions of the parts, also after they were closed. The kept outputs
   stay valid. RUN_FAILED. */
enum qdq_code qdqi_parts_open(struct qdqi_parts *parts, struct qdqi_runtime *runtime,
                              const struct qdqi_session_options *options,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_parts_close(struct qdqi_parts *parts);

/* The caller reports with these that the FakeQuant of a slot was switched on or off,
   or that its scale has changed. */
void qdqi_parts_switched(struct qdqi_parts *parts, size_t slot);
void qdqi_parts_rescaled(struct qdqi_parts *parts, size_t slot, bool is_on);

/*
 * Runs the parts like qdqi_session_run(), with the model's inputs in their order. The
 * memo belongs to these inputs. With `settled` the next runs differ little from this
 * one, so all outputs are kept; without it a part's outputs are kept when they are
 * computed for the second time in a row.
 */
enum qdq_code qdqi_parts_run(struct qdqi_parts *parts, struct qdqi_memo *memo,
                             bool settled, const struct qdqi_input *inputs,
                             const struct qdqi_output **ret, size_t *ret_n,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Announces that there will be that many memos like this one. From then on only
   outputs are kept that fit into the memory for all of them. */
void qdqi_parts_expect(struct qdqi_parts *parts, struct qdqi_memo *memo, size_t memos);
void qdqi_memo_clear(struct qdqi_parts *parts, struct qdqi_memo *memo);

#endif
