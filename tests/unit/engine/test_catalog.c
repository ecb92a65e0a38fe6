/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: an operator's folder of cases and layer support. */
#include "config.h"

#include "cases.h"
#include "failing.h"

#include <fcntl.h>
#include <sys/stat.h>

/* --- an operator's folder ------------------------------------------------- */

static char folder[64];

static void
folder_setup(void)
{
    unit_make_folder(folder, sizeof folder);
}

/* Writes a file into the folder; an empty text removes it. */
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

UNIT_TEST(folder_missing_and_empty)
{
    struct qdq_catalog *catalog = NULL;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdq_catalog_open("/no/such/folder", &catalog, &err), QDQ_OK);
    ck_assert_str_eq(qdq_catalog_case(catalog, 0)->name, "attention");
    qdq_catalog_free(&catalog);
    folder_setup();
    put("readme.txt", "no script");
    put(".hidden.lua", "no script either");
    ck_assert_int_eq(qdq_catalog_open(folder, &catalog, &err), QDQ_OK);
    ck_assert_int_eq(qdq_catalog_check(catalog, &err), QDQ_OK);
    ck_assert_ptr_null(qdq_catalog_case(catalog, 9));
    qdq_catalog_free(&catalog);
    put("readme.txt", "");
    put(".hidden.lua", "");
    rmdir(folder);
}

UNIT_TEST(folder_of_cases)
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
    ck_assert_uint_eq(n, 11);
    ck_assert_int_eq(run(&w, "house", NULL), QDQ_OK);
    ck_assert_str_eq(text_of(&w), "conv1[*]");
    /* A case that replaces another one does so for the cases that run it, too. */
    ck_assert_int_eq(run(&w, "inception", NULL), QDQ_OK);
    ck_assert_str_eq(text_of(&w), "pool-i[*]");
    put("house.lua", "");
    put("inner.lua", "");
    put("maxpool.lua", "");
    rmdir(folder);
    world_close(&w);
}

/* The descriptions that make found in the library's cases are those of their
   scripts. */
UNIT_TEST(folder_of_the_library)
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

UNIT_TEST(folder_of_layer_support)
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
    /* The last entry wins, so it is listed first; Dense is Gemm and MatMul. */
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

/* With each of these files the catalog still opens, the check names the file, and a
   job that uses it fails. */
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

UNIT_LOOP(folder_with_a_broken_file, N_BROKEN)
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

UNIT_TEST(folder_with_odd_files)
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
    /* A dangling link cannot be read, and neither can a file in the place of the
       folder. */
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

UNIT_TEST(folder_with_too_many_files)
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

/* Cases that run one another in a circle, or in a chain that is too long, are
   refused. */
UNIT_TEST(library_rings_and_rows)
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

/* --- out of memory -------------------------------------------------------- */

UNIT_TEST(every_allocation_of_a_catalog_may_fail)
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

UNIT_SUITE("catalog", .timeout = 120)
