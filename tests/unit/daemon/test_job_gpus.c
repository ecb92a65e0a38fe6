/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that want a GPU; the test plays the lanes and their workers. */
#include "config.h"
#include "store/derive.h"
#include "running_jobs.h"

static void
set_up_gpu(void)
{
    devices = "3";
    set_up();
}

static void
tear_down_gpu(void)
{
    tear_down();
    devices = "";
}

static void
submit_spec(const char *spec)
{
    char model[] = "sha256:m", copy[200];
    snprintf(copy, sizeof copy, "%s", spec);
    struct store_job request = {.model = model, .spec = copy};
    struct api_spec *decoded;
    ck_assert(api_spec_decode(copy, strlen(copy), &decoded, &problem));
    ck_assert(store_derive(api_spec_get(decoded), &request, &problem));
    api_spec_free(&decoded);
    const struct store_file file = {.id = "sha256:m"};
    const struct store_asking asking = {0};
    bool is_new;
    ck_assert(
        store_file_add(library_store(library), STORE_MODEL, &file, &is_new, &problem));
    ck_assert_msg(jobs_submit(jobs, &request, &asking, id, &problem), "%s",
                  problem.detail);
}

static bool
waits_for_gpu(void)
{
    struct job_view view;
    ck_assert(jobs_get(jobs, id, &view, &problem));
    job_view_fini(&view);
    return view.waits_for_gpu;
}

/* A job that waits for a GPU does not hold up the next one, which needs none. */
START_TEST(gpu)
{
    struct job_slot other = {.process = &process}, third = {.process = &process};
    struct store_job first, cpu, second;
    bool any;
    submit_spec("{\"device\":\"cuda\"}");
    ck_assert(!waits_for_gpu());
    first = claim();
    ck_assert_int_eq(slot.device, 3);
    submit_spec("{\"device\":\"auto\",\"calibration\":{\"random_samples\":1}}");
    ck_assert(waits_for_gpu());
    ck_assert(jobs_claim(jobs, &other, &cpu, &any, &problem) && !any);
    char waiting[JOB_ID_SIZE];
    memcpy(waiting, id, sizeof waiting);
    submit_spec("{\"device\":\"cpu\"}");
    ck_assert(!waits_for_gpu());
    ck_assert(jobs_claim(jobs, &other, &cpu, &any, &problem) && any);
    ck_assert_str_eq(cpu.id, id);
    ck_assert_int_eq(other.device, GPUS_NONE);
    uint64_t heard = bell_heard(&bell);
    succeed();
    ck_assert_uint_gt(bell_heard(&bell), heard);
    ck_assert(jobs_claim(jobs, &third, &second, &any, &problem) && any);
    ck_assert_str_eq(second.id, waiting);
    ck_assert_int_eq(third.device, 3);
    store_job_fini(&first);
    store_job_fini(&cpu);
    store_job_fini(&second);
    struct api_problem why = {0};
    api_problem_set(&why, API_IO, QDQ_AT_NOTHING, NULL, "over");
    jobs_fail(jobs, &other, &why);
    jobs_fail(jobs, &third, &why);
    ck_assert(!gpus_are_claimed(&bell.gpus));
}
END_TEST

/* A job that has lent its GPU keeps running, and waits for the GPU until the other
   job has ended. */
START_TEST(gpu_lent)
{
    struct job_slot other = {.process = &process};
    struct store_job first, second;
    struct api_problem why = {0};
    bool any;
    submit_spec("{\"device\":\"cuda\"}");
    char lender[JOB_ID_SIZE];
    memcpy(lender, id, sizeof lender);
    first = claim();
    ck_assert(!jobs_gpu_is_wanted(jobs, &slot));
    submit_spec("{\"device\":\"cuda\",\"evaluate\":false}");
    ck_assert(!jobs_gpu_is_wanted(jobs, &slot)); /* no lane is idle */
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && !any);
    ck_assert(jobs_gpu_is_wanted(jobs, &slot));
    uint64_t heard = bell_heard(&bell);
    jobs_lend_gpu(jobs, &slot);
    ck_assert_uint_gt(bell_heard(&bell), heard);
    ck_assert_int_eq(slot.device, GPUS_NONE);
    ck_assert(!jobs_regain_gpu(jobs, &slot));
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && any);
    ck_assert_int_eq(other.device, 3);
    ck_assert(!jobs_regain_gpu(jobs, &slot));
    memcpy(id, lender, sizeof lender);
    ck_assert(waits_for_gpu());
    api_problem_set(&why, API_IO, QDQ_AT_NOTHING, NULL, "over");
    jobs_fail(jobs, &other, &why);
    ck_assert(jobs_regain_gpu(jobs, &slot));
    ck_assert_int_eq(slot.device, 3);
    ck_assert(!waits_for_gpu());
    store_job_fini(&first);
    store_job_fini(&second);
    jobs_fail(jobs, &slot, &why);
    ck_assert(!gpus_are_claimed(&bell.gpus));
}
END_TEST

/* The end of a job that has lent its GPU does not release the GPU, which is another
   job's now. */
START_TEST(gpu_lent_to_the_end)
{
    struct job_slot other = {.process = &process};
    struct store_job first, second;
    struct api_problem why = {0};
    bool any;
    submit_spec("{\"device\":\"cuda\"}");
    first = claim();
    submit_spec("{\"device\":\"cuda\",\"evaluate\":false}");
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && !any);
    jobs_lend_gpu(jobs, &slot);
    ck_assert(jobs_claim(jobs, &other, &second, &any, &problem) && any);
    api_problem_set(&why, API_IO, QDQ_AT_NOTHING, NULL, "over");
    jobs_fail(jobs, &slot, &why);
    ck_assert(gpus_are_claimed(&bell.gpus));
    ck_assert(!jobs_gpu_is_wanted(jobs, &other));
    jobs_fail(jobs, &other, &why);
    ck_assert(!gpus_are_claimed(&bell.gpus));
    store_job_fini(&first);
    store_job_fini(&second);
}
END_TEST

static const struct {
    const char *text;
    bool ok;
    size_t n;
} lists[] = {
    {"", true, 0},      {"0", true, 1},   {"0,1", true, 2}, {"63,5", true, 2},
    {"64", false, 0},   {"0,", false, 0}, {",", false, 0},  {"0,0", false, 0},
    {"0, 1", false, 0}, {"-1", false, 0}, {"a", false, 0},  {"007", false, 0},
};

START_TEST(gpu_lists)
{
    int ret[GPUS_MOST];
    size_t n;
    ck_assert_int_eq(gpus_parse(lists[_i].text, ret, &n), lists[_i].ok);
    ck_assert_uint_eq(n, lists[_i].n);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("daemon/job_gpus");
    TCase *t = tcase_create("lists");
    tcase_add_loop_test(t, gpu_lists, 0, sizeof lists / sizeof *lists);
    suite_add_tcase(s, t);
    TCase *g = tcase_create("gpu");
    tcase_add_checked_fixture(g, set_up_gpu, tear_down_gpu);
    tcase_add_test(g, gpu);
    tcase_add_test(g, gpu_lent);
    tcase_add_test(g, gpu_lent_to_the_end);
    suite_add_tcase(s, g);
    return s;
}

UNIT_MAIN(suite)
