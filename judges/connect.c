/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "judges/judges.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

/* Returns whether it is the signal of a fault in a runtime. */
static bool
is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT ||
           number == SIGFPE || number == SIGILL;
}

/* Writes why another process would end by this signal, too. Returns false where there is no
   reason. */
static bool
took_too_long(const struct judges_link *link, int number, char why[JUDGES_WHY])
{
    const struct judges_limits *limits = &link->limits;
    if (number == SIGALRM)
        snprintf(why, JUDGES_WHY, "%s took longer than %lld s for one answer (%s)",
                 link->title, (long long)limits->answer, limits->answer_setting);
    else if (number == SIGXCPU && limits->cpu)
        snprintf(why, JUDGES_WHY, "%s took more than %lld s of processor time (%s)",
                 link->title, (long long)limits->cpu, limits->cpu_setting);
    else
        return false;
    return true;
}

int
judges_connect(const struct judges_link *link, bool again, char why[JUDGES_WHY])
{
    const int ended_by = again ? link->host->end(link->arg) : 0;
    if (took_too_long(link, ended_by, why))
        return -1;
    if (is_fault(ended_by))
        snprintf(why, JUDGES_WHY, "was killed by signal %d", ended_by);
    return link->host->reach(link->arg, why);
}

/* --- in the process that judges ---------------------------------------------- */

static int64_t patience;

void
judges_set_patience(int64_t seconds)
{
    patience = seconds;
}

void
judges_watch(unsigned times)
{
    const struct itimerval timer = {.it_value.tv_sec = (time_t)(patience * times)};
    setitimer(ITIMER_REAL, &timer, NULL);
}
