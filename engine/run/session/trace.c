/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/trace.h"

#include "ground/base/map.h"

#include <stdlib.h>
#include <string.h>

/* Returns the text behind the first `key` in the line, or NULL. */
static const char *
find_value(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? at + strlen(key) : NULL;
}

/* Copies the text behind `key` up to the first `end`; "" when it is not there. */
static const char *
copy_value(const char *line, const char *key, const char *end, struct qdqi_arena *arena)
{
    const char *from = find_value(line, key);
    const char *to = from ? strstr(from, end) : NULL;
    if (!to)
        return "";
    char *copy = qdqi_arena_alloc(arena, (size_t)(to - from) + 1);
    if (copy)
        memcpy(copy, from, (size_t)(to - from));
    return copy;
}

static double
read_bytes(const char *line, const char *key)
{
    const char *from = find_value(line, key);
    return from ? (double)strtoull(from, NULL, 10) : 0;
}

/* Adds the time of a run to a node. */
static void
add_run(const char *line, double ms, struct qdqi_traced_node *node)
{
    if (node->ms == 0 || ms < node->least_ms)
        node->least_ms = ms;
    node->ms += ms;
    node->read_bytes = read_bytes(line, "\"activation_size\" : \"");
    node->made_bytes = read_bytes(line, "\"output_size\" : \"");
}

/* Adds the time of an event to that of its node. */
static bool
add_event(const char *line, struct qdqi_map *found, struct qdqi_arena *arena,
          struct qdqi_trace *trace)
{
    static const char name_key[] = "\"name\" :\"", end[] = "_kernel_time\"";
    const char *ms = find_value(line, "\"dur\" :");
    const char *peak = find_value(line, "\"mem_in_use_peak\" : \"");
    uint64_t bytes = peak ? strtoull(peak, NULL, 10) : 0;
    if (bytes > trace->peak_bytes)
        trace->peak_bytes = bytes;
    if (!ms || !strstr(line, end))
        return true;
    const char *name = copy_value(line, name_key, end, arena);
    if (!name)
        return false;
    struct qdqi_traced_node *node = qdqi_map_get(found, name);
    if (!node) {
        node = &trace->nodes[trace->n_nodes++];
        node->name = name;
        node->op = copy_value(line, "\"op_name\" : \"", "\"", arena);
        node->provider = copy_value(line, "\"provider\" : \"", "\"", arena);
        if (!node->op || !node->provider || !qdqi_map_put(found, name, node))
            return false;
    }
    add_run(line, strtod(ms, NULL) / 1000, node);
    return true;
}

enum qdq_code
qdqi_trace_parse(char *text, struct qdqi_arena *arena, struct qdqi_trace *ret,
                 struct qdq_error *err)
{
    size_t lines = 1;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    struct qdqi_map *found = qdqi_map_new(arena);
    *ret = (struct qdqi_trace){.nodes =
                                   qdqi_arena_array(arena, lines, sizeof *ret->nodes)};
    if (!found || !ret->nodes)
        return qdqi_no_memory(err);
    char *save;
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (!add_event(line, found, arena, ret))
            return qdqi_no_memory(err);
    return QDQ_OK;
}
