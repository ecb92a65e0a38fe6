/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Insertion cases: what scripts may do, what the library's cases return, and that no
 * script, however hostile, does more than fail.
 */
#include "config.h"

#include "builder.h"
#include "failing.h"
#include "cases/case.h"
#include "cases/catalog.h"
#include "qdq/plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

/* --- a model and a run ---------------------------------------------------- */

struct world {
    struct builder b;
    struct qdq_model *model;
    struct qdq_catalog *catalog;
    struct qdq_spec spec;
    struct qdqi_arena *arena;
    struct qdqi_layers *layers;
    struct qdq_layer_entry *entries; /* of the last run */
    size_t n;
    struct qdq_error err;
};

/* Opens the model that was built in w->b, and looks at it. */
static void
world_open(struct world *w)
{
    struct qdqi_classes *rows;
    qdq_spec_init(&w->spec);
    ck_assert_int_eq(builder_open(&w->b, &w->model, &w->err), QDQ_OK);
    w->arena = qdqi_arena_new();
    ck_assert_int_eq(qdqi_classes_new(NULL, 0, &w->spec, w->arena, &rows, &w->err),
                     QDQ_OK);
    ck_assert_int_eq(qdqi_layers_new(w->model, rows, w->arena, &w->layers, &w->err),
                     QDQ_OK);
}

static void
world_close(struct world *w)
{
    qdq_catalog_free(&w->catalog);
    qdqi_arena_free(&w->arena);
    qdq_model_free(&w->model);
    builder_fini(&w->b);
}

/* A script, or a case of the catalog when `lua` is NULL. */
static enum qdq_code
run(struct world *w, const char *name, const char *lua)
{
    const struct qdq_case_use use = {.name = name, .lua = lua};
    w->err = (struct qdq_error){0};
    w->entries = NULL;
    w->n = 0;
    return qdqi_case_run(w->catalog, w->layers, &w->spec, &use, "/cases/0", w->arena,
                         &w->entries, &w->n, &w->err);
}

#define SCRIPT(body) "return { case = function(model, spec) " body " end }"

/* x -> conv1 -> relu -> conv2 -> bn -> add(relu, bn) -> pool -> fc -> y, by the ONNX
   names of NVIDIA's toolkit's models; `fc` is a MatMul with a bias Add behind it. */
static void
world_residual(struct world *w)
{
    struct builder *b = &w->b;
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w1", 4, (const int64_t[]){4, 3, 3, 3});
    builder_weight(b, "w2", 4, (const int64_t[]){4, 4, 1, 1});
    builder_weight(b, "w3", 2, (const int64_t[]){4, 2});
    for (int i = 0; i < 4; i++)
        builder_weight(b, (const char *[]){"s", "b", "m", "v"}[i], 1,
                       (const int64_t[]){4});
    builder_weight(b, "bias", 1, (const int64_t[]){2});
    builder_node(b, "Conv", "conv1", "x,w1", "c1");
    builder_node(b, "Relu", "relu", "c1", "r1");
    builder_node(b, "Conv", "conv2", "r1,w2", "c2");
    builder_node(b, "BatchNormalization", "bn", "c2,s,b,m,v", "n2");
    builder_node(b, "Dropout", "dropout", "n2", "d2");
    builder_node(b, "Add", "add", "r1,d2", "a");
    builder_node(b, "MaxPool", "pool", "a", "p");
    builder_node(b, "Flatten", "flatten", "p", "f");
    builder_node(b, "MatMul", "fc", "f,w3", "g");
    builder_node(b, "Add", "fc_bias", "g,bias", "y");
    builder_output(b, "y", QDQI_FLOAT32);
    world_open(w);
}

/* "name[index] name[index]", "*" for all inputs, "-w" and "-i" for flags that are off. */
static const char *
text_of(const struct world *w)
{
    static char text[4096];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < w->n; i++) {
        const struct qdq_layer_entry *e = &w->entries[i];
        for (size_t k = 0; k < e->n_names; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
                                    k   ? ","
                                    : i ? " "
                                        : "",
                                    e->names[k]);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s[",
                                e->quantize_input ? "" : "-i",
                                e->quantize_weight ? "" : "-w");
        for (size_t k = 0; k < e->n_index; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%d", k ? "," : "",
                                    e->index[k]);
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s]", e->index ? "" : "*");
    }
    return text;
}

/* --- scripts that go wrong ------------------------------------------------ */

