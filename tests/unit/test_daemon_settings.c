/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings.h"
#include "daemon.h"

#define GIB (INT64_C(1) << 30)

/* --- bad values name their source, line and key --------------------------- */

static const struct {
    const char *file, *environment, *flag, *value;
    const char *wanted[3]; /* all of these stand in the error */
} bad[] = {
    {"[http]\nlistn = x\n", NULL, NULL, NULL, {"test.conf:2", "http.listn", "unknown"}},
    {"\n\n[htp]\nlisten = x\n", NULL, NULL, NULL, {"test.conf:4", "htp.listen"}},
    {"[queue]\nmax = many\n", NULL, NULL, NULL, {"test.conf:2", "queue.max", "number"}},
    {"[queue]\nmax = 0\n", NULL, NULL, NULL, {"test.conf:2", "queue.max", "between"}},
    {"[queue]\nmax = -1\n", NULL, NULL, NULL, {"queue.max", "number"}},
    {"[queue]\nmax = 1K\n", NULL, NULL, NULL, {"queue.max", "number"}},
    {"[queue]\nmax = 5\nmax = 6\n", NULL, NULL, NULL, {":3", "queue.max", "twice"}},
    {"[queue]\nnonsense\n", NULL, NULL, NULL, {"test.conf:2"}},
    {"[queue\nmax = 5\n", NULL, NULL, NULL, {"test.conf:1"}},
    {"[http]\nmax_body = 99999999999G\n", NULL, NULL, NULL, {"http.max_body"}},
    {"[http]\nmax_body = 1T\n", NULL, NULL, NULL, {"http.max_body", "K, M or G"}},
    {"[http]\nmax_body =\n", NULL, NULL, NULL, {"http.max_body", "number"}},
    {NULL, "4 ", NULL, NULL, {"QDQD_WORKERS_COUNT", "workers.count", "number"}},
    {NULL, "257", NULL, NULL, {"QDQD_WORKERS_COUNT", "workers.count", "between"}},
    {NULL, NULL, "workers.count", "x", {"command line", "workers.count"}},
    {"[workers]\ncage = of\n", NULL, NULL, NULL, {":2", "workers.cage", "one of"}},
    {"[workers]\ncage = \n", NULL, NULL, NULL, {":2", "workers.cage", "auto"}},
    {NULL, NULL, "workers.cage", "auto require", {"workers.cage", "one of"}},
    {NULL, NULL, "workers.cnt", "1", {"workers.cnt", "unknown"}},
};

START_TEST(refuses)
{
    char error[SETTINGS_ERROR];
    struct settings settings = {0};
    const struct setting_flag flag = {bad[_i].flag, bad[_i].value};
    char file[128] = "";
    if (bad[_i].file) {
        scratch_write("test.conf", bad[_i].file);
        snprintf(file, sizeof file, "%s", scratch_path("test.conf"));
    }
    if (bad[_i].environment)
        setenv("QDQD_WORKERS_COUNT", bad[_i].environment, 1);
    ck_assert(!settings_load(*file ? file : NULL, &flag, bad[_i].flag ? 1 : 0,
                             &settings, error));
    for (size_t i = 0; i < 3 && bad[_i].wanted[i]; i++)
        ck_assert_msg(strstr(error, bad[_i].wanted[i]), "\"%s\" lacks \"%s\"", error,
                      bad[_i].wanted[i]);
    ck_assert_ptr_null(settings.http_listen);
}
END_TEST

START_TEST(missing_file)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    ck_assert(!settings_load(scratch_path("none"), NULL, 0, &settings, error));
    ck_assert_ptr_nonnull(strstr(error, "none"));
}
END_TEST

/* --- good ones ------------------------------------------------------------ */

START_TEST(defaults)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    ck_assert_msg(settings_load(NULL, NULL, 0, &settings, error), "%s", error);
    ck_assert_str_eq(settings.http_listen, "127.0.0.1:8383");
    ck_assert_int_eq(settings.http_max_body, 4 * GIB);
    ck_assert_int_eq(settings.workers_attempts, 2);
    settings_fini(&settings);
}
END_TEST

