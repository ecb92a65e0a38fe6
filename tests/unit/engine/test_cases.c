/* SPDX-License-Identifier: Apache-2.0 */
/* Insertion cases: the graph that scripts see, and the entries that the library's
   cases return. */
#include "config.h"

#include "cases.h"
#include "qdq/targets.h"

/* --- the graph that scripts see ------------------------------------------- */

/* Makes a script that returns one entry whose name is `text`; `e(…)` joins texts
   with a blank. */
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

    /* the part of Lua that scripts have */
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

UNIT_LOOP(scripts_see_the_graph, N_SEEN)
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

UNIT_TEST(scripts_see_the_target)
{
    static const char *const names[] = {"tensorrt", "onnxruntime"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct world w = {0};
        world_residual(&w);
        w.spec.target = qdq_target_find(names[i]);
        ck_assert_int_eq(run(&w, "mine", SCRIPT("return { {name = spec.target} }")),
                         QDQ_OK);
        ck_assert_uint_eq(w.n, 1);
        ck_assert_str_eq(w.entries[0].names[0], names[i]);
        world_close(&w);
    }
}

UNIT_TEST(entries_are_read)
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

UNIT_TEST(unknown_case)
{
    struct world w = {0};
    world_residual(&w);
    ck_assert_int_eq(run(&w, "residul", NULL), QDQ_INVALID_SPEC);
    ck_assert_str_eq(w.err.where, "/cases/0");
    ck_assert_str_eq(w.err.text,
                     "there is no case \"residul\", did you mean \"residual\"?");
    world_close(&w);
}

/* --- the library's cases -------------------------------------------------- */

/* The entries that each case returns for a model built from the words of `graph`:
   "op name inputs output; …", where x is the input and y an output. */
static const struct {
    const char *graph, *cases, *entries;
} library[] = {
    /* residual: the first input that ends a convolution and is used once gets no
       pair */
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
    /* attention */
    {"MatMul p x,x a; Softmax soft a b; MatMul o b,x y", "attention", "p[0,1] o[0,1]"},
    {"MatMul p x,x a; Mul m a,s b; Relu r x z; Add mask b,z c; Softmax soft c d; "
     "MatMul o d,x y",
     "attention", "p[0,1] o[0,1]"},
    {"MatMul p x,w a; Softmax soft a b; MatMul o b,x y", "attention", ""},
    {"Softmax soft x b; MatMul o b,x y", "attention", ""},
    {"MatMul p x,x a; Softmax soft a y", "attention", ""},
    /* maxpool, batchnorm */
    {"Relu a x p; MaxPool m1 p q; MaxPool m2 x y", "maxpool", "m1[*] m2[*]"},
    {"Relu a x p; MaxPool m1 p q; Add add p,q y", "inception", "m1[*]"},
    {"Relu a x p; BatchNormalization n p,s,s,s,s y", "batchnorm", "n[*]"},
    {"BatchNormalization n x,s,s,s,s y", "batchnorm", "n[*]"},
    {"Conv a x,w p; BatchNormalization n p,s,s,s,s y", "batchnorm", ""},
    {"Conv a x,w p; Identity i p q; BatchNormalization n q,s,s,s,s y", "batchnorm", ""},
    {"ConvTranspose a x,w p; BatchNormalization n p,s,s,s,s y", "batchnorm", ""},
    {"Gemm a x,w p; BatchNormalization n p,s,s,s,s y", "batchnorm", "n[*]"},
    /* cases that run other cases */
    {"BatchNormalization n x,s,s,s,s p; Relu r p q; Conv a q,w t; MaxPool m x u; "
     "Add add t,u y",
     "resnet_v2", "add[1] n[*] m[*]"},
    {"Sigmoid g x p; Mul swish x,p q; GlobalAveragePool s1 q t; Sigmoid g2 t u; "
     "Mul se q,u v; Conv c v,w o; Add add o,x y",
     "efficientnet", "add[1] se[0,1]"},
    {"Mul scale x,s y", "efficientnet", ""},
    /* layers that the user's spec names get no entry of a case */
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

UNIT_LOOP(library_case, N_LIBRARY)
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

/* The rows that make generates agree with the scripts, and are sorted by name. */
UNIT_TEST(library_is_listed)
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
    ck_assert_uint_eq(n, 9);
    ck_assert_ptr_null(qdqi_catalog_find(catalog, "no_such_case"));
    ck_assert_int_eq(qdq_catalog_check(catalog, &err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(NULL, &err), QDQ_OK);
    ck_assert_ptr_eq(qdq_catalog_layer(catalog, 0), qdqi_library_layer(0));
    qdq_catalog_free(&catalog);
    qdq_catalog_free(&catalog);
}

UNIT_SUITE("cases")
