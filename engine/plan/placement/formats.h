/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements that number formats have of a model. */
#ifndef QDQI_PLAN_PLACEMENT_FORMATS_H
#define QDQI_PLAN_PLACEMENT_FORMATS_H

#include "qdq/spec.h"

/* The first opset of ONNX whose QuantizeLinear has the formats and blocks of a spec. */
int64_t qdqi_formats_opset(const struct qdq_spec *spec);

static inline bool
qdqi_is_8_bit_integer(enum qdq_format format)
{
    return format == QDQ_FORMAT_INT8 || format == QDQ_FORMAT_UINT8;
}

/* Returns the formats of layers that the entry decides; NULL: no entry does. The members that it
   omits come from the spec, which is complete. The symmetry of activations whose format it states
   comes from that format. */
struct qdq_layer_format qdqi_entry_format(const struct qdq_spec *spec,
                                          const struct qdq_layer_entry *entry);

/* Returns whether the formats of the spec, or those of an entry, are of a kind. Entries that
   cases return are not known. */
bool qdqi_spec_has(const struct qdq_spec *spec,
                   bool (*is)(const struct qdq_layer_format *format));

/* Returns whether activations of the format are integers of 8 bits; for qdqi_spec_has(). */
bool qdqi_has_byte_activations(const struct qdq_layer_format *format);

/* Sets the rounding of a job without data, where the spec leaves it open: a target's own rounding is by
   data, and so is that of an allocation of formats. Weights become the nearest integers. */
void qdqi_spec_round_plainly(struct qdq_spec *spec);

#endif
