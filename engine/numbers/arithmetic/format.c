/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/format.h"

const struct qdqi_format_row *
qdqi_format_row(int format)
{
    static const struct qdqi_format_row rows[] = {
#define QDQ_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, uses) \
    {text,     QDQI_##name, bits,  lowest, highest,                               \
     fraction, min,         opset, 0,      QDQI_SCALES_FLOAT},
#define QDQ_BLOCK_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, \
                         uses, element, block, scales)                            \
    {text,  QDQI_##element,      bits, lowest, highest, fraction, min, opset,     \
     block, QDQI_SCALES_##scales},
#define QDQ_NARROW_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, \
                          uses, element, element_bits)                             \
    {text, QDQI_##element,   element_bits, lowest, highest, fraction, min, opset,  \
     0,    QDQI_SCALES_FLOAT},
#include "qdq/formats.h"
#undef QDQ_FORMAT
    };
    return format >= 0 && format < QDQI_N_FORMATS ? &rows[format] : NULL;
}

enum qdqi_format
qdqi_format_of_pairs(enum qdqi_format format)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format), *other;
    int i = 0;
    if (row->fraction_bits > 0)
        return format;
    while ((other = qdqi_format_row(i))->dtype != row->dtype)
        i++;
    return (enum qdqi_format)i;
}

struct qdqi_rounding
qdqi_rounding_of(enum qdqi_format format, int32_t zero_point)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    return (struct qdqi_rounding){row->lowest - (float)zero_point,
                                  row->highest - (float)zero_point, row->fraction_bits,
                                  row->min_exponent};
}