/* Each ends as CASE_FAILED with the text in its message. */
static const struct {
    const char *what, *lua, *text;
} hostile[] = {
    /* time */
    {"endless loop", SCRIPT("while true do end"),
     "case 'mine', line 1: it used up its budget of "},
    {"endless loop in pcall",
     SCRIPT("while true do pcall(function() while true do end "
            "end) end"),
     "budget"},
    {"pcall in pcall",
     SCRIPT(
         "local function f() return pcall(function() while true do pcall(f) end end) "
         "end while true do f() end"),
     "used up"},
    {"goto", SCRIPT("::a:: goto a"), "budget"},
    {"for to 2^62", SCRIPT("for i = 1, 1 << 62 do end"), "budget"},
    {"recursion by tail call", SCRIPT("local function f() return f() end f()"),
     "budget"},
    {"endless loop in a comparison",
     SCRIPT("table.sort({3, 2, 1}, function() while true do end end)"), "budget"},
    {"endless pairs",
     SCRIPT("local t = {} for i = 1, 1000 do t['k' .. i] = i end "
            "while true do for _ in pairs(t) do end end"),
     "budget"},
    {"endless case", "local function f() return f() end return { case = f }", "budget"},
    {"loop at top level", "while true do end", "budget"},
    {"models are costly to walk", SCRIPT("while true do model:layers() end"),
     "used up"},
    {"globs are costly",
     SCRIPT("local g = ('*a'):rep(512) while true do "
            "model:matching(g) end"),
     "budget"},
    {"neighbours", SCRIPT("while true do model:layer('conv1'):consumers() end"),
     "used up"},

    /* memory */
    {"table bomb", SCRIPT("local t = {} while true do t[#t + 1] = {} end"),
     "case 'mine', line 1: it used up its memory"},
    {"table bomb in pcall",
     SCRIPT("local t = {} while true do pcall(function() while "
            "true do t[#t + 1] = {} end end) end"),
     "memory"},
    {"garbage", SCRIPT("while true do local t = {1, 2, 3, 4, 5, 6, 7, 8} end"),
     "used up"},
    {"garbage near the limit",
     SCRIPT(
         "local t = {} for i = 1, 50 << 14 do t[i] = i + 0.5 end local u = {} "
         "for i = 1, 300000 do u[i] = {i} end while true do local s = ('x'):rep(60000)"
         " end"),
     "used up"},
    {"string doubled", SCRIPT("local s = 'x' while true do s = s .. s end"),
     "a string takes at most 65536 bytes"},
    {"string doubled in pcall",
     SCRIPT("while true do pcall(function() local s = 'x' while true do s = s .. s end "
            "end) end"),
     "a string takes at most 65536 bytes"},
    {"rep of 1 GB", SCRIPT("return ('x'):rep(1 << 30)"),
     "a string takes at most 65536 bytes"},
    {"rep with an overflow", SCRIPT("return ('xx'):rep(math.maxinteger, 'yyy')"),
     "a string takes at most 65536 bytes"},
    {"rep for ever", SCRIPT("while true do ('x'):rep(65536) end"), "used up"},
    {"concat",
     SCRIPT("local t = {} for i = 1, 1000 do t[i] = ('x'):rep(1000) end "
            "return table.concat(t)"),
     "a string takes at most 65536 bytes"},
    {"format",
     SCRIPT("return string.format('%s%s', ('x'):rep(60000), "
            "('x'):rep(60000))"),
     "a string takes at most 65536 bytes"},
    {"deep recursion", SCRIPT("local function f(n) return 1 + f(n + 1) end f(1)"),
     "stack overflow"},
    {"recursion through pcall", SCRIPT("local function f() pcall(f) f() end f()"),
     "used up"},
    {"recursion in C", SCRIPT("local function f() table.sort({1, 2}, f) end f()"),
     "C stack overflow"},
    {"arguments without end", SCRIPT("local function f(...) return f(1, ...) end f()"),
     "used up"},
    {"a table of 2^30", SCRIPT("local t = table.move({}, 1, 1 << 30, 1)"), "budget"},

    /* functions in C */
    {"move over 2^40", SCRIPT("return table.move({}, 1, 1 << 40, 2)"), "budget"},
    {"move over 2^40 in pcall",
     SCRIPT("while true do pcall(table.move, {}, 1, 1 << 40, 2) end"), "budget"},
    {"move over all integers",
     SCRIPT("table.move({}, math.mininteger, math.maxinteger, 1)"), "budget"},
    {"move to the end of integers", SCRIPT("table.move({1, 2}, 1, 2, math.maxinteger)"),
     "destination wrap around"},
    {"unpack of 2^40", SCRIPT("return table.unpack({}, 1, 1 << 40)"),
     "at most 250 values"},
    {"unpack of all integers",
     SCRIPT("return table.unpack({}, math.mininteger, math.maxinteger)"),
     "at most 250 values"},
    {"concat of 2^40", SCRIPT("return table.concat({}, '', 1, 1 << 40)"),
     "invalid value (nil) at index 1"},
    {"insert in front", SCRIPT("local t = {} while true do table.insert(t, 1, 0) end"),
     "budget"},
    {"remove in front",
     SCRIPT("local t = {} for i = 1, 300000 do t[i] = i end "
            "while #t > 0 do table.remove(t, 1) end"),
     "budget"},
    {"length near the end of integers",
     SCRIPT("local t = {1} local i = 1 while i > 0 do t[i] = 1 i = i * 2 end "
            "t[math.maxinteger] = 1 table.insert(t, 1) table.remove(t)"),
     "list too long"},
    {"sort with a bad order",
     SCRIPT("local t = {} for i = 1, 100000 do t[i] = i end "
            "while true do table.sort(t, function() return true end) end"),
     "budget"},
    {"sort of what has no order", SCRIPT("table.sort({1, 'x'})"),
     "line 1: attempt to compare"},
    {"sort of long strings",
     SCRIPT("local t = {} for i = 1, 900 do t[i] = ('x'):rep(60000) .. i end "
            "while true do table.sort(t) end"),
     "used up"},
    {"find for ever",
     SCRIPT("local s = ('a'):rep(60000) while true do "
            "s:find(('a'):rep(30000) .. 'b') end"),
     "used up"},
    {"strings are no numbers", SCRIPT("local n = '1' | 0"),
     "attempt to perform bitwise operation on a string value"},
    {"strings as numbers for ever",
     SCRIPT("local s = (' '):rep(60000) .. '1' while true do tonumber(s) end"),
     "used up"},
    {"byte of all", SCRIPT("return ('x'):rep(1000):byte(1, -1)"),
     "'case' returned a number"},
    {"select for ever",
     SCRIPT("local function f(...) while true do local a = select('#', ...) end end "
            "f(table.unpack({}, 1, 250))"),
     "budget"},

    /* what is not there */
    {"__gc", SCRIPT("setmetatable({}, {__gc = function() while true do end end})"),
     "line 1: attempt to call a nil value (global 'setmetatable')"},
    {"getmetatable", SCRIPT("getmetatable('').__index = nil"), "'getmetatable'"},
    {"a string's methods", SCRIPT("return (''):rep(1):gsub('x', 'y')"),
     "nil value (method 'gsub')"},
    {"match", SCRIPT("return ('a'):rep(30):match(('a?'):rep(30) .. ('a'):rep(30))"),
     "nil value (method 'match')"},
    {"a pattern", SCRIPT("('block/1'):find('^block')"), "there are no patterns here"},
    {"a pattern that explodes",
     SCRIPT("string.find(('a'):rep(60000), ('a-'):rep(9) .. 'b')"), "no patterns here"},
    {"match", SCRIPT("return ('x'):match('x')"), "nil value (method 'match')"},
    {"gsub", SCRIPT("return ('x'):gsub('x', 'y')"), "nil value (method 'gsub')"},
    {"gmatch", SCRIPT("return string.gmatch('x', 'x')"), "nil value (field 'gmatch')"},
    {"pack", SCRIPT("return string.pack('!16i16', 1)"), "nil value (field 'pack')"},
    {"dump", SCRIPT("return string.dump(print)"), "nil value (field 'dump')"},
    {"close", SCRIPT("local x <close> = {}"), "non-closable value"},
    {"for with a closing value", SCRIPT("for _ in pairs, {}, nil, {} do end"),
     "non-closable value"},
    {"coroutines", SCRIPT("coroutine.wrap(function() end)()"), "global 'coroutine'"},
    {"os.execute", SCRIPT("os.execute('true')"), "global 'os'"},
    {"io.open", SCRIPT("io.open('/etc/passwd')"), "global 'io'"},
    {"load", SCRIPT("load('return 1')()"), "global 'load'"},
    {"loadstring", SCRIPT("loadstring('return 1')()"), "global 'loadstring'"},
    {"dofile", SCRIPT("dofile('/etc/passwd')"), "global 'dofile'"},
    {"require", SCRIPT("require('os')"), "global 'require'"},
    {"package", SCRIPT("package.loaded.os.exit()"), "global 'package'"},
    {"debug", SCRIPT("debug.sethook()"), "global 'debug'"},
    {"collectgarbage", SCRIPT("collectgarbage('stop')"), "global 'collectgarbage'"},
    {"xpcall", SCRIPT("xpcall(error, error)"), "global 'xpcall'"},
    {"print", SCRIPT("print('x')"), "global 'print'"},
    {"_G", SCRIPT("_G.x()"), "global '_G'"},
    {"rawset", SCRIPT("rawset(model, 1, 1)"), "global 'rawset'"},
    {"random", SCRIPT("math.random()"), "field 'random'"},

    /* errors and where they are */
    {"error on line 3", "return {\n case = function()\n  error('oh no')\n end }",
     "case 'mine', line 3: oh no"},
    {"error without a place",
     "return {\n case = function()\n  error('oh no', 0)\n end }",
     "case 'mine', line 3: oh no"},
    {"assert", "return {\n case = function()\n  assert(false, 'oh no')\n end }",
     "case 'mine', line 3: oh no"},
    {"runtime error", "return {\n case = function()\n  local t = nil\n  t.x = 1 end }",
     "case 'mine', line 4: attempt to index a nil value (local 't')"},
    {"error through pcall",
     SCRIPT("local ok, e = pcall(error, 'oh no') error(e .. ' again', 0)"),
     "line 1: oh no again"},
    {"several lines", SCRIPT("error('one\\ntwo\\0three', 0)"), "line 1: one two"},
    {"long text", SCRIPT("error(('x'):rep(60000))"), "line 1: xxxx"},
    {"table", SCRIPT("error({code = 2})"), "line 1: the error is a table value"},
    {"nil", SCRIPT("error()"), "line 1: the error is a nil value"},
    {"error of a layer", SCRIPT("error(model:layer('conv1'))"),
     "the error is a userdata value"},
    {"someone else's place", SCRIPT("error('mine:77: x', 0)"), "line 77: x"},
    {"nobody's place", SCRIPT("error('your:77: x', 0)"), "line 1: your:77: x"},
    {"no text", SCRIPT("error('', 0)"), "line 1: "},
    {"syntax", "return {\n case = = 1 }",
     "case 'mine', line 2: unexpected symbol near '='"},
    {"unfinished", "return { case = function()", "line 1: 'end' expected near <eof>"},
    {"no Lua", "\xff\xfe\x80", "line 1: unexpected symbol"},
    {"bytecode", "\x1bLua\x54", "attempt to load a binary chunk"},
    {"conversion", SCRIPT("string.format('%y', 1)"), "invalid conversion '%y"},
    {"address", SCRIPT("string.format('%p', {})"), "%p is not to be had"},
    {"padded address", SCRIPT("string.format('%s %-20p', 1, {})"), "not to be had"},
    {"cut conversion", SCRIPT("string.format('%', 1)"), "invalid conversion '%'"},
    {"wide conversion", SCRIPT("string.format('%999d', 1)"), "invalid conversion"},
    {"no argument", SCRIPT("string.format('%d')"),
     "bad argument #2 to 'string.format'"},

    /* what a script returns */
    {"nothing", "", "case 'mine': the script returned nothing"},
    {"a number", "return 1", "the script returned number, not a table"},
    {"no case", "return {}", "the script's table has no 'case'"},
    {"case of another type", "return { case = 1 }", "'case' is a number"},
    {"returns a number", SCRIPT("return 1"),
     "case 'mine', line 1: 'case' returned a number, not a list of entries"},
    {"returns a text", SCRIPT("return 'conv1'"), "'case' returned a string"},
    {"returns true", SCRIPT("return true"), "'case' returned a boolean"},
    {"returns the model", SCRIPT("return model"), "'case' returned a userdata"},
    {"returns one entry", SCRIPT("return { name = 'conv1' }"),
     "is no list of rows: it has 'name'"},
    {"a gap", SCRIPT("return { {name = 'a'}, nil, {name = 'b'} }"),
     "the list of rows has gaps"},
    {"too many",
     SCRIPT("local t, e = {}, {name = 'a'} for i = 1, 10000 do t[i] = e end return t"),
     "10000 rows, at most "},
    {"too many bytes",
     SCRIPT("local s = ('x'):rep(60000) local e = {name = {}} for i = 1, 10000 do "
            "e.name[i] = s end return {e, e, e}"),
     "the list takes more than 64 MiB"},
    {"text as entry", SCRIPT("return { 'conv1' }"), "entry 1 is a string, not a table"},
    {"unknown member", SCRIPT("return { {name = 'a'}, {nmae = 'a'} }"),
     "entry 2: unknown member 'nmae', did you mean 'name'?"},
    {"a member that is no name", SCRIPT("return { {'conv1'} }"),
     "entry 1 has a member that is a number"},
    {"no selector", SCRIPT("return { {quantize_input = true} }"),
     "entry 1 has none of name, match and class"},
    {"two selectors", SCRIPT("return { {name = 'a', class = 'Add'} }"),
     "entry 1: both 'class' and 'name'"},
    {"number as name", SCRIPT("return { {name = 1} }"),
     "entry 1: 'name' is a number, not a text"},
    {"layer as name", SCRIPT("return { {name = model:layer('conv1')} }"),
     "entry 1: 'name' is a userdata, not a text"},
    {"empty name", SCRIPT("return { {name = ''} }"), "entry 1: 'name' is empty"},
    {"zero byte", SCRIPT("return { {name = 'a\\0b'} }"), "'name' holds a zero byte"},
    {"no names", SCRIPT("return { {name = {}} }"), "'name' is an empty list"},
    {"names with a gap", SCRIPT("return { {name = {'a', x = 'b'}} }"),
     "'name' is no list: it has 'x'"},
    {"numbers as names", SCRIPT("return { {name = {'a', 2}} }"),
     "'name' is a number, not a text"},
    {"list of classes", SCRIPT("return { {class = {'Add'}} }"),
     "'class' is a table, not a text"},
    {"flag that is a number", SCRIPT("return { {name = 'a', quantize_input = 1} }"),
     "entry 1: 'quantize_input' is a number, not true or false"},
    {"empty index", SCRIPT("return { {name = 'a', quantization_index = {}} }"),
     "entry 1: 'quantization_index' is empty; leave it out for all inputs"},
    {"index that is a number",
     SCRIPT("return { {name = 'a', quantization_index = 1} }"),
     "'quantization_index' is a number, not a list"},
    {"negative index", SCRIPT("return { {name = 'a', quantization_index = {-1}} }"),
     "'quantization_index' is to be an integer, 0 to"},
    {"fraction", SCRIPT("return { {name = 'a', quantization_index = {0.5}} }"),
     "'quantization_index' is to be an integer"},
    {"index that is a text",
     SCRIPT("return { {name = 'a', quantization_index = {'1'}} }"),
     "'quantization_index' is to be an integer"},
    {"index of another kind",
     SCRIPT("return { {name = 'a', quantization_index = "
            "{1, 2, x = 3}} }"),
     "'quantization_index' is no list: it has 'x'"},
    {"long index",
     SCRIPT("local t = {} for i = 1, 2000 do t[i] = i end "
            "return { {name = 'a', quantization_index = t} }"),
     "'quantization_index' has more than 1024 elements"},

    /* objects */
    {"unknown member of a layer", SCRIPT("return model:layer('conv1').nmae"),
     "line 1: a layer has no member 'nmae'"},
    {"unknown member of the model", SCRIPT("return model.nodes"),
     "a model has no member 'nodes'"},
    {"unknown member of the spec", SCRIPT("return spec.mod"),
     "a spec has no member 'mod'"},
    {"member of a number", SCRIPT("return model[1]"), "a model has no member 'number'"},
    {"layers stay", SCRIPT("model:layer('conv1').name = 'x'"),
     "a layer cannot be changed"},
    {"the model stays", SCRIPT("model.x = 1"), "a model cannot be changed"},
    {"the spec stays", SCRIPT("spec.mode = 'full'"), "a spec cannot be changed"},
    {"dot for colon", SCRIPT("return model.layers('Add')"), "model:METHOD"},
    {"dot for colon of the spec", SCRIPT("return spec.names(1)"), "spec:METHOD"},
    {"another object", SCRIPT("return model.layers(spec)"), "model:METHOD"},
    {"layer that is none", SCRIPT("return spec:names(model)"),
     "layer expected, got model"},
    {"layer that is a text", SCRIPT("return spec:names('conv1')"), "layer expected"},
    {"method without a layer", SCRIPT("return model:layer('conv1').is('Conv')"),
     "layer expected"},
    {"no class", SCRIPT("return model:layer('conv1'):is()"), "string expected"},
    {"input before the first", SCRIPT("return model:layer('conv1'):producer(-1)"),
     "inputs are counted from 0"},
    {"input that is a text", SCRIPT("return model:layer('conv1'):producer('x')"),
     "number expected"},
    {"long glob", SCRIPT("return model:matching(('*'):rep(2000))"), "glob too long"},
    {"order of layers", SCRIPT("return model:layer('conv1') < model:layer('conv2')"),
     "attempt to compare"},

    /* library() */
    {"unknown case", SCRIPT("return library('residual2')"),
     "line 1: library: there is no case 'residual2'"},
    {"nothing asked for", SCRIPT("return library()"), "string expected"},
    {"error in a library case", SCRIPT("return library('residual').case(nil, spec)"),
     "of 'residual': attempt to index a nil value"},
    {"library without end",
     "local function f(m, s) return 1 + #library('residual').case(m, s) + f(m, s) end "
     "return { case = f }",
     "used up"},
};

