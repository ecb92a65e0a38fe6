/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a section [runner NAME], one row each:
 *   RUNNER_TEXT(key, default, text)
 *   RUNNER_CHOICE(key, default, "one or another", text)
 *   RUNNER_NUMBER(key, default, min, max, UNIT, text)
 *
 * Every other key is an option of the program. All keys can change at SIGHUP.
 */
RUNNER_TEXT(
    command, "",
    "The program and its arguments, with spaces between; a word in double quotes "
    "may have some. The program is an absolute path. Must be given.")
RUNNER_TEXT(
    targets, "",
    "Targets whose results the program judges, with commas between. Must be given.")
RUNNER_NUMBER(timeout, 120, 1, 86400, SECONDS, "Longest time for one answer.")
RUNNER_NUMBER(memory, INT64_C(8) << 30, 0, INT64_MAX, BYTES,
              "Most bytes of data of the program; 0: no limit.")
RUNNER_NUMBER(disk, INT64_C(8) << 30, 1 << 20, INT64_MAX, BYTES,
              "Most bytes of all files in the program's folder.")
RUNNER_TEXT(
    allow, "",
    "What the program may use beside its own files, with commas between: paths below "
    "/dev, in which * stands for any characters; other paths, which it may read; "
    "exec, by which memory may become code; processes, by which it may start some.")
RUNNER_CHOICE(
    licence, "", "mine",
    "mine: the operator may offer this runtime to the users of the service. A "
    "runtime that is proprietary needs it.")
