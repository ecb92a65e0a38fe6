/* SPDX-License-Identifier: Apache-2.0 */
/* qdqd: the start as a list of steps, and the same list backwards. */
#include "config.h"
#include "adopt.h"
#include "backup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/standard_files.h"
#include "carriers/bucket.h"
#include "carriers/carrier.h"
#include "carriers/carriers.h"
#include "check_store.h"
#include "descriptors.h"
#include "folders.h"
#include "handlers/handlers.h"
#include "http/server.h"
#include "library/folder/state_folder.h"
#include "library/library.h"
#include "migrate_blobs.h"
#include "migrate_record.h"
#include "settings/remotes.h"
#include "settings/runners.h"
#include "tenants/keeper.h"
#include "tenants/node.h"
#include "tenants/sweeper.h"
#include "tenants/tokens.h"
#include "watch/notify.h"
#include "watch/watchdog.h"
#include "workers/judge.h"
#include "workers/signer.h"
#include "workers/worker.h"
#include "qdq/catalog.h"

#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define USAGE 2 /* exit status of a wrong command line or configuration */
#define MAX_FLAGS 16
#define MOST_FILES 65536
#define STOP_SECONDS 30 /* stop once no job runs any more */

struct arguments {
    const char *config;
    /* folders of a backup or restore; NULL: not asked for */
    const char *backup, *restore;
    const char *blobs; /* URL of a bucket for the stored files; NULL: not asked for */
    const char *migrate_to; /* URL of a database for the record; NULL: not asked for */
    bool check_only, print, adopt, check_store;
    size_t n_flags;
    struct setting_flag flags[MAX_FLAGS];
};

enum {
    OPTION_CONFIG,
    OPTION_LISTEN,
    OPTION_STATE_DIR,
    OPTION_WORKERS,
    OPTION_CHECK,
    OPTION_PRINT,
    OPTION_BACKUP,
    OPTION_RESTORE,
    OPTION_ADOPT,
    OPTION_BLOBS,
    OPTION_MIGRATE_TO,
    OPTION_CHECK_STORE,
    OPTION_VERSION,
    OPTION_HELP,
    N_OPTIONS
};

static const struct option_row option_rows[N_OPTIONS] = {
    [OPTION_CONFIG] = {"config", '\0', "FILE",
                       "Reads settings from FILE; by default from " QDQD_DEFAULT_CONFIG
                       ", when it is there."},
    [OPTION_LISTEN] = {"listen", '\0', "ADDRESS",
                       "The address that the daemon listens at: HOST:PORT or unix:PATH "
                       "(the setting http.listen)."},
    [OPTION_STATE_DIR] = {"state-dir", '\0', "DIR",
                          "The folder of all that is kept (the setting state.dir)."},
    [OPTION_WORKERS] = {"workers", '\0', "N",
                        "Jobs that run at the same time (the setting workers.count)."},
    [OPTION_CHECK] = {"check-config", '\0', NULL,
                      "Says what is wrong with the settings and with the operator's "
                      "cases, and exits."},
    [OPTION_PRINT] = {"print", '\0', NULL,
                      "With --check-config: prints every setting and where its value "
                      "comes from."},
    [OPTION_BACKUP] = {"backup", '\0', "DIR",
                       "Copies all that is kept to DIR and exits; also while a daemon "
                       "runs."},
    [OPTION_RESTORE] = {"restore", '\0', "DIR",
                        "Puts such a copy into an empty state folder and exits."},
    [OPTION_ADOPT] =
        {"adopt", '\0', NULL,
         "Makes the stored files of a lost database blobs of a new one and "
         "exits."},
    [OPTION_BLOBS] = {"blobs", '\0', "URL",
                      "Copies the stored files of a state folder to the bucket "
                      "s3://BUCKET/PREFIX and exits. Its server and credentials are "
                      "those of the settings (blobs.endpoint, blobs.credentials)."},
    [OPTION_MIGRATE_TO] = {"migrate-to", '\0', "URL",
                           "Copies the record of a state folder to the empty database "
                           "postgresql://... and exits; with --blobs also its stored "
                           "files, before."},
    [OPTION_CHECK_STORE] =
        {"check-store", '\0', NULL,
         "Finds rows without stored files and stored files without rows, and exits "
         "with 1 if there are some; also while a daemon runs."},
    [OPTION_VERSION] = {"version", '\0', NULL, "Prints the version."},
    [OPTION_HELP] = {"help", 'h', NULL, "Prints this page."},
};