enum { N_HOSTILE = sizeof hostile / sizeof *hostile };

static double
cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What fails, how it says so, in a time that is bounded; the next script runs. */
static void
expect_failure(struct world *w, const char *what, const char *lua, const char *text)
{
    double start = cpu_seconds();
    enum qdq_code code = run(w, "mine", lua);
    double took = cpu_seconds() - start;
    ck_assert_msg(code == QDQ_CASE_FAILED, "%s: code %d, %s", what, code, w->err.text);
    ck_assert_msg(strstr(w->err.text, text) != NULL, "%s: '%s' is not in '%s'", what,
                  text, w->err.text);
    ck_assert_msg(strncmp(w->err.text, "case 'mine'", 11) == 0, "%s: %s", what,
                  w->err.text);
    for (const char *c = w->err.text; *c; c++)
        ck_assert_msg((unsigned char)*c >= ' ', "%s: %s", what, w->err.text);
    ck_assert_str_eq(w->err.where, "/cases/0");
    ck_assert_msg(took < 4, "%s: took %.1f s", what, took);
    ck_assert_ptr_null(w->entries);
    ck_assert_int_eq(run(w, "next", SCRIPT("return { {name = 'add'} }")), QDQ_OK);
    ck_assert_str_eq(text_of(w), "add[*]");
}

START_TEST(hostile_script)
{
    struct world w = {0};
    world_residual(&w);
    expect_failure(&w, hostile[_i].what, hostile[_i].lua, hostile[_i].text);
    world_close(&w);
}
END_TEST

