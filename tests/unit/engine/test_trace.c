/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the file of ONNX Runtime's profiler. */
#include "config.h"

#include "run/session/trace.h"
#include "unit.h"

#include <string.h>

static struct qdqi_arena *arena;
static struct qdq_error err;

static void
set_up(void)
{
    arena = qdqi_arena_new();
}

static void
tear_down(void)
{
    qdqi_arena_free(&arena);
}

#define EVENT(name, dur, op, peak)                                                 \
    "{\"cat\" : \"Node\",\"pid\" :7,\"tid\" :7,\"dur\" :" dur                      \
    ",\"ts\" :3,\"ph\" : \"X\","                                                   \
    "\"name\" :\"" name "_kernel_time\",\"args\" : {\"mem_in_use_peak\" : \"" peak \
    "\","                                                                          \
    "\"provider\" : \"CPUExecutionProvider\",\"activation_size\" : \"64\","        \
    "\"output_size\" : \"32\",\"op_name\" : \"" op "\"}},\n"
#define SESSION                                                                 \
    "{\"cat\" : \"Session\",\"dur\" :900000,\"ts\" :3,\"ph\" : \"X\",\"name\" " \
    ":\"model_run\","                                                           \
    "\"args\" : {}},\n"

UNIT_TEST(adds_the_runs_of_a_node)
{
    char text[] = "[\n" SESSION EVENT("conv", "1500", "Conv", "80")
        EVENT("a \\\"b", "250", "Relu", "120") EVENT("conv", "500", "Conv", "90") "]\n";
    struct qdqi_trace trace;
    ck_assert_int_eq(qdqi_trace_parse(text, arena, &trace, &err), QDQ_OK);
    ck_assert_uint_eq(trace.n_nodes, 2);
    ck_assert_str_eq(trace.nodes[0].name, "conv");
    ck_assert_str_eq(trace.nodes[0].op, "Conv");
    ck_assert_str_eq(trace.nodes[0].provider, "CPUExecutionProvider");
    ck_assert_double_eq(trace.nodes[0].ms, 2);
    ck_assert_double_eq(trace.nodes[0].least_ms, 0.5);
    ck_assert_double_eq(trace.nodes[0].read_bytes, 64);
    ck_assert_double_eq(trace.nodes[0].made_bytes, 32);
    ck_assert_str_eq(trace.nodes[1].op, "Relu");
    ck_assert_double_eq(trace.nodes[1].ms, 0.25);
    ck_assert_uint_eq(trace.peak_bytes, 120);
}

static const struct {
    const char *text;
    size_t n;
} damaged[] = {
    {"", 0},
    {"[\n]\n", 0},
    {SESSION, 0},
    {"{\"dur\" :", 0},
    {"{\"name\" :\"x_kernel_time\"}", 0},
    {"{\"dur\" :5,\"name\" :\"x_kernel_ti", 0},
    {"{\"dur\" :5,\"name\" :\"x_kernel_time\"", 1},
    {"_kernel_time\"\"dur\" :x", 1},
};

/* A line that is cut off or changed never reads beyond its end. */
UNIT_ROWS(survives_damage, damaged)
{
    struct qdqi_trace trace;
    char *text = qdqi_arena_strdup(arena, damaged[_i].text);
    ck_assert_int_eq(qdqi_trace_parse(text, arena, &trace, &err), QDQ_OK);
    ck_assert_uint_eq(trace.n_nodes, damaged[_i].n);
    ck_assert_uint_eq(trace.peak_bytes, 0);
}

UNIT_SUITE("trace", .setup = set_up, .teardown = tear_down)
