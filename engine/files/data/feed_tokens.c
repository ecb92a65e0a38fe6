/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a feed that follow from the ids of tokens. */
#include "config.h"
#include "files/data/feed_inner.h"

/* Returns how many positions the caches have that the data give; 0: they give none. */
static int64_t
past_of(const struct qdqi_feed *feed, const struct qdq_model_info *model)
{
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct qdq_value *input = &model->inputs[i];
        const struct qdq_array *array = qdqi_tokens_give(model, i) == QDQI_TOKENS_PAST
                                            ? qdqi_feed_array(feed->dataset, model, i)
                                            : NULL;
        for (size_t k = 1; array && array->rank == input->rank && k < input->rank; k++)
            if (input->dims[k].value <= 0)
                return array->shape[k];
    }
    return 0;
}

/* Returns the elements that an input has for n ids. */
static size_t
count_elements(const struct qdqi_feed *feed, enum qdqi_from_tokens what, size_t n)
{
    return what == QDQI_TOKENS_PAST   ? 0
           : what == QDQI_TOKENS_MASK ? n + (size_t)feed->past
                                      : n;
}

void
qdqi_feed_find_filled(struct qdqi_feed *feed, const struct qdq_model_info *model)
{
    size_t n_fed = 0, n_filled = 0;
    feed->tokens = qdqi_tokens_input(model);
    if (feed->tokens == model->n_inputs ||
        !qdqi_feed_array(feed->dataset, model, feed->tokens))
        return;
    for (size_t i = 0; i < model->n_inputs; i++) {
        const bool is_fed = qdqi_feed_array(feed->dataset, model, i);
        n_fed += is_fed;
        n_filled += !is_fed && qdqi_tokens_give(model, i) != QDQI_NOT_FROM_TOKENS;
    }
    feed->fills = n_filled > 0;
    feed->past = past_of(feed, model);
    feed->ends_at_negative = feed->fills && n_fed == 1 && !feed->cut;
    if (feed->fills) {
        feed->fixed = true;
        feed->rows = 1;
    }
}

enum qdq_code
qdqi_feed_bind_filled(struct qdqi_feed *feed, const struct qdq_model_info *model,
                      size_t i, struct qdq_error *err)
{
    const struct qdq_value *wanted = &model->inputs[i];
    struct qdqi_binding *binding = &feed->bindings[i];
    struct qdqi_input *input = &feed->inputs[i];
    const struct qdq_array *ids = qdqi_feed_array(feed->dataset, model, feed->tokens);
    size_t n = 1;
    for (size_t k = 1; k < ids->rank && !feed->cut; k++)
        n *= (size_t)ids->shape[k];
    if (feed->cut)
        for (int64_t k = 0; k < ids->shape[0]; k++) {
            size_t one;
            qdqi_dataset_part(feed->dataset,
                              (size_t)(ids - qdq_dataset_info(feed->dataset)->arrays),
                              k, &one);
            n = one > n ? one : n;
        }
    input->name = qdqi_arena_strdup(feed->arena, wanted->name);
    input->shape = binding->shape =
        qdqi_arena_array(feed->arena, wanted->rank, sizeof *binding->shape);
    if (!input->name || !binding->shape)
        return qdqi_no_memory(err);
    input->rank = wanted->rank;
    input->dtype = qdqi_feed_dtype(wanted, QDQI_UNKNOWN);
    binding->filled = qdqi_tokens_give(model, i);
    binding->to_size = qdqi_dtype_size(input->dtype);
    binding->drops_axis0 = true;
    binding->row = count_elements(feed, binding->filled, n);
    qdqi_tokens_shape(wanted, binding->filled, (int64_t)binding->row, binding->shape);
    return QDQ_OK;
}

void
qdqi_feed_warn_filled(struct qdqi_feed *feed)
{
    size_t n = 0, first = 0;
    for (size_t i = feed->n; i-- > 0;)
        if (feed->bindings[i].filled != QDQI_NOT_FROM_TOKENS) {
            n++;
            first = i;
        }
    if (n > 0)
        qdqi_feed_warn(
            feed, "inputs_filled", feed->inputs[first].name,
            qdqi_arena_printf(feed->arena,
                              "%zu inputs without an array are filled from '%s', this "
                              "one first: a mask of ones, positions from %lld, %s past",
                              n, feed->inputs[feed->tokens].name, (long long)feed->past,
                              feed->past > 0 ? "behind the given" : "an empty"));
}

/* Cuts the ids of the run off before the first negative one. */
static enum qdq_code
end_sample(struct qdqi_feed *feed, struct qdq_error *err)
{
    struct qdqi_binding *b = &feed->bindings[feed->tokens];
    struct qdqi_input *input = &feed->inputs[feed->tokens];
    const size_t n = input->size / b->to_size;
    const long long sample = (long long)(feed->first + feed->done);
    size_t count;
    if (!feed->ends_at_negative)
        return QDQ_OK;
    if (!qdqi_tokens_count(input->dtype, input->data, n, &count))
        return qdq_error_set(
            err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
            "sample %lld of '%s' has a negative id before others: a "
            "negative one ends a sample, and only such ones may follow",
            sample, input->name);
    if (count == 0)
        return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                             "sample %lld of '%s' has no id that is not negative",
                             sample, input->name);
    b->shape[input->rank - 1] = (int64_t)count;
    input->size = count * b->to_size;
    return QDQ_OK;
}

enum qdq_code
qdqi_feed_fill(struct qdqi_feed *feed, struct qdq_error *err)
{
    enum qdq_code code = end_sample(feed, err);
    const struct qdqi_input *ids = &feed->inputs[feed->tokens];
    const int64_t n = ids->shape[ids->rank - 1];
    for (size_t i = 0; i < feed->n && !code; i++) {
        struct qdqi_binding *b = &feed->bindings[i];
        struct qdqi_input *input = &feed->inputs[i];
        const size_t elements = count_elements(feed, b->filled, (size_t)n);
        if (b->filled == QDQI_NOT_FROM_TOKENS)
            continue;
        if (b->filled != QDQI_TOKENS_PAST) {
            b->shape[input->rank - 1] =
                b->filled == QDQI_TOKENS_CHOICE ? 1 : (int64_t)elements;
            qdqi_tokens_write(b->filled, input->dtype, elements, feed->past,
                              b->data.data);
        }
        input->data = b->data.data;
        input->size = elements * b->to_size;
        if (b->filled == QDQI_TOKENS_CHOICE)
            input->size = 1;
    }
    return code;
}