/* Scripts too long to be written down: before, unit n times, after. */
static const struct {
    const char *what, *before, *unit, *after, *text;
    size_t n;
} generated[] = {
    {"pending gotos", SCRIPT(""), "", "", "", 0}, /* honest, to see that it can be */
    {"gotos", "do ", "goto a ", "::a:: end return 1", "returned number", 30000},
    {"labels", "", "::a:: ", "", "C stack overflow", 30000},
    {"breaks", "while true do ", "break ", "end return 1", "too many labels/gotos",
     40000},
    {"elseifs", "if a then ", "elseif a then ", "end return 1", "returned number",
     16000},
    {"ors", "return a", " or a", "", "case 'mine'", 50000},
    {"comparisons", "return ", "a<", "a", "attempt to compare", 60000},
    {"concatenations", "return ''", "..''", "", "overflow", 60000},
    {"parentheses", "return ", "(", "", "overflow", 250000},
    {"braces", "return ", "{", "", "overflow", 250000},
    {"functions", "return ", "function() return ", "", "overflow", 14000},
    {"blocks", "", "do ", "", "overflow", 80000},
    {"unary operators", "return ", "- ", "1", "overflow", 100000},
    {"exponents", "return ", "1^", "1", "overflow", 100000},
    {"long table", "return {", "1,", "}", "has no 'case'", 120000},
    {"locals", "", "local a ", "", "too many local variables", 30000},
    {"variables", "local a", ",a", "", "too many local variables", 100000},
    {"upvalues of strings", "return {", "'a',", "}", "has no 'case'", 60000},
    {"comment", "--[[", "x", "", "unfinished long comment", 250000},
    {"string", "return '", "x", "'", "memory: a string", 250000},
    {"levels of a long bracket", "return [", "=", "", "memory: a string", 200000},
    {"name", "return ", "x", "", "memory: a string", 250000},
    {"number", "return ", "1", "", "returned number", 60000},
    {"too long", "return 1 --", "x", "", "at most 262144 are taken", 262144},
};

START_TEST(generated_script)
{
    struct world w = {0};
    const size_t unit = strlen(generated[_i].unit);
    const size_t head = strlen(generated[_i].before),
                 tail = strlen(generated[_i].after);
    char *lua = malloc(head + generated[_i].n * unit + tail + 1);
    memcpy(lua, generated[_i].before, head);
    for (size_t i = 0; i < generated[_i].n; i++)
        memcpy(lua + head + i * unit, generated[_i].unit, unit);
    memcpy(lua + head + generated[_i].n * unit, generated[_i].after, tail + 1);
    world_residual(&w);
    if (generated[_i].n)
        expect_failure(&w, generated[_i].what, lua, generated[_i].text);
    else
        ck_assert_int_eq(run(&w, "mine", lua), QDQ_OK);
    free(lua);
    world_close(&w);
}
END_TEST

/* --- what scripts see ----------------------------------------------------- */

/* Each returns one entry whose name is `text`; `e(…)` joins texts with a blank. */
#define SEE(body)                                                                  \
    "local function e(...) local t = {...} for i = 1, select('#', ...) do t[i] = " \
    "tostring(t[i]) end return { {name = table.concat(t, ' ')} } end "             \
    "local function names(list) local t = {} for i, l in ipairs(list) do t[i] = "  \
    "l.name end return table.concat(t, ' ') end "                                  \
    "return { case = function(model, spec) " body " end }"

static const struct {
    const char *lua, *text;
} seen[] = {
    /* the model */
    {SEE("return e(names(model:layers('Conv')))"), "conv1 conv2"},
    {SEE("return e(names(model:layers('Conv2D')))"), "conv1 conv2"},
    {SEE("return e(names(model:layers('Dense')))"), "fc"},
    {SEE("return e(names(model:layers('MatMul')))"), "fc"},
    {SEE("return e(names(model:layers('Add')))"), "add fc_bias"},
    {SEE("return e(#model:layers('NoSuch'), #model:layers(''))"), "0 0"},
    {SEE("return e(names(model:layers()))"),
     "conv1 relu conv2 bn dropout add pool flatten fc fc_bias"},
    {SEE("return e(names(model:layers(nil)))"),
     "conv1 relu conv2 bn dropout add pool flatten fc fc_bias"},
    {SEE("return e(names(model:matching('conv*')))"), "conv1 conv2"},
    {SEE("return e(names(model:matching('?n')), #model:matching('x'))"), "bn 0"},
    {SEE("return e(model:layer('conv1').name, model:layer('@c2').name, "
         "model:layer('no'), model:layer('@no'))"),
     "conv1 conv2 nil nil"},
    {SEE("return e(model:layer('fc_bias').name)"), "fc"},
    {SEE("return e(model, spec, model:layer('conv1'))"), "model spec conv1"},

    /* layers */
    {SEE("local l = model:layer('conv1') return e(l.name, l.op, l.class)"),
     "conv1 Conv Conv2D"},
    {SEE("local l = model:layers('Add')[2] return e(l.name, l.op, l.class)"),
     "fc_bias Add nil"},
    {SEE("local l = model:layer('bn') return e(l.op, l.class, l.weight_shape)"),
     "BatchNormalization BatchNormalization nil"},
    {SEE("local l = model:layer('conv1') return e(table.concat(l.inputs, ','), "
         "table.concat(l.weight_shape, 'x'), l.n_consumers)"),
     "0 4x3x3x3 1"},
    {SEE("local l = model:layer('fc') return e(table.concat(l.inputs, ','), "
         "table.concat(l.weight_shape, 'x'), l.n_consumers)"),
     "0 4x2 1"},
    {SEE("return e(table.concat(model:layer('add').inputs, ','))"), "0,1"},
    {SEE("return e(table.concat(model:layer('bn').inputs, ','))"), "0"},
    {SEE("local l = model:layer('conv1') return e(l:is('Conv'), l:is('Conv2D'), "
         "l:is('DepthwiseConv2D'), l:is(''))"),
     "true true false false"},
    {SEE("local l = model:layer('add') return e(l:producer(0).name, "
         "l:producer(1).name, l:producer(2), names(l:producers()))"),
     "relu bn nil relu bn"},
    {SEE("local l = model:layer('conv1') return e(l:producer(0), l:producer(1), "
         "l:producer(1 << 40), #l:producers())"),
     "nil nil nil 0"},
    {SEE("return e(names(model:layer('relu'):consumers()), "
         "model:layer('relu').n_consumers)"),
     "conv2 add 2"},
    {SEE("return e(names(model:layer('bn'):consumers()), "
         "names(model:layer('pool'):consumers()))"),
     "add fc"},
    {SEE("return e(#model:layer('fc'):consumers(), model:layer('fc').n_consumers)"),
     "0 1"},
    {SEE("local a, b = model:layer('add'):producer(0), model:layer('relu') "
         "local t = {[a] = 'same'} return e(a == b, t[b], a == model:layer('bn'))"),
     "true same false"},

    /* the spec */
    {SEE("return e(spec.mode, spec.target, #spec.layers)"), "full tensorrt 2"},
    {SEE("local a, b = spec.layers[1], spec.layers[2] return e(a.name, a.class, "
         "a.quantize_input, a.quantize_weight, a.quantization_index[2], b.class, "
         "b.quantization_index)"),
     "add nil true false 1 Conv nil"},
    {SEE("spec.layers[1].name = 'x' return e(spec.layers[1].name)"), "x"},
    {SEE("return e(spec:names(model:layer('add')), spec:names(model:layer('conv1')))"),
     "true false"},

    /* what there is of Lua */
    {SEE("return e(#('abc'), ('abc'):upper(), ('ABC'):lower(), ('abc'):reverse())"),
     "3 ABC abc cba"},
    {SEE("return e(('abcdef'):sub(2, 3), ('abcdef'):sub(-2), ('abc'):sub(5), "
         "('abc'):sub(1 << 62, math.mininteger), ('abc'):sub(0, 99))"),
     "bc ef   abc"},
    {SEE("return e(('a.b.c'):find('.', 1, true), ('a.b'):find('b', -1))"), "2 3 3"},
    {SEE("return e(('a.b'):find('x'), (''):find(''), ('abc'):find('', 4), "
         "('abc'):find('', 9))"),
     "nil 1 4 nil"},
    {SEE("return e(('abc'):byte(), ('abc'):byte(2, 3), string.char(104, 105))"),
     "97 98 hi"},
    {SEE("return e(('ab'):rep(3, '-'), ('x'):rep(0), ('x'):rep(-1), "
         "(''):rep(1 << 40), ('x'):rep(1, ('-'):rep(60000)))"),
     "ab-ab-ab    x"},
    {SEE("return e(string.format('%5.2f|%d|%s|%%|%x|%-4s|%c', 3.14159, 7, nil, 255, "
         "'a', 65))"),
     " 3.14|7|nil|%|ff|a   |A"},
    {SEE("return e(string.format('%s %s', {}, print ), string.format('%99.99f', 1e308"
         "):len())"),
     "table nil 409"},
    {SEE("local t = {3, 1, 2} table.sort(t) local u = {3, 1, 2} table.sort(u, "
         "function(a, b) return a > b end) return e(table.concat(t), table.concat(u))"),
     "123 321"},
    {SEE("local t = {} for i = 1, 100 do t[i] = {i % 3, i} end table.sort(t, "
         "function(a, b) return a[1] < b[1] end) local ok = true for i = 2, 100 do "
         "local a, b = t[i - 1], t[i] ok = ok and (a[1] < b[1] or (a[1] == b[1] and "
         "a[2] < b[2])) end return e(ok)"),
     "true"},
    {SEE("local t = {} for i = 1, 999 do t[i] = (i * 7919) % 1000 end table.sort(t) "
         "local ok = true for i = 2, 999 do ok = ok and t[i - 1] <= t[i] end "
         "return e(ok, #t)"),
     "true 999"},
    {SEE("local t = {'b', 'a', 'c'} table.sort(t) table.sort({}) return "
         "e(table.concat(t))"),
     "abc"},
    {SEE("local t = {} table.insert(t, 'a') table.insert(t, 1, 'b') table.insert(t, 2, "
         "'c') return e(table.concat(t), table.remove(t, 1), table.remove(t), #t, "
         "table.remove({}))"),
     "bca b a 1 nil"},
    {SEE("local t = table.move({1, 2, 3}, 1, 3, 2) local u = table.move({1, 2, 3}, 2, "
         "3,"
         " 1) return e(table.concat(t), table.concat(u), "
         "table.concat(table.move({1, 2}, 1, 2, 2, {9})))"),
     "1123 233 912"},
    {SEE("return e(table.unpack({1, 2, 3})) "), "1 2 3"},
    {SEE("return e(table.concat({1, 'a', 2.5}, '-'), table.concat({}), "
         "table.concat({1, 2, 3}, ',', 2))"),
     "1-a-2.5  2,3"},
    {SEE("local t = {} for k, v in pairs({b = 1, a = 2, [2] = 3, [1.5] = 4, [true] = "
         "5, "
         "[-1] = 6}) do t[#t + 1] = tostring(k) .. '=' .. v end "
         "return e(table.concat(t, ' '))"),
     "-1=6 1.5=4 2=3 a=2 b=1 true=5"},
    {SEE("local t, n = {1, 2, 3, 4}, 0 for k in pairs(t) do t[k] = nil t[k + 1] = nil "
         "n = n + 1 end return e(n)"),
     "2"},
    {SEE("local t, n = {a = 1, b = 2, c = 3}, '' for k in pairs(t) do n = n .. k t.b = "
         "nil end for k in pairs({}) do n = 'x' end return e(n)"),
     "ac"},
    {SEE("local t = {} for l in pairs({[model:layer('conv2')] = 1, "
         "[model:layer('conv1')]"
         " = 2, x = 3}) do t[#t + 1] = tostring(l) end return e(table.concat(t, ' '))"),
     "x conv1 conv2"},
    {SEE("return e(pcall(error, 'x'))"), "false x"},
    {SEE("return e(pcall(function(...) return ... end, 1, nil, 3))"), "true 1 nil 3"},
    {SEE("local ok, t = pcall(error, {1}) return e(ok, t[1], pcall(pcall), "
         "pcall(pcall, "
         "error, 'x'))"),
     "false 1 false true false x"},
    {SEE("return e(tonumber('0x10'), tonumber('z', 36), tonumber('x'), "
         "tonumber(('1'):rep(300)), tonumber(2))"),
     "16 35 nil nil 2"},
    {SEE("return e(tostring(nil), tostring(1.5), tostring({}), tostring(e), "
         "type(model),"
         " math.max(1, 2), math.floor(1.5), 7 // 2, select('#', 1, 2), ipairs == nil)"),
     "nil 1.5 table function userdata 2 1 3 2 false"},
    {SEE("local n = 0 for i in ipairs({1, 2, nil, 4}) do n = i end "
         "return e((assert(7, 'x')), n)"),
     "7 2"},
    {SEE("return e(#library('residual').case(model, spec), library('residual') == "
         "library('residual'))"),
     "0 true"},
    {"\xef\xbb\xbf" SEE("return e('BOM')"), "BOM"},
};

