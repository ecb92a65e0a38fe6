/* SPDX-License-Identifier: Apache-2.0 */
/* A program for the build. Prints the sample file ("conf") or the manual page
   ("manual"). */
#include "config.h"
#include "settings/settings.h"

#include <stdlib.h>
#include <string.h>

int
main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "conf"))
        settings_print_conf(stdout);
    else if (argc == 2 && !strcmp(argv[1], "manual"))
        settings_print_manual(stdout);
    else
        return 2;
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