/* Each source in turn, from the weakest to the strongest. */
static const struct {
    const char *file, *environment, *flag;
    int64_t wanted;
} order[] = {
    {NULL, NULL, NULL, 1}, {"2", NULL, NULL, 2}, {"2", "3", NULL, 3},
    {"2", "3", "4", 4},    {"2", NULL, "4", 4},
};

START_TEST(precedence)
{
    char error[SETTINGS_ERROR], text[64], file[128];
    struct settings settings;
    const struct setting_flag flag = {"workers.count", order[_i].flag};
    snprintf(text, sizeof text, "[workers]\n%s%s\n", order[_i].file ? "count = " : "",
             order[_i].file ? order[_i].file : "");
    scratch_write("test.conf", text);
    snprintf(file, sizeof file, "%s", scratch_path("test.conf"));
    if (order[_i].environment)
        setenv("QDQD_WORKERS_COUNT", order[_i].environment, 1);
    ck_assert_msg(settings_load(file, &flag, order[_i].flag ? 1 : 0, &settings, error),
                  "%s", error);
    ck_assert_int_eq(settings.workers_count, order[_i].wanted);
    settings_fini(&settings);
}
END_TEST

static const char *const words[] = {"auto", "require", "off"};

static const struct {
    const char *text;
    int64_t wanted;
} sizes[] = {{"1", 1}, {"3K", 3072}, {"5M", 5 << 20}, {"2G", 2 * GIB}};

START_TEST(choices)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    const struct setting_flag flag = {"workers.cage", words[_i]};
    ck_assert_msg(settings_load(NULL, &flag, 1, &settings, error), "%s", error);
    ck_assert_str_eq(settings.workers_cage, words[_i]);
    settings_fini(&settings);
}
END_TEST

START_TEST(suffixes)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    const struct setting_flag flag = {"http.max_body", sizes[_i].text};
    ck_assert_msg(settings_load(NULL, &flag, 1, &settings, error), "%s", error);
    ck_assert_int_eq(settings.http_max_body, sizes[_i].wanted);
    settings_fini(&settings);
}
END_TEST

/* The installed file shows every setting, with its default: uncommented, it changes
   nothing. */
START_TEST(sample_file)
{
    static const char *const keys[] = {
#define SETTING_TEXT(section, key, def, text) "\n" #key " =",
#define SETTING_CHOICE(section, key, def, choices, text) "\n" #key " = ",
#define SETTING_NUMBER(section, key, def, min, max, unit, text) "\n" #key " = ",
#include "settings_keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    };
    char error[SETTINGS_ERROR], text[8192] = "", line[256];
    struct settings settings, standard;
    FILE *in = fopen(unit_path("etc/qdqd.conf"), "r");
    ck_assert_ptr_nonnull(in);
    while (fgets(line, sizeof line, in)) {
        const char *from = *line == '#' && line[1] != ' ' ? line + 1 : line;
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%s", from);
    }
    fclose(in);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(strstr(text, keys[i]), "etc/qdqd.conf lacks %s", keys[i] + 1);
    scratch_write("test.conf", text);
    ck_assert_msg(settings_load(scratch_path("test.conf"), NULL, 0, &settings, error),
                  "%s", error);
    ck_assert(settings_load(NULL, NULL, 0, &standard, error));
#define SETTING_TEXT(section, key, def, text)
#define SETTING_CHOICE(section, key, def, choices, text) \
    ck_assert_str_eq(settings.section##_##key, standard.section##_##key);
#define SETTING_NUMBER(section, key, def, min, max, unit, text) \
    ck_assert_int_eq(settings.section##_##key, standard.section##_##key);
#include "settings_keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    ck_assert_str_eq(settings.http_listen, standard.http_listen);
    settings_fini(&settings);
    settings_fini(&standard);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("daemon/settings");
    TCase *t = tcase_create("load");
    tcase_add_checked_fixture(t, scratch_make, scratch_remove);
    tcase_add_loop_test(t, refuses, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(t, missing_file);
    tcase_add_test(t, defaults);
    tcase_add_loop_test(t, precedence, 0, (int)(sizeof order / sizeof *order));
    tcase_add_loop_test(t, choices, 0, (int)(sizeof words / sizeof *words));
    tcase_add_loop_test(t, suffixes, 0, (int)(sizeof sizes / sizeof *sizes));
    tcase_add_test(t, sample_file);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