enum { N_SEEN = sizeof seen / sizeof *seen };

START_TEST(what_scripts_see)
{
    struct world w = {0};
    world_residual(&w);
    const struct qdq_layer_entry layers[] = {{.by = QDQ_BY_NAME,
                                              .names = (const char *const[]){"add"},
                                              .n_names = 1,
                                              .quantize_input = true,
                                              .index = (const int[]){0, 1},
                                              .n_index = 2},
                                             {.by = QDQ_BY_CLASS,
                                              .names = (const char *const[]){"Conv"},
                                              .n_names = 1,
                                              .quantize_input = true,
                                              .quantize_weight = true}};
    w.spec.layers = layers;
    w.spec.n_layers = 2;
    w.layers->named[qdqi_layer_index(w.layers, qdqi_layer_find(w.layers, "add"))] =
        true;
    enum qdq_code code = run(&w, "mine", seen[_i].lua);
    ck_assert_msg(code == QDQ_OK, "%s: %s", seen[_i].lua, w.err.text);
    ck_assert_uint_eq(w.n, 1);
    ck_assert_msg(strcmp(w.entries[0].names[0], seen[_i].text) == 0,
                  "%s:\n'%s', not '%s'", seen[_i].lua, w.entries[0].names[0],
                  seen[_i].text);
    world_close(&w);
}
END_TEST

START_TEST(entries_are_read)
{
    struct world w = {0};
    world_residual(&w);
    ck_assert_int_eq(run(&w, "mine", SCRIPT("")), QDQ_OK);
    ck_assert_uint_eq(w.n, 0);
    ck_assert_int_eq(run(&w, "mine", SCRIPT("return {}")), QDQ_OK);
    ck_assert_uint_eq(w.n, 0);
    ck_assert_int_eq(run(&w, "mine",
                         SCRIPT("return { {name = 'a', quantization_index = {2, 0.0}}, "
                                "{name = {'b', 'c'}, quantize_weight = false}, "
                                "{class = 'Add', quantize_input = false}, "
                                "{match = 'x*', quantize_weight = true} }")),
                     QDQ_OK);
    ck_assert_str_eq(text_of(&w), "a[2,0] b,c-w[*] Add-i[*] x*[*]");
    ck_assert_int_eq(w.entries[0].by, QDQ_BY_NAME);
    ck_assert(!w.entries[0].is_list);
    ck_assert(w.entries[1].is_list);
    ck_assert_int_eq(w.entries[2].by, QDQ_BY_CLASS);
    ck_assert_int_eq(w.entries[3].by, QDQ_BY_MATCH);
    world_close(&w);
}
END_TEST

START_TEST(unknown_case)
{
    struct world w = {0};
    world_residual(&w);
    ck_assert_int_eq(run(&w, "residul", NULL), QDQ_INVALID_SPEC);
    ck_assert_str_eq(w.err.where, "/cases/0");
    ck_assert_str_eq(w.err.text,
                     "there is no case \"residul\", did you mean \"residual\"?");
    world_close(&w);
}
END_TEST

/* Budgets are for what is hostile: a case that asks a lot of every node is far off. */
START_TEST(honest_script)
{
    struct world w = {0};
    world_residual(&w);
    double start = cpu_seconds();
    ck_assert_int_eq(
        run(&w, "mine",
            SCRIPT(
                "local seen = {} for round = 1, 2000 do for _, l in "
                "ipairs(model:layers()) do seen[l.name] = (seen[l.name] or 0) + "
                "#l:producers() + #l:consumers() + #l.inputs + l.n_consumers end end "
                "for name, n in pairs(seen) do assert(n % 2000 == 0) end")),
        QDQ_OK);
    ck_assert_double_lt(cpu_seconds() - start, 2);
    world_close(&w);
}
END_TEST

