/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/sections.h"
#include "settings/file.h"
#include "daemon.h"

#define LONGEST "a23456789-123456789_123456789-12"
#define KIB 1024

/* A kind of section that exists only in this test. */
struct shelf {
    struct section section;
    char *place, *order;
    _Atomic int64_t books;
};

static const struct setting_row rows[] = {
    ROW_TEXT("shelf", "place", struct shelf, place, "hall", NULL, START, "Where."),
    ROW_TEXT("shelf", "order", struct shelf, order, "size", "size name", START, "How."),
    ROW_NUMBER("shelf", "books", struct shelf, books, 10, 1, 4 * KIB, BYTES, NOW,
               "How many."),
};

static const struct section_kind kinds[] = {
    {"lamp", sizeof(struct section), NULL, 0, false},
    {"shelf", sizeof(struct shelf), rows, sizeof rows / sizeof *rows, false},
    {"box", sizeof(struct shelf), rows, sizeof rows / sizeof *rows, true}};

static struct sections sections;
static char plain[256], error[SETTINGS_ERROR];

static void
set_up(void)
{
    scratch_make();
    sections = (struct sections){.kinds = kinds, .n_kinds = 3};
    *plain = *error = '\0';
}

static void
tear_down(void)
{
    sections_fini(&sections);
    scratch_remove();
}

/* Records the keys of plain sections. */
static bool
note(void *arg, const char *section, const char *key, const char *value,
     const char *where, char problem[SETTINGS_ERROR])
{
    size_t len = strlen(plain);
    (void)arg;
    (void)where;
    (void)problem;
    snprintf(plain + len, sizeof plain - len, "%s.%s=%s ", section, key, value);
    return true;
}

static bool
read_text(const char *name, const char *text)
{
    scratch_write(name, text);
    return settings_file_read(scratch_path(name), note, NULL, &sections, error);
}

static const struct shelf *
find_shelf(const char *name)
{
    const struct section *section = sections_find(&sections, "shelf", name);
    ck_assert_ptr_nonnull(section);
    return (const struct shelf *)section;
}

/* --- errors name their line ----------------------------------------------- */

static const struct {
    const char *text;
    const char *wanted[3]; /* texts that the error contains */
} bad[] = {
    {"[shelf]\n", {"test.conf:1: [shelf]", "name"}},
    {"\n[shelf ]\n", {"test.conf:2: [shelf ]", "name"}},
    {"[shelf  a]\n", {"test.conf:1", "name"}},
    {"[shelf a b]\n", {"test.conf:1: [shelf a b]", "name"}},
    {"[shelf A]\n", {"test.conf:1: [shelf A]", "name"}},
    {"[shelf a.b]\n", {"test.conf:1", "name"}},
    {"[shelf -a]\n", {"test.conf:1", "name"}},
    {"[shelf _a]\n", {"test.conf:1", "name"}},
    {"[shelf " LONGEST "3]\n", {"test.conf:1", "1 to 32"}},
    {"[shelf " LONGEST LONGEST "]\n", {"test.conf:1: [shelf " LONGEST LONGEST "]"}},
    {"\xEF\xBB\xBF[shelf A]\n", {"test.conf:1: [shelf A]", "name"}},
    {"  [shelf A]\n", {"test.conf:1: [shelf A]", "name"}},
    {"[shelf a\n", {"test.conf:1: not a section"}},
    {"[shelf a]\n\n[lamp a]\n[shelf a]\n", {"test.conf:4", "[shelf a]", "test.conf:1"}},
    {"[shelf a]\n# x\ncolour = 1\n", {"test.conf:3: [shelf a] colour: unknown key"}},
    {"[lamp a]\nplace = x\n", {"test.conf:2: [lamp a] place: unknown key"}},
    {"[shelf a]\nplace = x\nplace = y\n", {"test.conf:3: [shelf a] place", "twice"}},
    {"[shelf a]\nplace = x\n  y\n", {"test.conf:3: [shelf a] place", "twice"}},
    {"[shelf a]\nplace = x\n  [shelf b]\n", {"test.conf:3: [shelf a] place", "twice"}},
    {"[shelf a]\nbooks = many\n", {"test.conf:2: [shelf a] books", "K, M or G"}},
    {"[shelf a]\nbooks = 5K\n", {"test.conf:2: [shelf a] books", "between 1 and 4096"}},
    {"[shelf a]\norder = age\n", {"test.conf:2: [shelf a] order", "size name"}},
    {"[shelf a]\nplace\n", {"test.conf:2: not a section"}},
};

