/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/listen.h"
#include "daemon.h"

static struct api_problem problem;

static const struct {
    const char *text, *host, *address; /* the address without its port */
} good[] = {
    {"127.0.0.1:0", "127.0.0.1", "127.0.0.1:"},
    {"127.9.9.9:0", "127.9.9.9", "127.9.9.9:"},
    {"localhost:0", "localhost", "localhost:"},
};

UNIT_ROWS(listens, good)
{
    struct listener l;
    ck_assert_msg(listen_open(good[_i].text, false, &l, &problem), "%s",
                  problem.detail);
    ck_assert_str_eq(l.host, good[_i].host);
    size_t len = strlen(good[_i].address);
    ck_assert_int_eq(strncmp(l.address, good[_i].address, len), 0);
    ck_assert_int_gt(strtol(l.address + len, NULL, 10), 0);
    ck_assert_int_eq(fcntl(l.fd, F_GETFD), FD_CLOEXEC);
    listen_forget(&l);
    close(l.fd);
}

static const char *const bad[] = {
    "",          "127.0.0.1", ":8383",       "127.0.0.1:",         "127.0.0.1:http",
    "[::1:8383", "[]:0",      "unix:",       "127.0.0.1:0x50",     "127.0.0.1:99999",
    "0.0.0.0:0", "[::]:0",    "192.0.2.1:0", "[2001:db8::1]:8383",
};

UNIT_ROWS(refuses, bad)
{
    struct listener l = {.fd = -7};
    ck_assert_msg(!listen_open(bad[_i], false, &l, &problem), "%s", bad[_i]);
    ck_assert_msg(strstr(problem.detail, "http.listen"), "%s", problem.detail);
    ck_assert_int_eq(l.fd, -7);
}

/* The refusal of an address that other machines can reach says what is missing. */
UNIT_TEST(says_why)
{
    struct listener l;
    ck_assert(!listen_open("0.0.0.0:0", false, &l, &problem));
    ck_assert_ptr_nonnull(strstr(problem.detail, "tokens"));
}

UNIT_TEST(unix_socket)
{
    struct listener first, second;
    char text[160];
    struct stat st;
    scratch_make();
    snprintf(text, sizeof text, "unix:%s", scratch_path("socket"));
    ck_assert_msg(listen_open(text, false, &first, &problem), "%s", problem.detail);
    ck_assert_str_eq(first.host, "");
    /* A socket file at which a process listens is not replaced; one that was left
       behind is. */
    ck_assert(!listen_open(text, false, &second, &problem));
    close(first.fd);
    ck_assert(listen_open(text, false, &second, &problem));
    listen_forget(&second);
    ck_assert_int_ne(stat(scratch_path("socket"), &st), 0);
    close(second.fd);
    scratch_remove();
}

/* A file that is not a socket is neither replaced nor removed, and another socket of
   that name is not removed either. */
UNIT_TEST(other_files_stay)
{
    struct listener l;
    char text[160];
    struct stat st;
    scratch_make();
    scratch_write("socket", "precious");
    snprintf(text, sizeof text, "unix:%s", scratch_path("socket"));
    problem = (struct api_problem){0};
    ck_assert(!listen_open(text, false, &l, &problem));
    ck_assert_ptr_nonnull(strstr(problem.detail, "not a socket"));
    ck_assert_int_eq(stat(scratch_path("socket"), &st), 0);
    ck_assert_int_eq(st.st_size, 8);
    ck_assert_int_eq(unlink(scratch_path("socket")), 0);
    ck_assert(listen_open(text, false, &l, &problem));
    ck_assert_int_eq(unlink(scratch_path("socket")), 0);
    scratch_write("socket", "precious");
    listen_forget(&l);
    close(l.fd);
    ck_assert_int_eq(stat(scratch_path("socket"), &st), 0);
    scratch_remove();
}

UNIT_SUITE("daemon/listen")