/* --- the library's cases -------------------------------------------------- */

/* What each returns for a model that is built by the words of `graph`:
   "op name inputs output; …", x being the input, y an output. */
static const struct {
    const char *graph, *cases, *entries;
} library[] = {
    /* residual: the first input that ends a convolution used once stays free */
    {"Conv a x,w p; Conv b p,w q; Add add p,q y", "residual", "add[0]"},
    {"Conv a x,w p; Conv b x,w q; Add add p,q y", "residual", "add[1]"},
    {"Relu a x p; Conv b x,w q; Add add p,q y", "residual", "add[0]"},
    {"Conv b x,w q; Relu a x p; Add add q,p y", "residual", "add[1]"},
    {"Relu a x p; Relu b x q; Add add p,q y", "residual", "add[0,1]"},
    {"Conv a x,w p; Add add p,x y", "residual", "add[1]"},
    {"Conv a x,w p; Add add x,p y", "residual", "add[0]"},
    {"ConvTranspose a x,w p; Add add x,p y", "residual", "add[0]"},
    {"Conv a x,w p; BatchNormalization n p,s,s,s,s q; Add add x,q y", "residual",
     "add[0]"},
    {"Conv a x,w p; Dropout d p q; BatchNormalization n q,s,s,s,s r; Identity i r t; "
     "Add add x,t y",
     "residual", "add[0]"},
    {"Relu a x p; BatchNormalization n p,s,s,s,s q; Add add x,q y", "residual",
     "add[0,1]"},
    {"Conv a x,w p; Relu r p q; Add add x,q y", "residual", "add[0,1]"},
    {"Conv a x,w p; BatchNormalization n p,s,s,s,s q; Relu r q t; Add add x,t y",
     "residual", "add[0,1]"},
    {"Conv a x,w p; Add add p,p y", "residual", "add[0,1]"},
    {"Conv a x,w p; Relu r p y; Add add p,x z", "residual", "add[0,1]"},
    {"Conv a x,w p; Conv b x,w q; Relu r p y; Add add p,q z", "residual", "add[0]"},
    {"Conv a x,w p; Conv b x,w q; Sum add x,p,q y", "residual", "add[0,2]"},
    {"Conv a x,w p; Add add p,s y", "residual", ""},
    {"Conv a x,w p; Add bias p,s q; Add add x,q y", "residual", "add[0]"},
    {"Gemm a x,w p; Add add x,p y", "residual", "add[0,1]"},
    {"Conv a x,w p; Pad pad p q; Add add x,q y", "residual", "add[0,1]"},
    {"Conv a x,w p; Add add1 x,p q; Conv b q,w r; Add add2 q,r y", "residual",
     "add1[0] add2[0]"},
    {"Conv a x,w p; Add add p,x y", "resnet_v1", "add[1]"},
    {"Conv a x,w p; Add add p,x y", "mobilenet", "add[1]"},
    /* maxpool, batchnorm */
    {"Relu a x p; MaxPool m1 p q; MaxPool m2 x y", "maxpool", "m1[*] m2[*]"},
    {"Relu a x p; MaxPool m1 p q; Add add p,q y", "inception", "m1[*]"},
    {"Relu a x p; BatchNormalization n p,s,s,s,s y", "batchnorm", "n[*]"},
    {"BatchNormalization n x,s,s,s,s y", "batchnorm", "n[*]"},
    {"Conv a x,w p; BatchNormalization n p,s,s,s,s y", "batchnorm", ""},
    {"Conv a x,w p; Identity i p q; BatchNormalization n q,s,s,s,s y", "batchnorm", ""},
    {"ConvTranspose a x,w p; BatchNormalization n p,s,s,s,s y", "batchnorm", ""},
    {"Gemm a x,w p; BatchNormalization n p,s,s,s,s y", "batchnorm", "n[*]"},
    /* those that are made of others */
    {"BatchNormalization n x,s,s,s,s p; Relu r p q; Conv a q,w t; MaxPool m x u; "
     "Add add t,u y",
     "resnet_v2", "add[1] n[*] m[*]"},
    {"Sigmoid g x p; Mul swish x,p q; GlobalAveragePool s1 q t; Sigmoid g2 t u; "
     "Mul se q,u v; Conv c v,w o; Add add o,x y",
     "efficientnet", "add[1] se[0,1]"},
    {"Mul scale x,s y", "efficientnet", ""},
    /* what the user's spec names is the user's */
    {"Conv a x,w p; Add user p,x q; MaxPool user_pool q t; Mul user_mul t,q u; "
     "BatchNormalization user_bn u,s,s,s,s y",
     "resnet_v2", ""},
    {"Conv a x,w p; Add user p,x q; Add add q,x t; Mul user_mul t,q y", "efficientnet",
     "add[0,1]"},
};

enum { N_LIBRARY = sizeof library / sizeof *library };

static void
build_words(struct builder *b, const char *graph)
{
    char text[512], *save = NULL;
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w", 4, (const int64_t[]){4, 4, 1, 1});
    builder_weight(b, "s", 1, (const int64_t[]){4});
    snprintf(text, sizeof text, "%s", graph);
    for (char *node = strtok_r(text, ";", &save); node;
         node = strtok_r(NULL, ";", &save)) {
        char op[32], name[32], inputs[64], output[32];
        ck_assert_int_eq(sscanf(node, "%31s %31s %63s %31s", op, name, inputs, output),
                         4);
        builder_node(b, op, name, inputs, output);
    }
    builder_output(b, "y", QDQI_FLOAT32);
}

START_TEST(library_case)
{
    struct world w = {0};
    build_words(&w.b, library[_i].graph);
    world_open(&w);
    for (size_t i = 0; i < w.model->graph.n_nodes; i++)
        w.layers->named[i] = strncmp(w.model->graph.nodes[i].name, "user", 4) == 0;
    enum qdq_code code = run(&w, library[_i].cases, NULL);
    ck_assert_msg(code == QDQ_OK, "%s: %s", library[_i].graph, w.err.text);
    ck_assert_msg(strcmp(text_of(&w), library[_i].entries) == 0,
                  "%s of '%s': '%s', not '%s'", library[_i].cases, library[_i].graph,
                  text_of(&w), library[_i].entries);
    world_close(&w);
}
END_TEST

/* The rows that the makefile made say what the scripts say, sorted by name. */
START_TEST(library_is_listed)
{
    struct qdq_catalog *catalog = NULL;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdq_catalog_open(NULL, &catalog, &err), QDQ_OK);
    size_t n = 0;
    for (const struct qdq_case_info *info; (info = qdq_catalog_case(NULL, n)); n++) {
        ck_assert_ptr_eq(info, qdq_catalog_case(catalog, n));
        ck_assert_ptr_eq(info, qdqi_catalog_find(catalog, info->name));
        ck_assert_ptr_eq(info, qdqi_catalog_find(NULL, info->name));
        ck_assert_str_eq(info->source, "library");
        ck_assert_ptr_nonnull(strstr(info->lua, "case ="));
        ck_assert_uint_gt(strlen(info->info), 20);
        ck_assert_ptr_null(strpbrk(info->info, "\n[]"));
        ck_assert_ptr_null(strstr(info->info, "  "));
        if (n)
            ck_assert_int_lt(strcmp(qdq_catalog_case(NULL, n - 1)->name, info->name),
                             0);
    }
    ck_assert_uint_eq(n, 8);
    ck_assert_ptr_null(qdqi_catalog_find(catalog, "no_such_case"));
    ck_assert_int_eq(qdq_catalog_check(catalog, &err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(NULL, &err), QDQ_OK);
    ck_assert_ptr_eq(qdq_catalog_layer(catalog, 0), qdqi_library_layer(0));
    qdq_catalog_free(&catalog);
    qdq_catalog_free(&catalog);
}
END_TEST

/* --- an operator's folder ------------------------------------------------- */

static char folder[64];

static void
folder_setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/qdq-cases-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Puts a file into the folder; an empty text removes it. */
static void
put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!*text) {
        unlink(path);
        return;
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void
expect_in(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text);
}

