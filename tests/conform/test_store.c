/* One conformance suite for every store: what include/shoal/store.h promises, tried on each implementation. Labels:
 * threads
 *
 *     test_store                                  every store that needs no server, plain and under faults
 *     test_store URL...                           the stores that these URLs name
 *     test_store --seed 7 URL...                  under faults drawn from this seed
 *     test_store --only '*counter*' URL           the tests of these names, in this process
 *
 * Most of the time is waiting for leases and deadlines, so each part of the suite is a process of its own, and all run
 * at once.  --budget SECONDS, or SHOAL_TEST_BUDGET, tries the same promises fewer times on a store that is slow; it is
 * 25 for URLs.  Of a URL with queue=blobs only the queues are tried: the blobs are those of the store without it. */
#include "store_support.h"
#include "store_blobs.h"
#include "store_queues.h"
#include "store_trouble.h"
#include "store_piped.h"

static const role roles[] = {{"see", role_see},   {"absent", role_absent}, {"count", role_count},
                             {"fill", role_fill}, {"thief", role_thief},   {"storm", role_storm},
                             {"grab", role_grab}, {"pong", role_pong},     {"consume", role_consume},
                             {"echo", role_echo}};

static const role *find_role(const char *name)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].name, name) == 0)
            return &roles[i];
    fprintf(stderr, "there is no role '%s'\n", name);
    exit(2);
}

static const struct CMUnitTest blob_tests[] = {
    cmocka_unit_test(test_what_was_put_is_there_for_every_handle),
    cmocka_unit_test(test_what_was_put_is_there_for_another_process),
    cmocka_unit_test(test_put_if_absent_is_won_by_one_of_32_threads),
    cmocka_unit_test(test_put_if_absent_is_won_by_one_of_32_processes),
    cmocka_unit_test(test_a_counter_loses_no_increment),
    cmocka_unit_test(test_listing_is_in_the_order_of_bytes_across_pages),
    cmocka_unit_test(test_keys_with_every_awkward_character),
    cmocka_unit_test(test_keys_that_are_none_are_refused),
    cmocka_unit_test(test_bodies_of_every_awkward_size),
    cmocka_unit_test(test_ranges),
    cmocka_unit_test(test_conditions_hold_or_conflict),
    cmocka_unit_test(test_prefixes_isolate),
};

static const struct CMUnitTest trouble_tests[] = {
    cmocka_unit_test(test_no_wake_up_is_lost),
    cmocka_unit_test(test_a_wait_ends_at_its_deadline),
    cmocka_unit_test(test_what_is_awaited_comes),
    cmocka_unit_test(test_what_never_comes_is_absent_in_time),
    cmocka_unit_test(test_what_is_discarded_goes),
    cmocka_unit_test(test_each_cause_is_told_apart),
    cmocka_unit_test(test_pauses_grow_and_retry_after_is_honoured),
    cmocka_unit_test(test_a_damaged_frame_is_broken),
    cmocka_unit_test(test_requests_and_bytes_are_counted),
    cmocka_unit_test(test_a_lost_answer_is_judged_by_the_frame),
    cmocka_unit_test(test_a_counter_loses_no_increment_though_answers_are_lost),
};

static const struct CMUnitTest queue_tests[] = {
    cmocka_unit_test(test_messages_of_every_awkward_size),
    cmocka_unit_test(test_counting_and_dropping),
    cmocka_unit_test(test_what_is_given_back_is_delivered_at_once),
    cmocka_unit_test(test_queues_do_not_mix),
    cmocka_unit_test(test_a_lease_lasts_while_it_is_extended_and_then_ends),
    cmocka_unit_test(test_a_message_is_taken_by_one_of_16_racers),
    cmocka_unit_test(test_a_message_has_one_holder_and_comes_at_last),
    cmocka_unit_test(test_every_message_comes_though_answers_are_lost),
    cmocka_unit_test(test_a_push_wakes_takers),
    cmocka_unit_test(test_a_call_ends_at_its_deadline),
    cmocka_unit_test(test_a_store_that_forgot_still_works),
};

/* What holds on a link that is cut again and again, where any answer may be lost, and a message with it until its lease
 * ends. */
static const struct CMUnitTest cut_tests[] = {
    cmocka_unit_test(test_put_if_absent_is_won_by_one_of_32_processes),
    cmocka_unit_test(test_a_counter_loses_no_increment_though_answers_are_lost),
    cmocka_unit_test(test_every_message_comes_though_answers_are_lost),
};

/* ---- one store --------------------------------------------------------------------------------------------------- */

