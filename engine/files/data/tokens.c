/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/tokens.h"

#include <stdint.h>
#include <string.h>

static const char ids[] = "input_ids";

static bool
has_type(const struct qdq_value *input, enum qdqi_dtype a, enum qdqi_dtype b)
{
    return strcmp(input->dtype, qdqi_dtype_name((int)a)) == 0 ||
           strcmp(input->dtype, qdqi_dtype_name((int)b)) == 0;
}

static bool
is_row_of_integers(const struct qdq_value *input)
{
    return input->has_shape && input->rank == 2 &&
           has_type(input, QDQI_INT32, QDQI_INT64);
}

size_t
qdqi_tokens_input(const struct qdq_model_info *model)
{
    for (size_t i = 0; i < model->n_inputs; i++)
        if (strcmp(model->inputs[i].name, ids) == 0 &&
            is_row_of_integers(&model->inputs[i]))
            return i;
    return model->n_inputs;
}

bool
qdqi_tokens_are_logits(const struct qdq_model_info *model, size_t output)
{
    const struct qdq_value *o = &model->outputs[output];
    return qdqi_tokens_input(model) < model->n_inputs &&
           strcmp(o->name, "logits") == 0 && (!o->has_shape || o->rank == 3);
}

/* Returns whether the input is a cache whose size along an axis behind the batch is open. */
static bool
is_past(const struct qdq_value *input)
{
    if (strncmp(input->name, "past", 4) != 0 || !input->has_shape || input->rank < 3 ||
        !has_type(input, QDQI_FLOAT32, QDQI_FLOAT16))
        return false;
    for (size_t i = 1; i < input->rank; i++)
        if (input->dims[i].value <= 0)
            return true;
    return false;
}

enum qdqi_from_tokens
qdqi_tokens_give(const struct qdq_model_info *model, size_t i)
{
    const struct qdq_value *input = &model->inputs[i];
    if (qdqi_tokens_input(model) == model->n_inputs)
        return QDQI_NOT_FROM_TOKENS;
    if (strcmp(input->name, "attention_mask") == 0 && is_row_of_integers(input))
        return QDQI_TOKENS_MASK;
    if (strcmp(input->name, "position_ids") == 0 && is_row_of_integers(input))
        return QDQI_TOKENS_POSITIONS;
    if (strcmp(input->name, "use_cache_branch") == 0 && input->has_shape &&
        input->rank == 1 && has_type(input, QDQI_BOOL, QDQI_BOOL))
        return QDQI_TOKENS_CHOICE;
    return is_past(input) ? QDQI_TOKENS_PAST : QDQI_NOT_FROM_TOKENS;
}

bool
qdqi_tokens_have_past(const struct qdq_model_info *model)
{
    for (size_t i = 0; i < model->n_inputs; i++)
        if (qdqi_tokens_give(model, i) == QDQI_TOKENS_PAST)
            return true;
    return false;
}

void
qdqi_tokens_shape(const struct qdq_value *input, enum qdqi_from_tokens what, int64_t n,
                  int64_t *shape)
{
    for (size_t i = 0; i < input->rank; i++) {
        const int64_t fixed = input->dims[i].value;
        const int64_t of_past = fixed > 0 ? fixed : 0;
        shape[i] = i == 0 ? 1 : what == QDQI_TOKENS_PAST ? of_past : n;
    }
}

void
qdqi_tokens_write(enum qdqi_from_tokens what, enum qdqi_dtype dtype, size_t n,
                  int64_t before, void *to)
{
    if (dtype == QDQI_BOOL)
        memset(to, before > 0, n);
    for (size_t i = 0; i < n && dtype != QDQI_BOOL; i++) {
        const int64_t value = what == QDQI_TOKENS_POSITIONS ? before + (int64_t)i : 1;
        if (dtype == QDQI_INT64)
            ((int64_t *)to)[i] = value;
        else
            ((int32_t *)to)[i] = (int32_t)value;
    }
}

int64_t
qdqi_tokens_at(enum qdqi_dtype dtype, const void *from, size_t i)
{
    int64_t wide;
    int32_t narrow;
    if (dtype != QDQI_INT64) {
        memcpy(&narrow, (const char *)from + i * sizeof narrow, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, (const char *)from + i * sizeof wide, sizeof wide);
    return wide;
}

static bool
is_negative(enum qdqi_dtype dtype, const void *from, size_t i)
{
    return qdqi_tokens_at(dtype, from, i) < 0;
}

bool
qdqi_tokens_count(enum qdqi_dtype dtype, const void *from, size_t n, size_t *ret)
{
    size_t count = 0;
    while (count < n && !is_negative(dtype, from, count))
        count++;
    *ret = count;
    for (size_t i = count; i < n; i++)
        if (!is_negative(dtype, from, i))
            return false;
    return true;
}