START_TEST(folder_missing_and_empty)
{
    struct qdq_catalog *catalog = NULL;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdq_catalog_open("/no/such/folder", &catalog, &err), QDQ_OK);
    ck_assert_str_eq(qdq_catalog_case(catalog, 0)->name, "batchnorm");
    qdq_catalog_free(&catalog);
    folder_setup();
    put("readme.txt", "no script");
    put(".hidden.lua", "no script either");
    ck_assert_int_eq(qdq_catalog_open(folder, &catalog, &err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(catalog, &err), QDQ_OK);
    ck_assert_ptr_null(qdq_catalog_case(catalog, 8));
    qdq_catalog_free(&catalog);
    put("readme.txt", "");
    put(".hidden.lua", "");
    rmdir(folder);
}
END_TEST

START_TEST(folder_of_cases)
{
    struct world w = {0};
    folder_setup();
    put("house.lua", "return { info = function() return 'a\\n  b' end, case = "
                     "function(model, spec) return library('inner').case(model, spec) "
                     "end }");
    put("inner.lua", SCRIPT("return { {name = 'conv1'} }"));
    put("maxpool.lua", "return { info = 'ours', case = function() return { {name = "
                       "'pool', quantize_input = false} } end }");
    world_residual(&w);
    ck_assert_int_eq(qdq_catalog_open(folder, &w.catalog, &w.err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(w.catalog, &w.err), QDQ_OK);
    const struct qdq_case_info *info = qdqi_catalog_find(w.catalog, "house");
    ck_assert_str_eq(info->info, "a b");
    ck_assert_str_eq(info->source, "operator");
    ck_assert_str_eq(qdqi_catalog_find(w.catalog, "inner")->info, "");
    ck_assert_str_eq(qdqi_catalog_find(w.catalog, "maxpool")->info, "ours");
    size_t n = 0;
    while (qdq_catalog_case(w.catalog, n))
        n++;
    ck_assert_uint_eq(n, 10);
    ck_assert_int_eq(run(&w, "house", NULL), QDQ_OK);
    ck_assert_str_eq(text_of(&w), "conv1[*]");
    /* What replaces a case does so for the others, too. */
    ck_assert_int_eq(run(&w, "inception", NULL), QDQ_OK);
    ck_assert_str_eq(text_of(&w), "pool-i[*]");
    put("house.lua", "");
    put("inner.lua", "");
    put("maxpool.lua", "");
    rmdir(folder);
    world_close(&w);
}
END_TEST

/* What the makefile took for a library case's info is what its script says. */
START_TEST(folder_of_the_library)
{
    struct qdq_catalog *catalog = NULL;
    struct qdq_error err = {0};
    const struct qdq_case_info *info, *own;
    char name[32];
    folder_setup();
    for (size_t i = 0; (info = qdq_catalog_case(NULL, i)); i++) {
        snprintf(name, sizeof name, "%s.lua", info->name);
        put(name, info->lua);
    }
    ck_assert_int_eq(qdq_catalog_open(folder, &catalog, &err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(catalog, &err), QDQ_OK);
    for (size_t i = 0; (info = qdq_catalog_case(NULL, i)); i++) {
        own = qdq_catalog_case(catalog, i);
        ck_assert_str_eq(own->name, info->name);
        ck_assert_str_eq(own->source, "operator");
        ck_assert_str_eq(own->info, info->info);
        ck_assert_str_eq(own->lua, info->lua);
        snprintf(name, sizeof name, "%s.lua", info->name);
        put(name, "");
    }
    qdq_catalog_free(&catalog);
    rmdir(folder);
}
END_TEST

START_TEST(folder_of_layer_support)
{
    struct qdq_catalog *catalog = NULL;
    struct qdq_error err = {0};
    const struct qdqi_class *rows;
    folder_setup();
    put("a.lua", "return { layer_support = { {class = 'GlobalMaxPool', kind = "
                 "'non_weighted'}, {class = 'Dense', kind = 'weighted', weight_input = "
                 "1, channel_axis = -1, quantize_input = false} } }");
    put("b.lua",
        "return { case = function() end, layer_support = { {class = 'Einsum', "
        "kind = 'multi_input', quantize_weight = false}, {class = 'Quux', kind "
        "= 'weighted', channel_axis = false} } }");
    ck_assert_int_eq(qdq_catalog_open(folder, &catalog, &err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(catalog, &err), QDQ_OK);
    ck_assert_ptr_null(qdqi_catalog_find(catalog, "a"));
    ck_assert_ptr_nonnull(qdqi_catalog_find(catalog, "b"));
    ck_assert_uint_eq(qdqi_catalog_rows(catalog, &rows), 5);
    ck_assert_int_eq(rows[0].support.weight_input, 1);
    ck_assert_int_eq(rows[0].given_axis, QDQ_NO_AXIS);
    ck_assert_int_eq(rows[1].kind, QDQ_MULTI_INPUT);
    ck_assert_int_eq(rows[2].given_axis, -1);
    ck_assert(!rows[2].support.quantize_input);
    ck_assert_int_eq(rows[4].kind, QDQ_NON_WEIGHTED);
    ck_assert_int_eq(rows[4].support.weight_input, -1);
    ck_assert_int_eq(rows[4].given_axis, QDQ_NO_AXIS);
    ck_assert(rows[4].support.quantize_input);
    /* The last counts, so it stands first; Dense is Gemm and MatMul. */
    static const char *const listed[][3] = {
        {"Quux", "Quux", "layer support of b.lua"},
        {"Einsum", "Einsum", NULL},
        {"Dense", "Gemm", NULL},
        {"Dense", "MatMul", NULL},
        {"GlobalMaxPool", "GlobalMaxPool", "layer support of a.lua"}};
    for (size_t i = 0; i < 5; i++) {
        const struct qdq_layer_support *row = qdq_catalog_layer(catalog, i);
        ck_assert_str_eq(row->cls, listed[i][0]);
        ck_assert_str_eq(row->op, listed[i][1]);
        ck_assert_str_eq(row->source, "operator");
        if (listed[i][2])
            ck_assert_str_eq(row->note, listed[i][2]);
    }
    ck_assert_ptr_eq(qdq_catalog_layer(catalog, 5), qdqi_library_layer(0));
    qdq_catalog_free(&catalog);
    put("a.lua", "");
    put("b.lua", "");
    rmdir(folder);
}
END_TEST

/* Each keeps the catalog open, the check names it, and a job that uses it fails. */
static const struct {
    const char *file, *text, *check, *run;
} broken[] = {
    {"bad.lua", "return {\n case = = }", "/bad.lua, line 2: unexpected symbol",
     "case 'bad', line 2: unexpected symbol"},
    {"bad.lua", "return 1", "/bad.lua: the script returned number", "returned number"},
    {"bad.lua", "return {}", "neither 'case' nor 'layer_support'", "has no 'case'"},
    {"bad.lua", "while true do end", "/bad.lua, line 1: it used up its budget",
     "case 'bad', line 1: it used up its budget"},
    {"bad.lua",
     "return { case = function() end,\n info = function() while true do end end }",
     "/bad.lua, line 2: it used up its budget", NULL},
    {"bad.lua", "return { case = function() end, info = {} }", "'info' is a table",
     NULL},
    {"bad.lua", "return { case = function() end, layer_support = 1 }",
     "'layer_support' is a number", NULL},
    {"bad.lua", "return { layer_support = { {} } }",
     "layer_support row 1 has no 'class'", NULL},
    {"bad.lua", "return { layer_support = { {class = 'X'} } }",
     "layer_support row 1 has no 'kind'", NULL},
    {"bad.lua", "return { layer_support = { {class = 'X', kind = 'heavy'} } }",
     "layer_support row 1: 'kind' is not one of weighted, non_weighted, multi_input",
     NULL},
    {"bad.lua",
     "return { layer_support = { {class = 'X', kind = 'multi_input', weight_input = 1} "
     "} }",
     "'weight_input' is for a weighted layer alone", NULL},
    {"bad.lua",
     "return { layer_support = { {class = 'X', kind = 'weighted', channel_axis = 99} } "
     "}",
     "'channel_axis' is to be an integer, -64 to 63", NULL},
    {"bad.lua", "return { layer_support = { {klass = 'X'} } }",
     "unknown member 'klass', did you mean 'class'?", NULL},
    {"bad.lua", "return library('bad')", "library: 'bad' asks for itself",
     "asks for itself"},
    {"residual.lua", "oh no", "/residual.lua, line 1: syntax error",
     "case 'residual', line 1: syntax error"},
    {"bad name.lua", "return { case = function() end }",
     "/bad name.lua: a script's name has at most 64", NULL},
};

enum { N_BROKEN = sizeof broken / sizeof *broken };

START_TEST(folder_with_a_broken_file)
{
    struct world w = {0};
    folder_setup();
    put(broken[_i].file, broken[_i].text);
    world_residual(&w);
    ck_assert_int_eq(qdq_catalog_open(folder, &w.catalog, &w.err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(w.catalog, &w.err), QDQ_CASE_FAILED);
    expect_in(w.err.text, broken[_i].check);
    ck_assert_int_eq(w.err.kind, QDQ_AT_NOTHING);
    const struct qdqi_class *rows;
    ck_assert_uint_eq(qdqi_catalog_rows(w.catalog, &rows), 0);
    if (broken[_i].run) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strlen(broken[_i].file) - 4,
                 broken[_i].file);
        ck_assert_str_eq(qdqi_catalog_find(w.catalog, name)->info, "");
        ck_assert_int_eq(run(&w, name, NULL), QDQ_CASE_FAILED);
        expect_in(w.err.text, broken[_i].run);
    }
    put(broken[_i].file, "");
    rmdir(folder);
    world_close(&w);
}
END_TEST

START_TEST(folder_with_odd_files)
{
    struct world w = {0};
    char path[128];
    folder_setup();
    world_residual(&w);
    snprintf(path, sizeof path, "%s/a_folder.lua", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/fifo.lua", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/long.lua", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, "--", 2, 0), 2);
    ck_assert_int_eq(pwrite(fd, "\n", 1, 256 << 10), 1);
    close(fd);
    ck_assert_int_eq(qdq_catalog_open(folder, &w.catalog, &w.err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(w.catalog, &w.err), QDQ_CASE_FAILED);
    expect_in(w.err.text, "/long.lua: the script is longer than 256 KiB");
    ck_assert_ptr_null(qdqi_catalog_find(w.catalog, "fifo"));
    ck_assert_int_eq(run(&w, "long", NULL), QDQ_CASE_FAILED);
    expect_in(w.err.text, "case 'long'");
    expect_in(w.err.text, "longer than 256 KiB");
    unlink(path);
    /* A dangling link cannot be read; nor can what is no folder. */
    qdq_catalog_free(&w.catalog);
    ck_assert_int_eq(symlink("/no/such/file", path), 0);
    w.err = (struct qdq_error){0};
    ck_assert_int_eq(qdq_catalog_open(folder, &w.catalog, &w.err), QDQ_IO);
    expect_in(w.err.text, "/long.lua: No such file");
    w.err = (struct qdq_error){0};
    ck_assert_int_eq(qdq_catalog_open("/dev/null", &w.catalog, &w.err), QDQ_IO);
    unlink(path);
    snprintf(path, sizeof path, "%s/fifo.lua", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/a_folder.lua", folder);
    rmdir(path);
    rmdir(folder);
    world_close(&w);
}
END_TEST

START_TEST(folder_with_too_many_files)
{
    struct qdq_catalog *catalog = NULL;
    struct qdq_error err = {0};
    char name[32];
    folder_setup();
    for (int i = 0; i < 257; i++) {
        snprintf(name, sizeof name, "case%d.lua", i);
        put(name, "return 1");
    }
    ck_assert_int_eq(qdq_catalog_open(folder, &catalog, &err), QDQ_LIMIT_EXCEEDED);
    expect_in(err.text, "more than 256 scripts");
    for (int i = 0; i < 257; i++) {
        snprintf(name, sizeof name, "case%d.lua", i);
        put(name, "");
    }
    rmdir(folder);
}
END_TEST

/* Cases that ask for one another in a ring, and in a row that is too long. */
START_TEST(library_rings_and_rows)
{
    struct world w = {0};
    char name[32], text[256];
    folder_setup();
    put("ping.lua", "library('pong') return { case = function() end }");
    put("pong.lua", "library('ping') return { case = function() end }");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "row%d.lua", i);
        snprintf(
            text, sizeof text,
            "return { case = function(m, s) return library('row%d').case(m, s) end "
            "}",
            i + 1);
        put(name, text);
    }
    put("loop.lua", "return { case = function(m, s) return 1 + "
                    "library('loop').case(m, s) end }");
    world_residual(&w);
    ck_assert_int_eq(qdq_catalog_open(folder, &w.catalog, &w.err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(w.catalog, &w.err), QDQ_CASE_FAILED);
    expect_in(w.err.text, "/ping.lua, line 1: library: 'pong' asks for itself");
    expect_in(w.err.text, "asks for itself");
    ck_assert_int_eq(run(&w, "ping", NULL), QDQ_CASE_FAILED);
    expect_in(w.err.text, "asks for itself");
    ck_assert_int_eq(run(&w, "row0", NULL), QDQ_CASE_FAILED);
    expect_in(w.err.text, "more than 32 scripts take part");
    ck_assert_int_eq(run(&w, "loop", NULL), QDQ_CASE_FAILED);
    expect_in(w.err.text, "stack overflow");
    put("ping.lua", "");
    put("pong.lua", "");
    put("loop.lua", "");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "row%d.lua", i);
        put(name, "");
    }
    rmdir(folder);
    world_close(&w);
}
END_TEST