/* Options that set a setting. */
static const char *const option_settings[N_OPTIONS] = {
    [OPTION_LISTEN] = "http.listen",
    [OPTION_STATE_DIR] = "state.dir",
    [OPTION_WORKERS] = "workers.count",
};

static void
print_help(void)
{
    printf("Usage: qdqd [OPTION]...\n"
           "       qdqd token add|limit|list|revoke ...\n"
           "       qdqd token --help\n\n"
           "Quantizes ONNX models over HTTP.\n\n");
    options_print(stdout, option_rows, N_OPTIONS);
    printf("\nA flag comes before the environment (QDQD_SECTION_KEY), that before the "
           "file, that\nbefore the default. Settings and their defaults:\n\n");
    settings_help(stdout);
}

static bool
add_flag(struct arguments *to, const char *setting, const char *value)
{
    if (to->n_flags == MAX_FLAGS) {
        fprintf(stderr, "qdqd: too many options\n");
        return false;
    }
    to->flags[to->n_flags++] = (struct setting_flag){setting, value};
    return true;
}

/* Returns false when the process is to exit with *ret_status. */
static bool
parse_arguments(int argc, char **argv, struct arguments *ret, int *ret_status)
{
    const char **const texts[N_OPTIONS] = {[OPTION_CONFIG] = &ret->config,
                                           [OPTION_BACKUP] = &ret->backup,
                                           [OPTION_RESTORE] = &ret->restore,
                                           [OPTION_BLOBS] = &ret->blobs,
                                           [OPTION_MIGRATE_TO] = &ret->migrate_to};
    bool *const switches[N_OPTIONS] = {[OPTION_CHECK] = &ret->check_only,
                                       [OPTION_PRINT] = &ret->print,
                                       [OPTION_ADOPT] = &ret->adopt,
                                       [OPTION_CHECK_STORE] = &ret->check_store};
    int option;
    *ret_status = USAGE;
    while ((option = options_next(argc, argv, option_rows, N_OPTIONS)) != OPTIONS_END) {
        if (option == OPTIONS_WRONG)
            return false;
        if (option == OPTION_VERSION || option == OPTION_HELP) {
            if (option == OPTION_VERSION)
                printf("qdqd %s\n", PACKAGE_VERSION);
            else
                print_help();
            *ret_status = EXIT_SUCCESS;
            return false;
        }
        if (texts[option])
            *texts[option] = optarg;
        else if (switches[option])
            *switches[option] = true;
        else if (!add_flag(ret, option_settings[option], optarg))
            return false;
    }
    if (optind < argc)
        fprintf(stderr, "qdqd: unexpected argument: %s\n", argv[optind]);
    if (ret->print && !ret->check_only)
        fprintf(stderr, "qdqd: --print goes with --check-config\n");
    return optind == argc && (!ret->print || ret->check_only);
}

/* The running parts of the daemon; NULL: not started. */
struct daemon {
    struct settings settings;
    struct remotes *remotes;
    struct listener listener;
    struct tokens *tokens;
    struct bucket_pool *bucket;
    struct tenants *tenants;
    struct pool *pool;
    struct carriers *carriers;
    struct keeper *keeper;
    struct http *http;
};

/* Asks the service manager for more time, since its own timeout may be shorter. */
static void
notify_stopping(const struct settings *settings)
{
    char state[64];
    snprintf(state, sizeof state, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld",
             ((long long)settings->workers_drain_timeout + STOP_SECONDS) * 1000000);
    notify_send(state);
}