UNIT_ROWS(refuses, bad)
{
    ck_assert_msg(!read_text("test.conf", bad[_i].text), "row %d is read", _i);
    for (size_t i = 0; i < 3 && bad[_i].wanted[i]; i++)
        ck_assert_msg(strstr(error, bad[_i].wanted[i]), "\"%s\" lacks \"%s\"", error,
                      bad[_i].wanted[i]);
}

UNIT_TEST(a_second_file_cannot_repeat_a_name)
{
    ck_assert_msg(read_text("first.conf", "\n[shelf a]\n"), "%s", error);
    ck_assert(!read_text("second.conf", "[shelf a]\n"));
    ck_assert_ptr_nonnull(strstr(error, "second.conf:1: [shelf a]"));
    ck_assert_ptr_nonnull(strstr(error, "first.conf:2"));
}

/* --- valid files ---------------------------------------------------------- */

UNIT_TEST(each_name_has_its_values)
{
    ck_assert_msg(read_text("test.conf", "[shelf a]\nplace = cellar\nbooks = 2K\n"
                                         "[shelf b]\norder = name\n[lamp a]\n"),
                  "%s", error);
    ck_assert_str_eq(find_shelf("a")->place, "cellar");
    ck_assert_str_eq(find_shelf("a")->order, "size");
    ck_assert_int_eq(find_shelf("a")->books, 2 * KIB);
    ck_assert_str_eq(find_shelf("b")->place, "hall");
    ck_assert_str_eq(find_shelf("b")->order, "name");
    ck_assert_int_eq(find_shelf("b")->books, 10);
    ck_assert_ptr_nonnull(sections_find(&sections, "lamp", "a"));
    ck_assert_ptr_null(sections_find(&sections, "lamp", "b"));
    ck_assert_str_eq(sections.first->where + strlen(scratch), "/test.conf:1");
    ck_assert_ptr_eq(sections.first->next, sections_find(&sections, "shelf", "b"));
}

/* Valid forms of a section's head. */
static const char *const begins[] = {"[shelf a]\n", "[shelf a] ; and more\n",
                                     "\xEF\xBB\xBF[shelf a]\r\n", "\n  [shelf a]\n",
                                     "[queue]\nmax = 5\n[shelf a]\n"};

UNIT_ROWS(begins_a_section, begins)
{
    char text[128];
    snprintf(text, sizeof text, "%sbooks = 7\n", begins[_i]);
    ck_assert_msg(read_text("test.conf", text), "%s", error);
    ck_assert_int_eq(find_shelf("a")->books, 7);
}

UNIT_TEST(the_longest_name)
{
    ck_assert_msg(read_text("test.conf", "[shelf " LONGEST "]\nbooks = 3\n"), "%s",
                  error);
    ck_assert_int_eq(find_shelf(LONGEST)->books, 3);
}

/* Plain sections may stand between named ones; a section whose first word is not a
   kind is a plain one. */
UNIT_TEST(plain_sections_stay)
{
    ck_assert_msg(read_text("test.conf", "[queue]\nmax = 5\n[shelf a]\nbooks = 3\n"
                                         "[queue]\nmin = 1\n[shelves a]\nx = y\n"),
                  "%s", error);
    ck_assert_str_eq(plain, "queue.max=5 queue.min=1 shelves a.x=y ");
    ck_assert_int_eq(find_shelf("a")->books, 3);
}

/* A kind may keep keys that it has no row for. */
UNIT_TEST(keeps_other_keys)
{
    ck_assert_msg(
        read_text("one.conf", "[box a]\nplace = attic\nlid = no\ncolour = red\n"), "%s",
        error);
    const struct section *box = sections_find(&sections, "box", "a");
    const struct section_other *o = box->others;
    ck_assert_str_eq(((const struct shelf *)box)->place, "attic");
    ck_assert_str_eq(o->key, "lid");
    ck_assert_str_eq(o->value, "no");
    ck_assert_str_eq(o->next->key, "colour");
    ck_assert_ptr_null(o->next->next);
    ck_assert(!read_text("two.conf", "[box b]\nlid = no\nlid = yes\n"));
    ck_assert_ptr_nonnull(strstr(error, "[box b] lid: given twice"));
}

UNIT_SUITE("daemon/sections", .setup = set_up, .teardown = tear_down)
