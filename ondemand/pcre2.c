/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libpcre2-8 that engine/files/text/pattern.c calls. */
#include "config.h"
#include "ondemand.h"

#include <stddef.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define PCRE2_CALL(type, failure, name, parameters, arguments) \
    ON_DEMAND(SONAME_PCRE2, type, failure, name, parameters, arguments)
#define PCRE2_VOID(name, parameters, arguments) \
    ON_DEMAND_VOID(SONAME_PCRE2, name, parameters, arguments)

PCRE2_CALL(pcre2_compile_context_8 *, NULL, pcre2_compile_context_create_8,
           (pcre2_general_context_8 * general), (general))
PCRE2_VOID(pcre2_compile_context_free_8, (pcre2_compile_context_8 * how), (how))
PCRE2_CALL(int, PCRE2_ERROR_BADDATA, pcre2_set_newline_8,
           (pcre2_compile_context_8 * how, uint32_t value), (how, value))
PCRE2_CALL(pcre2_code_8 *, NULL, pcre2_compile_8,
           (PCRE2_SPTR8 pattern, PCRE2_SIZE size, uint32_t options, int *error,
            PCRE2_SIZE *offset, pcre2_compile_context_8 *how),
           (pattern, size, options, error, offset, how))
PCRE2_VOID(pcre2_code_free_8, (pcre2_code_8 * code), (code))
PCRE2_CALL(int, PCRE2_ERROR_BADDATA, pcre2_get_error_message_8,
           (int number, PCRE2_UCHAR8 *to, PCRE2_SIZE size), (number, to, size))
PCRE2_CALL(pcre2_match_data_8 *, NULL, pcre2_match_data_create_from_pattern_8,
           (const pcre2_code_8 *code, pcre2_general_context_8 *general),
           (code, general))
PCRE2_VOID(pcre2_match_data_free_8, (pcre2_match_data_8 * data), (data))
PCRE2_CALL(pcre2_match_context_8 *, NULL, pcre2_match_context_create_8,
           (pcre2_general_context_8 * general), (general))
PCRE2_VOID(pcre2_match_context_free_8, (pcre2_match_context_8 * context), (context))
PCRE2_CALL(int, PCRE2_ERROR_BADDATA, pcre2_set_heap_limit_8,
           (pcre2_match_context_8 * context, uint32_t value), (context, value))
PCRE2_CALL(int, PCRE2_ERROR_BADDATA, pcre2_set_match_limit_8,
           (pcre2_match_context_8 * context, uint32_t value), (context, value))
PCRE2_CALL(int, PCRE2_ERROR_BADDATA, pcre2_set_offset_limit_8,
           (pcre2_match_context_8 * context, PCRE2_SIZE value), (context, value))
PCRE2_CALL(int, PCRE2_ERROR_BADDATA, pcre2_match_8,
           (const pcre2_code_8 *code, PCRE2_SPTR8 text, PCRE2_SIZE size,
            PCRE2_SIZE start, uint32_t options, pcre2_match_data_8 *data,
            pcre2_match_context_8 *context),
           (code, text, size, start, options, data, context))
PCRE2_CALL(PCRE2_SIZE *, NULL, pcre2_get_ovector_pointer_8, (pcre2_match_data_8 * data),
           (data))