static bool
start(struct daemon *d, struct api_problem *p)
{
    if (!node_begin(p) || !descriptors_share(&d->settings, p) ||
        !tokens_open_set(&d->settings, &d->tokens, p) ||
        !bucket_open(&d->settings, &d->bucket, p) ||
        !tenants_open(&d->settings, bucket_calls(d->bucket), &d->tenants, p) ||
        !tokens_bind(d->tokens, d->tenants, p) ||
        !listen_open(d->settings.http_listen, tokens_count(d->tokens) > 0, &d->listener,
                     p))
        return false;
    tenants_set_remotes(d->tenants, d->remotes);
    if (!pool_open(d->tenants, &d->settings, &d->pool, p)) {
        close(d->listener.fd);
        return false;
    }
    const struct http_needs needs = {handler_of, &d->settings, d->tenants, d->tokens};
    bool has_carriers = keeper_open(d->tenants, &d->settings, &d->keeper, p) &&
                        carriers_open(d->tenants, &d->settings, &d->carriers, p);
    if (!has_carriers)
        close(d->listener.fd);
    if (has_carriers && server_open(&needs, &d->listener, &d->http, p))
        return true;
    /* Without this the lanes would wait for jobs for ever. */
    tenants_drain(d->tenants);
    tenants_stop(d->tenants);
    return false;
}

/* Jobs and short work that run have workers.drain_timeout to end, or until a second signal
   arrives.
   Lanes are joined before connections, because connections wait for them. */
static void
drain(struct daemon *d, const sigset_t *signals)
{
    const struct timespec a_moment = {0, 50 * 1000000};
    int64_t deadline = clock_steady_ms() + d->settings.workers_drain_timeout * 1000;
    int got;
    tenants_drain(d->tenants);
    carriers_close(&d->carriers);
    while (!(tenants_are_idle(d->tenants) && pool_is_idle(d->pool)) &&
           clock_steady_ms() < deadline)
        if ((got = sigtimedwait(signals, NULL, &a_moment)) > 0 && got != SIGHUP)
            break;
    tenants_stop(d->tenants);
    bucket_stop(d->bucket);
    pool_join(d->pool);
}

static void
stop(struct daemon *d)
{
    bucket_stop(d->bucket);
    server_close(&d->http);
    carriers_close(&d->carriers);
    pool_close(&d->pool);
    keeper_close(&d->keeper);
    listen_forget(&d->listener);
    tenants_close(&d->tenants);
    bucket_close(&d->bucket);
    tokens_close(&d->tokens);
}

/*
 * Threads inherit the mask, so only sweeper_run() and drain() receive these signals.
 * Workers inherit that SIGPIPE is ignored, and SIGXFSZ, which a file that grows too
 * large raises.
 */
static void
set_signals(sigset_t *signals)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
}

/* Raises the limit of descriptors as far as possible: a connection needs one and an
   upload some more, which exceeds the limit that a shell passes on. */
static void
raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files))
        return;
    files.rlim_cur = files.rlim_max < MOST_FILES ? files.rlim_max : MOST_FILES;
    setrlimit(RLIMIT_NOFILE, &files);
}

static void
log_setting(const char *section, const char *key, bool now)
{
    if (now)
        log_info("setting_changed", "key=%s.%s", section, key);
    else
        log_error("setting_needs_restart", "key=%s.%s", section, key);
}

static void
log_not_reloaded(const char *detail)
{
    char quoted[LOG_QUOTED];
    log_error("reload_failed", "detail=%s", log_quote(quoted, detail));
}

/* Writes the folder, with '/' behind it, of the folders of named sections that belong to the
   configuration file. */
