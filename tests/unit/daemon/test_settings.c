/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/settings.h"
#include "daemon.h"

#define GIB (INT64_C(1) << 30)

/* --- bad values name their source, line and key --------------------------- */

static const struct {
    const char *file, *environment, *flag, *value;
    const char *wanted[3]; /* texts that the error contains */
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

UNIT_ROWS(refuses, bad)
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
    ck_assert(!settings_load(*file ? file : NULL, &flag, bad[_i].flag ? 1 : 0, NULL,
                             &settings, error));
    for (size_t i = 0; i < 3 && bad[_i].wanted[i]; i++)
        ck_assert_msg(strstr(error, bad[_i].wanted[i]), "\"%s\" lacks \"%s\"", error,
                      bad[_i].wanted[i]);
    ck_assert_ptr_null(settings.http_listen);
}

UNIT_TEST(missing_file)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    ck_assert(!settings_load(scratch_path("none"), NULL, 0, NULL, &settings, error));
    ck_assert_ptr_nonnull(strstr(error, "none"));
}

/* --- valid values --------------------------------------------------------- */

UNIT_TEST(defaults)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    ck_assert_msg(settings_load(NULL, NULL, 0, NULL, &settings, error), "%s", error);
    ck_assert_str_eq(settings.http_listen, "127.0.0.1:8383");
    ck_assert_int_eq(settings.http_max_body, 4 * GIB);
    ck_assert_int_eq(settings.workers_attempts, 2);
    settings_fini(&settings);
}

/* The sources in turn, from the weakest to the strongest. */
static const struct {
    const char *file, *environment, *flag;
    int64_t wanted;
} order[] = {
    {NULL, NULL, NULL, 1}, {"2", NULL, NULL, 2}, {"2", "3", NULL, 3},
    {"2", "3", "4", 4},    {"2", NULL, "4", 4},
};

UNIT_ROWS(precedence, order)
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
    ck_assert_msg(
        settings_load(file, &flag, order[_i].flag ? 1 : 0, NULL, &settings, error),
        "%s", error);
    ck_assert_int_eq(settings.workers_count, order[_i].wanted);
    settings_fini(&settings);
}

static const char *const words[] = {"auto", "require", "off"};

static const struct {
    const char *text;
    int64_t wanted;
} sizes[] = {{"1", 1}, {"3K", 3072}, {"5M", 5 << 20}, {"2G", 2 * GIB}};

UNIT_ROWS(choices, words)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    const struct setting_flag flag = {"workers.cage", words[_i]};
    ck_assert_msg(settings_load(NULL, &flag, 1, NULL, &settings, error), "%s", error);
    ck_assert_str_eq(settings.workers_cage, words[_i]);
    settings_fini(&settings);
}

UNIT_ROWS(suffixes, sizes)
{
    char error[SETTINGS_ERROR];
    struct settings settings;
    const struct setting_flag flag = {"http.max_body", sizes[_i].text};
    ck_assert_msg(settings_load(NULL, &flag, 1, NULL, &settings, error), "%s", error);
    ck_assert_int_eq(settings.http_max_body, sizes[_i].wanted);
    settings_fini(&settings);
}