static void measure_latency(void)
{
    enum { TIMES = 8 };
    shoal_blob blob = {0};
    int64_t started = shoal_now();
    for (int i = 0; i < TIMES; i++) {
        succeed(shoal_store_put(here.keeper, "latency", "x", 1, NULL, NULL, SOON));
        succeed(shoal_store_get(here.keeper, "latency", &blob, SOON));
        shoal_blob_release(&blob);
    }
    here.latency = (double)(shoal_now() - started) * 1e-9 / (2 * TIMES) + 1e-6;
}

static int set_up(void **state)
{
    (void)state;
    here.shared = strncmp(here.url, "mem:", 4) != 0;
    snprintf(here.prefix, sizeof here.prefix, "conform-%08x%08x", (unsigned)random_word(), (unsigned)random_word());
    here.keeper = open_with(NULL);
    measure_latency();
    return 0;
}

/* Nothing stays behind. */
static int clear_up(void **state)
{
    shoal_listing page = {0};
    (void)state;
    if (!here.keeper)
        return 0;
    for (int i = 0; i < here.queue_count; i++)
        succeed(shoal_store_drop(here.keeper, here.queues[i], SOON));
    do {
        succeed(shoal_store_list(here.keeper, "", NULL, &page, SOON));
        for (size_t i = 0; i < page.count; i++)
            succeed(shoal_store_remove(here.keeper, page.entries[i].key, SOON));
    } while (page.more);
    shoal_listing_release(&page);
    shoal_store_close(&here.keeper);
    return 0;
}

enum { PART_BLOBS, PART_TROUBLE, PART_QUEUES, PART_CUTS, PARTS };

static const struct part {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
} parts[PARTS] = {
    {"blobs", blob_tests, sizeof blob_tests / sizeof *blob_tests},
    {"trouble", trouble_tests, sizeof trouble_tests / sizeof *trouble_tests},
    {"queues", queue_tests, sizeof queue_tests / sizeof *queue_tests},
    {"cuts", cut_tests, sizeof cut_tests / sizeof *cut_tests},
};

/* A URL and what to try it with. */
typedef struct trial {
    const char *url;
    int seed;
    const char *budget;
} trial;

static bool has_part(const trial *trial, int part)
{
    if (strstr(trial->url, CUT_OFTEN) || part == PART_CUTS)
        return part == PART_CUTS && strstr(trial->url, CUT_OFTEN);
    return part == PART_QUEUES || !strstr(trial->url, "queue=blobs");
}

/* Runs one part in this process; the number of failures. */
static int conform(const trial *trial, int part)
{
    char name[URL_MOST + 64];
    here = (target){.url = trial->url, .seed = trial->seed, .budget = atof(trial->budget)};
    snprintf(name, sizeof name, "%s of %s, seed %d", parts[part].name, trial->url, trial->seed);
    return _cmocka_run_group_tests(name, parts[part].tests, parts[part].count, set_up, clear_up);
}

/* ---- all parts at once ------------------------------------------------------------------------------------------- */

typedef struct child {
    pid_t process;
    FILE *output;
    char name[URL_MOST + 64];
} child;

static void start_child(child *out, const trial *trial, int part)
{
    char number[16];
    snprintf(number, sizeof number, "%d", trial->seed);
    snprintf(out->name, sizeof out->name, "%s of %s, seed %d", parts[part].name, trial->url, trial->seed);
    char *words[] = {
        (char *)program,    "--budget", (char *)trial->budget, "--seed", number, "--part", (char *)parts[part].name,
        (char *)trial->url, NULL};
    posix_spawn_file_actions_t files;
    out->process = -1;
    out->output = tmpfile();
    if (!out->output)
        return;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fileno(out->output), 1);
    posix_spawn_file_actions_adddup2(&files, fileno(out->output), 2);
    if (posix_spawn(&out->process, program, &files, NULL, words, environ) != 0)
        out->process = -1;
    posix_spawn_file_actions_destroy(&files);
}

/* Prints one line, and what was said when it failed. */
static int join_child(child *self)
{
    int status = 1;
    char line[1024];
    if (self->process > 0)
        waitpid(self->process, &status, 0);
    printf("%s %s\n", status == 0 ? "ok  " : "FAIL", self->name);
    if (self->output) {
        rewind(self->output);
        while (status != 0 && fgets(line, sizeof line, self->output))
            printf("    %s", line);
        fclose(self->output);
    }
    return status != 0;
}

static int conform_all(const trial *trials, int count)
{
    child *children = calloc((size_t)count * PARTS, sizeof *children);
    int started = 0, failures = 0;
    for (int i = 0; children && i < count; i++)
        for (int part = 0; part < PARTS; part++)
            if (has_part(&trials[i], part))
                start_child(&children[started++], &trials[i], part);
    for (int i = 0; i < started; i++)
        failures += join_child(&children[i]);
    printf("%d parts of the suite passed, %d failed\n", started - failures, failures);
    free(children);
    return failures > 0 || started == 0;
}