static bool
find_folders(const char *config, char ret[PATH_MAX], char error[SETTINGS_ERROR])
{
    const char *slash = config ? strrchr(config, '/') : NULL;
    bool standard = !config || !strcmp(config, QDQD_DEFAULT_CONFIG);
    int len = standard ? snprintf(ret, PATH_MAX, "%s", QDQD_DEFAULT_FOLDERS)
                       : snprintf(ret, PATH_MAX, "%.*s",
                                  slash ? (int)(slash + 1 - config) : 0, config);
    if (len >= PATH_MAX)
        snprintf(error, SETTINGS_ERROR, "--config: the path is too long");
    return len < PATH_MAX;
}

/* Loads settings and remotes: both or none. */
static bool
load(const struct arguments *arguments, struct settings *ret,
     struct remotes **ret_remotes, char error[SETTINGS_ERROR])
{
    char folder[PATH_MAX];
    struct remotes *remotes = remotes_new();
    if (!remotes) {
        snprintf(error, SETTINGS_ERROR, "out of memory");
        return false;
    }
    bool ok = settings_load(arguments->config, arguments->flags, arguments->n_flags,
                            &remotes->sections, ret, error);
    if (ok && !(find_folders(arguments->config, folder, error) &&
                remotes_finish(remotes, folder, error) &&
                runners_check_store(remotes, ret, error))) {
        settings_fini(ret);
        ok = false;
    }
    if (ok && !(bucket_check(ret, error) && signer_check(ret, error))) {
        settings_fini(ret);
        ok = false;
    }
    if (ok)
        *ret_remotes = remotes;
    else
        remotes_release(&remotes);
    return ok;
}

/* An error leaves all settings unchanged. */
static void
reload(struct daemon *d, const struct arguments *arguments)
{
    struct api_problem problem = {0};
    struct settings fresh;
    struct remotes *remotes;
    char error[SETTINGS_ERROR];
    if (!load(arguments, &fresh, &remotes, error)) {
        log_not_reloaded(error);
        return;
    }
    if (tokens_reload(d->tokens, &problem) && server_reload(d->http, &problem)) {
        tenants_reload(d->tenants, &d->settings, &fresh, log_setting);
        tenants_set_remotes(d->tenants, remotes);
        log_info("reloaded", "signal=%d", SIGHUP);
    } else {
        log_not_reloaded(problem.detail);
    }
    settings_fini(&fresh);
    remotes_release(&remotes);
}