/* Returns the text that `print` writes. */
static char *
printed(void (*print)(FILE *out))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    print(out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

/* The installed file shows every setting with its default, so that uncommenting all
   of them changes nothing. */
UNIT_TEST(sample_file)
{
    static const char *const keys[] = {
#define SETTING_TEXT(section, key, def, reload, text) "\n" #key " =",
#define SETTING_CHOICE(section, key, def, choices, reload, text) "\n" #key " = ",
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text) "\n" #key " = ",
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    };
    char error[SETTINGS_ERROR], text[32768] = "", *conf = printed(settings_print_conf);
    struct settings settings, standard;
    for (char *line = conf, *end; (end = strchr(line, '\n')); line = end + 1) {
        const char *from = *line == '#' && line[1] != ' ' ? line + 1 : line;
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%.*s", (int)(end + 1 - from), from);
    }
    free(conf);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(strstr(text, keys[i]), "qdqd.conf lacks %s", keys[i] + 1);
    scratch_write("test.conf", text);
    ck_assert_msg(
        settings_load(scratch_path("test.conf"), NULL, 0, NULL, &settings, error), "%s",
        error);
    ck_assert(settings_load(NULL, NULL, 0, NULL, &standard, error));
#define SETTING_TEXT(section, key, def, reload, text)
#define SETTING_CHOICE(section, key, def, choices, reload, text) \
    ck_assert_str_eq(settings.section##_##key, standard.section##_##key);
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text) \
    ck_assert_int_eq(settings.section##_##key, standard.section##_##key);
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    ck_assert_str_eq(settings.http_listen, standard.http_listen);
    settings_fini(&settings);
    settings_fini(&standard);
}

/* The manual page and --help name every setting; the page also names its variable. */
UNIT_TEST(documented_for_people)
{
    static const char *const names[][3] = {
#define SETTING_TEXT(section, key, def, reload, text) {#section, #key, text},
#define SETTING_CHOICE(section, key, def, choices, reload, text) {#section, #key, text},
#define SETTING_NUMBER(section, key, def, min, max, unit, reload, text) \
    {#section, #key, text},
#include "settings/keys.h"
#undef SETTING_TEXT
#undef SETTING_CHOICE
#undef SETTING_NUMBER
    };
    char *manual = printed(settings_print_manual), *help = printed(settings_help);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, ".Ev QDQD_%s_%s\n", names[i][0], names[i][1]);
        for (char *c = wanted + 4; *c; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        ck_assert_msg(strstr(manual, wanted + 1), "the manual lacks %s", wanted);
        snprintf(wanted, sizeof wanted, "  %s.%s (", names[i][0], names[i][1]);
        ck_assert_msg(strstr(help, wanted), "--help lacks %s", wanted);
        ck_assert_msg(names[i][2][strlen(names[i][2]) - 1] == '.', "%s: no sentence",
                      wanted);
    }
    free(manual);
    free(help);
}

/* --- changes while it runs ------------------------------------------------ */

static char changes[256];

static void
note_change(const char *section, const char *key, bool now)
{
    size_t len = strlen(changes);
    snprintf(changes + len, sizeof changes - len, "%s.%s%s ", section, key,
             now ? "" : "!");
}

UNIT_TEST(applies)
{
    char error[SETTINGS_ERROR];
    struct settings settings, fresh;
    const struct setting_flag flags[] = {
        {"queue.max", "7"}, {"workers.count", "3"}, {"workers.cage", "off"}};
    ck_assert(settings_load(NULL, NULL, 0, NULL, &settings, error));
    ck_assert(settings_load(NULL, flags, 3, NULL, &fresh, error));
    *changes = '\0';
    settings_apply(&settings, &fresh, note_change);
    ck_assert_str_eq(changes, "queue.max workers.count! workers.cage! ");
    ck_assert_int_eq(settings.queue_max, 7);
    ck_assert_int_eq(settings.workers_count, 1);
    ck_assert_str_eq(settings.workers_cage, "auto");
    settings_fini(&settings);
    settings_fini(&fresh);
}

/* Each setting's value and source is printed on a line. */
UNIT_TEST(shows_origins)
{
    char error[SETTINGS_ERROR], *text = NULL, wanted[256];
    size_t size;
    struct settings settings;
    const struct setting_flag flag = {"http.max_body", "3M"};
    scratch_write("test.conf", "\n[queue]\nmax = 5\n");
    setenv("QDQD_WORKERS_COUNT", "2", 1);
    ck_assert(
        settings_load(scratch_path("test.conf"), &flag, 1, NULL, &settings, error));
    FILE *out = open_memstream(&text, &size);
    settings_print(&settings, out);
    fclose(out);
    snprintf(wanted, sizeof wanted, "queue.max = 5  # %s:3\n",
             scratch_path("test.conf"));
    ck_assert_ptr_nonnull(strstr(text, wanted));
    ck_assert_ptr_nonnull(strstr(text, "workers.count = 2  # QDQD_WORKERS_COUNT\n"));
    ck_assert_ptr_nonnull(strstr(text, "http.max_body = 3M  # command line\n"));
    ck_assert_ptr_nonnull(strstr(text, "workers.attempts = 2  # default\n"));
    free(text);
    settings_fini(&settings);
}

/* --- the environment of a worker process ---------------------------------- */

static const char *
find_variable(char **environment, const char *name)
{
    size_t len = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
            return *environment + len + 1;
    return NULL;
}

/* The environment contains the settings that concern a worker, with their current
   values from any source, no other setting, and all variables that are not settings. */
UNIT_TEST(environment_of_a_worker)
{
    static const struct {
        const char *name, *value;
    } wanted[] = {
        {"QDQD_WORKERS_COUNT", "3"},      {"QDQD_WORKERS_CAGE", "off"},
        {"QDQD_LIMITS_GRAPH_DEPTH", "7"}, {"QDQD_LIMITS_TENSOR_BYTES", "2048"},
        {"QDQD_WORKERS_ATTEMPTS", "2"},   {"QDQD_ENGINE_RUNTIME", ""},
        {"QDQD_QUEUE_MAX", NULL},         {"QDQD_STATE_DIR", NULL},
        {"QDQD_TEST_OTHER", "kept"},
    };
    const struct setting_flag flags[] = {{"workers.count", "3"},
                                         {"workers.cage", "off"},
                                         {"limits.tensor_bytes", "2K"},
                                         {"engine.runtime", ""},
                                         {"queue.max", "7"}};
    char error[SETTINGS_ERROR];
    struct settings settings;
    setenv("QDQD_WORKERS_COUNT", "2", 1);
    setenv("QDQD_LIMITS_GRAPH_DEPTH", "7", 1);
    setenv("QDQD_STATE_DIR", "/somewhere", 1);
    setenv("QDQD_TEST_OTHER", "kept", 1);
    ck_assert(settings_load(NULL, flags, 5, NULL, &settings, error));
    char **environment = settings_environment(&settings);
    ck_assert_ptr_nonnull(environment);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const char *value = find_variable(environment, wanted[i].name);
        ck_assert_msg(!value == !wanted[i].value &&
                          (!value || strcmp(value, wanted[i].value) == 0),
                      "%s is %s", wanted[i].name, value ? value : "absent");
    }
    settings_environment_free(&environment);
    ck_assert_ptr_null(environment);
    settings_fini(&settings);
}

UNIT_SUITE("daemon/settings", .setup = scratch_make, .teardown = scratch_remove)
