/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target defines LLVMFuzzerTestOneInput() and includes this file last. Built
 * with -DFUZZING -fsanitize=fuzzer it searches for new inputs. Otherwise it replays its
 * corpus, as make check does, and prints TAP. The arguments are files; without any, it
 * replays the folder CORPUS below the source tree.
 */
#ifndef TESTS_FUZZ_REPLAY_H
#define TESTS_FUZZ_REPLAY_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef FUZZING
/* The input is in a block of exactly its size, so that sanitizers notice reads
   beyond it. */
static int
replay_file(const char *path)
{
    static uint8_t buffer[1 << 24];
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    size_t size = fread(buffer, 1, sizeof buffer, file);
    fclose(file);
    uint8_t *data = malloc(size ? size : 1);
    if (!data)
        return -1;
    memcpy(data, buffer, size);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static int
replay_all(char *const *paths, int n)
{
    int failed = 0;
    printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        const char *name = strrchr(paths[i], '/');
        int rc = replay_file(paths[i]);
        printf("%s %d - %s\n", rc ? "not ok" : "ok", i + 1, name ? name + 1 : paths[i]);
        failed |= rc;
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int
is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int
main(int argc, char **argv)
{
    if (argc > 1)
        return replay_all(argv + 1, argc - 1);
    const char *root = getenv("srcdir");
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/%s", root ? root : ".", CORPUS);
    struct dirent **entries;
    int n = scandir(folder, &entries, is_visible, alphasort);
    if (n <= 0) {
        printf("Bail out! %s holds no input\n", folder);
        return EXIT_FAILURE;
    }
    char **paths = calloc((size_t)n, sizeof *paths);
    for (int i = 0; paths && i < n; i++) {
        size_t size = strlen(folder) + strlen(entries[i]->d_name) + 2;
        paths[i] = malloc(size);
        if (paths[i])
            snprintf(paths[i], size, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
    }
    int rc = paths ? replay_all(paths, n) : EXIT_FAILURE;
    for (int i = 0; paths && i < n; i++)
        free(paths[i]);
    free(paths);
    free(entries);
    return rc;
}
#endif

#endif