static int
serve(struct daemon *d, const struct arguments *arguments)
{
    struct api_problem problem = {0};
    sigset_t signals;
    umask(077);
    mallopt(M_ARENA_MAX, 2); /* threads of connections are many and need little */
    raise_files();
    set_signals(&signals);
    log_open(d->settings.log_format);
    bool started = start(d, &problem);
    if (started) {
        log_info("started", "version=%s", PACKAGE_VERSION);
        fprintf(stderr, "listening on %s\n", d->listener.address);
        notify_send("READY=1");
        struct watchdog dog;
        watchdog_open(&dog, d->listener.fd);
        const struct sweeper_pulse pulse = {dog.every_ms, watchdog_beat, &dog};
        int got;
        while ((got = sweeper_run(d->tenants, &d->settings, &signals, &pulse)) ==
               SIGHUP)
            reload(d, arguments);
        notify_stopping(&d->settings);
        log_info("stopping", "signal=%d", got);
        drain(d, &signals);
    } else {
        fprintf(stderr, "qdqd: %s\n", problem.detail);
        if (d->tenants)
            tenants_drain(d->tenants); /* lanes that were started have to end */
    }
    stop(d);
    return started ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void
print_unknown(const char *name, size_t len)
{
    fprintf(stderr, "qdqd: %.*s: no setting has this variable, so it is ignored\n",
            (int)len, name);
}

/* Runs the operator's scripts once, so that their author sees an error in one before
   a job does. Afterwards only workers run scripts. */
static bool
check_cases(const char *folder, struct qdq_error *err)
{
    struct qdq_catalog *catalog = NULL;
    bool ok = qdq_catalog_open(*folder ? folder : NULL, &catalog, err) == QDQ_OK &&
              qdq_catalog_check(catalog, err) == QDQ_OK;
    qdq_catalog_free(&catalog);
    return ok;
}

/* Says what went wrong, if something did. Returns the exit status. */
static int
conclude(bool ok, const struct api_problem *problem)
{
    if (!ok)
        fprintf(stderr, "qdqd: %s\n", problem->detail);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Writes a backup of the state folder to `to`, or restores it from `from`. */
static int
copy_state(const struct settings *settings, const char *to, const char *from)
{
    struct api_problem problem = {0};
    struct backup_done done = {0};
    umask(077);
    bool elsewhere = *settings->blobs_url;
    bool ok =
        to ? backup_make(settings->state_dir, to, elsewhere, &done, &problem)
           : backup_restore(from, settings->state_dir, elsewhere, &done, &problem);
    if (ok && elsewhere)
        printf("%s: the record alone. The stored files are in %s, whose versioning is "
               "their backup.\n",
               to ? to : settings->state_dir, settings->blobs_url);
    else if (ok)
        printf("%s: %llu files, %llu bytes\n", to ? to : settings->state_dir,
               (unsigned long long)done.files, (unsigned long long)done.bytes);
    return conclude(ok, &problem);
}

static int
adopt(const struct settings *settings)
{
    struct api_problem problem = {0};
    uint64_t n;
    umask(077);
    log_open(settings->log_format);
    bool ok = adopt_state(settings->state_dir, &n, &problem);
    if (ok)
        printf("%s: %llu files\n", settings->state_dir, (unsigned long long)n);
    return conclude(ok, &problem);
}

/* Copies the stored files to a bucket. *ret_all is whether none was damaged and stayed behind. */
static bool
move_blobs(const struct settings *settings, const char *url, bool *ret_all,
           struct api_problem *p)
{
    struct migrated_blobs done;
    if (!migrate_blobs(settings, url, &done, p))
        return false;
    printf("%s: %llu files, %llu bytes, %llu damaged files left out\n", url,
           (unsigned long long)done.files, (unsigned long long)done.bytes,
           (unsigned long long)done.damaged);
    *ret_all = !done.damaged;
    return true;
}

static bool
move_record(const struct settings *settings, const char *url, struct api_problem *p)
{
    struct migrated_record done;
    if (!migrate_record(settings, url, &done, p))
        return false;
    printf("the record: %zu access tokens, %llu rows, %llu tenants\n", done.tokens,
           (unsigned long long)done.rows, (unsigned long long)done.tenants);
    return true;
}

/* Writes the small files that a loss of power has taken and that the record has: what moves next
   leaves the record's own copies behind. */
static bool
settle(void *arg, const char *path, const char *tenant, struct api_problem *p)
{
    char database[PATH_MAX];
    struct library *library = NULL;
    (void)arg;
    (void)tenant;
    snprintf(database, sizeof database, "%s/" FOLDER_DATABASE, path);
    if (access(database, F_OK) != 0)
        return true;
    bool ok = library_open(path, &library, p);
    if (ok)
        library_sync_deferred(library);
    library_close(&library);
    return ok;
}

/* Copies the stored files to a bucket and then the record to a database, where they are named:
   a record must not name files that are not there yet. */
static int
move_state(const struct settings *settings, const char *blobs, const char *record)
{
    struct api_problem problem = {0};
    bool all = true;
    umask(077);
    log_open(settings->log_format);
    bool in_folders = blobs || !*settings->blobs_url;
    bool ok =
        (!in_folders || folders_each(settings->state_dir, settle, NULL, &problem)) &&
        (!blobs || move_blobs(settings, blobs, &all, &problem)) &&
        (!record || move_record(settings, record, &problem));
    return conclude(ok, &problem) || !all;
}

static int
print_faults(const struct settings *settings)
{
    struct api_problem problem = {0};
    struct store_checked done;
    umask(077);
    log_open(settings->log_format);
    if (!check_store(settings, stdout, &done, &problem)) {
        fprintf(stderr, "qdqd: %s\n", problem.detail);
        return USAGE;
    }
    printf("%llu stored files, %llu missing, %llu without a row\n",
           (unsigned long long)done.blobs, (unsigned long long)done.missing,
           (unsigned long long)done.orphans);
    if (!standard_output_flush())
        return USAGE; /* EXIT_FAILURE says that there are faults */
    return done.missing || done.orphans ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Returns whether a command reads the record in the state folder and no other. */
static bool
needs_sqlite(const struct arguments *arguments)
{
    return arguments->backup || arguments->restore || arguments->adopt ||
           (arguments->blobs && !arguments->migrate_to);
}

/* Serves, after the configuration has been checked, or prints it. */
static int
check_and_serve(struct daemon *daemon, const struct arguments *arguments)
{
    struct qdq_error err = {0};
    if (!check_cases(daemon->settings.engine_cases, &err)) {
        fprintf(stderr, "qdqd: engine.cases: %s\n", err.text);
        return USAGE;
    }
    if (arguments->print) {
        settings_print(&daemon->settings, stdout);
        remotes_print(daemon->remotes, stdout);
    }
    settings_find_unknown(print_unknown);
    return arguments->check_only ? EXIT_SUCCESS : serve(daemon, arguments);
}

/* Runs the command that the options ask for, or else the daemon. Returns the exit status. */
static int
run_command(struct daemon *daemon, const struct arguments *arguments)
{
    const struct settings *settings = &daemon->settings;
    if (*settings->store_url && needs_sqlite(arguments)) {
        fprintf(stderr,
                "qdqd: store.url: the record is in PostgreSQL, and this command "
                "reads one in state.dir alone; there pg_dump is the backup of the "
                "record, and the bucket's versioning that of the stored files\n");
        return USAGE;
    }
    if (arguments->backup || arguments->restore)
        return copy_state(settings, arguments->backup, arguments->restore);
    if (arguments->adopt)
        return adopt(settings);
    if (arguments->blobs || arguments->migrate_to)
        return move_state(settings, arguments->blobs, arguments->migrate_to);
    if (arguments->check_store)
        return print_faults(settings);
    return check_and_serve(daemon, arguments);
}

/* Returns whether the word "token" stands behind options, and is not the value of one. */
static bool
token_follows_options(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], "token") &&
            (*argv[i - 1] != '-' || strchr(argv[i - 1], '=')))
            return true;
    return false;
}

