/* SPDX-License-Identifier: Apache-2.0 */
/* No script, however hostile, can do more than fail. */
#include "config.h"

#include "cases.h"
#include "failing.h"

#include <time.h>

/* --- scripts that fail ---------------------------------------------------- */

/* The text of scripts that only their time ends. They have little of it; "pcall in pcall" has
   all that a script may take. */
static const char out_of_time[] = "used up their time";
static const int64_t little_time = 200 * 1000 * 1000;

/* Each of these scripts ends as CASE_FAILED with this text in its message. */
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
     out_of_time},
    {"recursion in C", SCRIPT("local function f() table.sort({1, 2}, f) end f()"),
     "C stack overflow"},
    {"arguments without end", SCRIPT("local function f(...) return f(1, ...) end f()"),
     out_of_time},
    {"a table of 2^30", SCRIPT("local t = table.move({}, 1, 1 << 30, 1)"), "budget"},

    /* long work in C functions of Lua's library */
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

    /* functions that the sandbox lacks */
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

    /* errors and their lines */
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

    /* wrong return values */
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
     SCRIPT("local t = {} for i = 1, 1100000 do t[i] = i end "
            "return { {name = 'a', quantization_index = t} }"),
     "'quantization_index' has more than 1048576 elements"},

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

/* Expects that a script fails with this text, in bounded time, and that the next
   script runs. */
static void
expect_failure(struct world *w, const char *what, const char *lua, const char *text)
{
    int64_t left = little_time;
    double start = cpu_seconds();
    enum qdq_code code = run_within(w, "mine", lua, text == out_of_time ? &left : NULL);
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

UNIT_LOOP(hostile_script, N_HOSTILE)
{
    struct world w = {0};
    world_residual(&w);
    expect_failure(&w, hostile[_i].what, hostile[_i].lua, hostile[_i].text);
    world_close(&w);
}

/* Scripts that are made by repetition: `before`, then `unit` n times, then `after`. */
static const struct {
    const char *what, *before, *unit, *after, *text;
    size_t n;
} generated[] = {
    {"pending gotos", SCRIPT(""), "", "", "", 0}, /* a valid script, which must run */
    {"gotos", "do ", "goto a ", "::a:: end return 1", "returned number", 30000},
    {"labels", "", "::a:: ", "", "C stack overflow", 30000},
    {"breaks", "while true do ", "break ", "end return 1", "too many labels/gotos",
     40000},
    {"elseifs", "if a then ", "elseif a then ", "end return 1", "returned number",
     16000},
    {"ors", "return a", " or a", "", out_of_time, 50000},
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

UNIT_ROWS(generated_script, generated)
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

/* Cases that run one after the other share a time. */
UNIT_TEST(time_of_all_cases)
{
    struct world w = {0};
    int64_t left = 5 * 1000 * 1000;
    world_residual(&w);
    double start = cpu_seconds();
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(run_within(&w, "slow", SCRIPT("while true do end"), &left),
                         QDQ_CASE_FAILED);
        ck_assert_msg(strstr(w.err.text, i ? "all cases together" : "used up"), "%s",
                      w.err.text);
    }
    ck_assert_int_le(left, 0);
    ck_assert(cpu_seconds() - start < 1);
    world_close(&w);
}

/* The limits are far above the needs of a case that examines every node in detail. */
UNIT_TEST(honest_script)
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

/* --- out of memory -------------------------------------------------------- */

UNIT_TEST(every_allocation_may_fail)
{
    struct world w = {0};
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    world_residual(&w);
    while (code != QDQ_OK && n < 100000) {
        n += fault_stride();
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

UNIT_SUITE("sandbox", .timeout = 120)