/* --- out of memory -------------------------------------------------------- */

START_TEST(every_allocation_may_fail)
{
    struct world w = {0};
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    world_residual(&w);
    while (code != QDQ_OK && ++n < 100000) {
        fail_at = n;
        code = run(&w, "mine",
                   SCRIPT("local t = {} for i, l in ipairs(model:layers()) do "
                          "pcall(function() t[i] = {name = l.name .. '!', "
                          "quantization_index = l.inputs[1] and l.inputs} end) end "
                          "library('residual').case(model, spec) "
                          "for _, e in pairs(spec.layers) do table.insert(t, e) end "
                          "return t"));
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_msg(code == (reached ? QDQ_NO_MEMORY : QDQ_OK),
                      "allocation %ld: code %d, %s", n, code, w.err.text);
    }
    ck_assert_int_gt(n, 200);
    ck_assert_int_lt(n, 100000);
    world_close(&w);
}
END_TEST

START_TEST(every_allocation_of_a_catalog_may_fail)
{
    struct qdq_catalog *catalog = NULL;
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    folder_setup();
    put("a.lua",
        "return { info = 'x', case = function() end, layer_support = { {class = "
        "'X', kind = 'non_weighted'} } }");
    put("bad.lua", "return 1");
    while (code != QDQ_OK && ++n < 100000) {
        struct qdq_error err = {0};
        fail_at = n;
        code = qdq_catalog_open(folder, &catalog, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_msg(code == (reached ? QDQ_NO_MEMORY : QDQ_OK),
                      "allocation %ld: code %d, %s", n, code, err.text);
    }
    ck_assert_int_gt(n, 200);
    qdq_catalog_free(&catalog);
    put("a.lua", "");
    put("bad.lua", "");
    rmdir(folder);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cases");
    TCase *t = tcase_create("hostile");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, hostile_script, 0, N_HOSTILE);
    tcase_add_loop_test(t, generated_script, 0, sizeof generated / sizeof *generated);
    suite_add_tcase(s, t);
    t = tcase_create("scripts");
    tcase_add_loop_test(t, what_scripts_see, 0, N_SEEN);
    tcase_add_test(t, entries_are_read);
    tcase_add_test(t, unknown_case);
    tcase_add_test(t, honest_script);
    tcase_add_loop_test(t, library_case, 0, N_LIBRARY);
    tcase_add_test(t, library_is_listed);
    suite_add_tcase(s, t);
    t = tcase_create("folder");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, folder_missing_and_empty);
    tcase_add_test(t, folder_of_cases);
    tcase_add_test(t, folder_of_the_library);
    tcase_add_test(t, folder_of_layer_support);
    tcase_add_loop_test(t, folder_with_a_broken_file, 0, N_BROKEN);
    tcase_add_test(t, folder_with_odd_files);
    tcase_add_test(t, folder_with_too_many_files);
    tcase_add_test(t, library_rings_and_rows);
    suite_add_tcase(s, t);
    t = tcase_create("memory");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_allocation_may_fail);
    tcase_add_test(t, every_allocation_of_a_catalog_may_fail);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