/* Does what the command line asks for. Returns the exit status. */
static int
run_program(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct daemon daemon = {0};
    char error[SETTINGS_ERROR];
    int status;
    if (argc > 1 && !strcmp(argv[1], "token"))
        return token_main(argc - 1, argv + 1);
    if (token_follows_options(argc, argv)) {
        fputs("qdqd: the word token comes first, and options behind it: "
              "qdqd token add NAME --config FILE\n",
              stderr);
        return USAGE;
    }
    if (!parse_arguments(argc, argv, &arguments, &status))
        return status;
    if (!arguments.config && !access(QDQD_DEFAULT_CONFIG, F_OK))
        arguments.config = QDQD_DEFAULT_CONFIG;
    if (!load(&arguments, &daemon.settings, &daemon.remotes, error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return USAGE;
    }
    status = run_command(&daemon, &arguments);
    settings_fini(&daemon.settings);
    remotes_release(&daemon.remotes);
    return status;
}

int
main(int argc, char **argv)
{
    standard_files_hold();
    if (argc > 1 && !strcmp(argv[1], "--worker"))
        return worker_main(argc - 2, argv + 2);
    if (argc > 1 && !strcmp(argv[1], "--judge"))
        return judge_main(argc - 2, argv + 2);
    if (argc > 1 && !strcmp(argv[1], "--carrier"))
        return carrier_main(argc - 2, argv + 2);
    if (argc > 1 && !strcmp(argv[1], "--signer"))
        return signer_main(argc - 2, argv + 2);
    int status = run_program(argc, argv);
    return standard_output_flush() || status != EXIT_SUCCESS ? status : EXIT_FAILURE;
}