/* Every store that needs no server. */
static int conform_here(const char *budget)
{
    trial trials[] = {{"mem:conform", 0, budget},
                      {"mem:conform?queue=blobs", 0, budget},
                      {"mem:conform", 1, budget},
                      {"mem:conform?queue=blobs", 2, budget},
                      {"mem:conform?queue=blobs", 3, budget},
                      {"dir:%s/a", 0, budget},
                      {"dir:%s/b?queue=blobs", 0, budget},
                      {"dir:%s/c", 4, budget},
                      {"dir:%s/d", 5, budget},
                      {"dir:%s/e?queue=blobs", 6, budget},
                      {"pipe:%s/pipe-0", 0, budget},
                      {"pipe:%s/pipe-1", 7, budget},
                      {"pipe:%s/pipe-2", 0, budget},
                      {"pipe:%s/pipe-1?queue=blobs", 8, budget},
                      {"pipe:%s/" CUT_OFTEN, 9, budget}};
    static const struct {
        const char *url, *socket, *every; /* milliseconds from cut to cut */
    } behind[] = {{"mem:", "pipe-0", "0"},
                  {"dir:%s/f", "pipe-1", "0"},
                  {"dir:%s/g?queue=blobs", "pipe-2", "0"},
                  {"dir:%s/h", CUT_OFTEN, "500"}};
    enum { TRIALS = sizeof trials / sizeof *trials, PIPES = sizeof behind / sizeof *behind };
    char urls[TRIALS][128], folder[] = "/tmp/conform-store-XXXXXX", command[64], url[128], socket[128];
    piped pipes[PIPES];
    bool served = true;
    if (!mkdtemp(folder))
        return 1;
    for (int i = 0; i < TRIALS; i++) {
        const char *place = strstr(trials[i].url, "%s");
        if (!place)
            continue;
        snprintf(urls[i], sizeof urls[i], "%.*s%s%s", (int)(place - trials[i].url), trials[i].url, folder, place + 2);
        trials[i].url = urls[i];
    }
    for (int i = 0; i < PIPES; i++) {
        const char *place = strstr(behind[i].url, "%s");
        snprintf(url, sizeof url, "%.*s%s%s", place ? (int)(place - behind[i].url) : 64, behind[i].url,
                 place ? folder : "", place ? place + 2 : "");
        snprintf(socket, sizeof socket, "%s/%s", folder, behind[i].socket);
        served &= start_piped(&pipes[i], url, socket, behind[i].every);
    }
    int failed = conform_all(trials, TRIALS) || !served;
    for (int i = 0; i < PIPES; i++)
        if (!stop_piped(&pipes[i])) {
            printf("FAIL what served %s\n", behind[i].socket);
            failed = 1;
        }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}

int main(int count, char **words)
{
    static char self[URL_MOST];
    trial trials[16], trial = {.budget = getenv("SHOAL_TEST_BUDGET")};
    int trial_count = 0, part = -1, failures = 0;
    bool here_only = false;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    program = length > 0 ? self : words[0];
    if (count == 6 && strcmp(words[1], "--racer") == 0)
        return play(words[2], words[3], atoi(words[4]), words[5], fdopen(FD_OUT, "w"), FD_READY, FD_GO) < 0;
    if (count == 5 && strcmp(words[1], "--serve") == 0)
        return serve_piped(words[2], words[3], atoi(words[4]));
    if (count == 1)
        return conform_here(trial.budget ? trial.budget : "1000");
    trial.budget = trial.budget ? trial.budget : "25";
    for (int i = 1; i < count; i++) {
        bool more = i + 1 < count;
        if (strcmp(words[i], "--budget") == 0 && more) {
            trial.budget = words[++i];
        } else if (strcmp(words[i], "--seed") == 0 && more) {
            trial.seed = atoi(words[++i]);
        } else if (strcmp(words[i], "--only") == 0 && more) {
            cmocka_set_test_filter(words[++i]);
            here_only = true;
        } else if (strcmp(words[i], "--part") == 0 && more) {
            for (i++, part = 0; part < PARTS - 1 && strcmp(parts[part].name, words[i]) != 0;)
                part++;
        } else if (trial_count < 16) {
            trial.url = words[i];
            trials[trial_count++] = trial;
        }
    }
    if (part < 0 && !here_only)
        return conform_all(trials, trial_count);
    for (int i = 0; i < trial_count; i++)
        for (int each = 0; each < PARTS; each++)
            if ((part < 0 || each == part) && has_part(&trials[i], each))
                failures += conform(&trials[i], each);
    return failures > 0;
}
