/* Parts: 2
 * Labels: asan
 * Seconds: 30
 * Jobs under simulation: seed after seed, each in a process of its own, so that nothing is left over from one to the
 * next.
 *
 *     test_sim                          the seeds that every run of the tests tries
 *     test_sim --part 1/2               half of them
 *     test_sim --seed 7 [--verbose]     one, again; its history to the last request
 *     test_sim --seconds 600            on and on, from a seed that nobody tried yet
 *     test_sim --story deaths ...       only of that kind
 *
 * Every seed must end with the bytes of the threads engine, or stop in a way that can be resumed and then does.  The
 * first seeds of each part are run twice, and must have the same history. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/option.h"
#include "sim_job.h"
#include "sim_world.h"

#ifdef SIM_SANITIZED
enum { SEEDS = 6 * STORIES, TWICE = 2, SECONDS_A_SEED = 600 };
#else
enum { SEEDS = 20 * STORIES, TWICE = 9, SECONDS_A_SEED = 120 };
#endif

/* Seeds that once showed something: workers that slept in a request, and between two; and one that led rounds after
 * the end. */
static const struct {
    int story;
    uint64_t seed;
} kept[] = {{STORY_SLEEPER, 7178}, {STORY_SLEEPER, 199}, {STORY_SLEEPER, 225}, {STORY_POISON, 57}};

typedef struct plan {
    uint64_t first, count;
    double seconds; /* 0: `count` seeds */
    bool one, verbose, list;
    bool kept; /* those that are kept, too */
    int story;
} plan;

static void on_signal(int number)
{
    signal(number, SIG_DFL);
    sim_fail("%s",
             number == SIGALRM ? "it takes too long: someone spins, or waits with the baton in hand" : "it crashed");
}

/* Runs one seed in a child; its history, or 0 when it failed. */
static uint64_t run_seed(const plan *plan, uint64_t seed)
{
    int ends[2];
    uint64_t history = 0;
    if (pipe(ends) < 0)
        return perror("pipe"), 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const int caught[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM};
        for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
            signal(caught[i], on_signal);
        alarm(SECONDS_A_SEED);
        close(ends[0]);
        sim_job_outcome outcome = sim_job_run(&(sim_job_options){
            .seed = seed, .story = plan->story, .verbose = plan->verbose, .print = plan->one || plan->list});
        fflush(NULL);
        if (write(ends[1], &outcome.history, sizeof outcome.history) < 0)
            perror("write");
        _exit(0); /* what dead processes left in memory is nobody's loss */
    }
    close(ends[1]);
    if (read(ends[0], &history, sizeof history) != sizeof history)
        history = 0;
    close(ends[0]);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
        if (WIFSIGNALED(status))
            fprintf(stderr, "seed %llu was ended by signal %d\n", (unsigned long long)seed, WTERMSIG(status));
        history = 0;
    }
    return history;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int run_plan(const plan *plan, const char *program)
{
    int64_t done = 0, failed = 0;
    double started = now();
    for (uint64_t i = 0; plan->seconds > 0 ? now() - started < plan->seconds : i < plan->count; i++, done++) {
        uint64_t seed = plan->first + i;
        uint64_t history = run_seed(plan, seed);
        if (history == 0) {
            printf("FAILED: seed %llu; replay it by: %s%s%s --seed %llu --verbose\n", (unsigned long long)seed, program,
                   plan->story >= 0 ? " --story " : "", plan->story >= 0 ? sim_story_name((sim_story)plan->story) : "",
                   (unsigned long long)seed);
            failed++;
        } else if ((plan->one || (plan->seconds == 0 && i < TWICE)) && !plan->verbose &&
                   run_seed(plan, seed) != history) {
            printf("FAILED: seed %llu has two histories\n", (unsigned long long)seed);
            failed++;
        }
    }
    printf("%lld seeds, %lld failed, %.1f s\n", (long long)done, (long long)failed, now() - started);
    return failed > 0;
}

static bool read_story(int *out, const char *name)
{
    for (int i = 0; i < STORIES; i++)
        if (strcmp(sim_story_name((sim_story)i), name) == 0)
            return *out = i, true;
    return false;
}

static bool read_arguments(plan *out, int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : "";
        int64_t number = 0, part = 0, parts = 0;
        bool numeric = base_parse_count(&number, value);
        if (strcmp(name, "--verbose") == 0) {
            out->verbose = true;
            continue;
        }
        if (strcmp(name, "--list") == 0) {
            out->list = true;
            continue;
        }
        i++;
        if (strcmp(name, "--seed") == 0 && numeric) {
            out->one = true;
            out->first = (uint64_t)number;
            out->count = 1;
        } else if (strcmp(name, "--first") == 0 && numeric) {
            out->first = (uint64_t)number;
        } else if (strcmp(name, "--count") == 0 && numeric) {
            out->count = (uint64_t)number;
        } else if (strcmp(name, "--seconds") == 0 && numeric) {
            out->seconds = (double)number;
            if (out->first == 0)
                out->first = (uint64_t)time(NULL) * 100000 + (uint64_t)getpid() % 1000;
        } else if (strcmp(name, "--part") == 0 && sscanf(value, "%ld/%ld", &part, &parts) == 2 && part >= 1 &&
                   part <= parts) {
            out->count = SEEDS / (uint64_t)parts;
            out->first = (uint64_t)(part - 1) * out->count;
            out->kept = part == 1;
        } else if (strcmp(name, "--story") != 0 || !read_story(&out->story, value)) {
            return false;
        }
    }
    return true;
}

int main(int count, char **arguments)
{
    plan plan = {.count = SEEDS, .story = -1, .kept = count == 1};
    if (!read_arguments(&plan, count, arguments)) {
        fprintf(stderr, "usage: test_sim [--seed N] [--first N] [--count N] [--part I/N] [--seconds N] [--story "
                        "NAME] [--list] [--verbose]\n");
        return 2;
    }
    int failed = 0;
    for (size_t i = 0; plan.kept && i < sizeof kept / sizeof *kept; i++) {
        struct plan one = {.one = true, .first = kept[i].seed, .count = 1, .story = kept[i].story};
        failed |= run_plan(&one, arguments[0]);
    }
    return run_plan(&plan, arguments[0]) | failed;
}
