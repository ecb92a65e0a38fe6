/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that the readers of a tokenizer.json share. */
#ifndef API_TOKENIZER_READING_H
#define API_TOKENIZER_READING_H

#include "api/tokenizer.h"
#include "base/json.h"

enum { MOST_STEPS = 64, MOST_IDS = 64, MOST_NESTED = 8 };

/* A description and what it points to, which reading_fini() frees. Texts belong to the JSON. */
struct reading {
    struct qdq_tokenizer_form form;
    struct qdq_text_step normalizers[MOST_STEPS], pre_tokenizers[MOST_STEPS];
    struct qdq_added_token *added;
    struct qdq_vocab_token *vocab;
    struct qdq_merge *merges;
    uint32_t before[MOST_IDS], behind[MOST_IDS];
    char members[2 * MOST_STEPS][128]; /* the places of steps */
    size_t n_members;
    struct api_problem *problem;
};

/* A member of the file and its JSON pointer. */
struct json_place {
    json_t *json;
    char where[128];
};

/* Returns a member of an object, or an item of an array. */
struct json_place member_at(const struct json_place *of, const char *name);
struct json_place item_at(const struct json_place *of, size_t i);

/* Set a problem at a member. Return false. */
bool wrong_member(struct reading *r, const struct json_place *m, const char *wanted);
bool unknown_kind(struct reading *r, const struct json_place *m, const char *kind);

/* Read a member of an object. A flag that is not there, or null, keeps its value; a text has to be
   there in `read_text`, and may be null in `read_optional`, which leaves *ret as it is. */
bool read_flag(struct reading *r, const struct json_place *of, const char *name,
               bool *ret);
bool read_text(struct reading *r, const struct json_place *of, const char *name,
               struct qdq_string *ret);
bool read_optional(struct reading *r, const struct json_place *of, const char *name,
                   struct qdq_string *ret);
/* Reads an id: an integer of 32 bits. */
bool read_id(struct reading *r, const struct json_place *m, uint32_t *ret);
/* Returns the text of the member `type`; "" where there is none. */
const char *type_of(const struct json_place *m);

/* The readers. */
bool read_normalizers(struct reading *r, const struct json_place *m, int depth);
bool read_pre_tokenizers(struct reading *r, const struct json_place *m, int depth);
bool read_post_processors(struct reading *r, const struct json_place *m, int depth);

#endif
