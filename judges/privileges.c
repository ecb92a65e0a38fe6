/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "judges/walls.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A process without any needs no capset(), which the sandbox of a service may forbid. */
bool
privileges_drop(char lacking[WALL_TEXT])
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const char *what = NULL;
    if (syscall(SYS_capget, &header, data))
        what = "capget";
    else if (memcmp(data, none, sizeof none) != 0 &&
             syscall(SYS_capset, &header, none) != 0)
        what = "capset";
    if (what)
        snprintf(lacking, WALL_TEXT, "%s: %s", what, strerror(errno));
    return !what;
}
