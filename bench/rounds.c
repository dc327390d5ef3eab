/* What a round without work costs, on threads or, below mpirun, on ranks.
 *
 *     bench_rounds THREADS DATA [OPTION VALUE]...      options of empty_learner.c: bench_rounds 2 gen:... sums 600000
 *
 * Prints JSON, on rank 0: percentiles of the microseconds of a round, from the end of one to the end of the next, the
 * first hundred left out, and how many times memory was allocated in all rounds after the third. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <shoal/shoal.h>

#include "base/memory.h"
#include "empty_learner.h"

enum { UNCOUNTED = 100, FIRST_ROUNDS = 3 };

static struct {
    double *ended; /* the moment of each round's end */
    int64_t rounds;
    int64_t allocations; /* after the first rounds */
} seen;

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static void round_is_over(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    (void)context, (void)done, (void)rows, (void)seconds;
    int64_t since = base_memory_fail_after(-1);
    if (next && seen.rounds >= FIRST_ROUNDS) /* the last one makes the result */
        seen.allocations += since;
    seen.ended[seen.rounds++] = microseconds();
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_rounds(const shoal_report *report)
{
    int64_t first = seen.rounds > 2 * UNCOUNTED ? UNCOUNTED : 1, count = seen.rounds - first;
    double *took = seen.ended;
    for (int64_t i = 0; i < count; i++)
        took[i] = seen.ended[first + i] - seen.ended[first + i - 1];
    qsort(took, (size_t)count, sizeof *took, compare);
    printf("{\"rounds\": %lld, \"ranks\": %d, \"threads\": %d, \"least\": %.2f, \"p10\": %.2f, \"median\": %.2f, "
           "\"p90\": %.2f, \"allocations\": %lld}\n",
           (long long)count, report->ranks, report->threads, took[0], took[count / 10], took[count / 2],
           took[count * 9 / 10], (long long)seen.allocations);
}

static int run(int threads, const char *url, const empty_config *config, shoal_ranks *ranks)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_report report;
    shoal_run_options options = {
        .threads = threads, .ranks = ranks, .progress = round_is_over, .verify = ranks ? 16 : 0};
    seen.ended = malloc((size_t)config->rounds * sizeof *seen.ended);
    if (!seen.ended)
        return shoal_fail(SHOAL_MEMORY, "out of memory");
    int status = shoal_data_open(&data, url, NULL);
    if (status == SHOAL_OK)
        status = shoal_run(&result, &report, &empty_learner, config, data, NULL, &options);
    if (status == SHOAL_OK && (!ranks || ranks->rank == 0))
        print_rounds(&report);
    shoal_result_free(&result);
    shoal_data_free(&data);
    free(seen.ended);
    return status;
}

int main(int count, char **words)
{
    empty_config config = {0};
    shoal_ranks_started started;
    shoal_ranks *ranks = NULL;
    int status = count >= 3 && count % 2 ? SHOAL_OK
                                         : shoal_fail(SHOAL_USAGE, "usage: bench_rounds THREADS DATA [NAME VALUE]...");
    if (status == SHOAL_OK)
        status = shoal_options_default(&config, empty_learner.options);
    for (int i = 3; status == SHOAL_OK && i + 1 < count; i += 2)
        status = shoal_options_set(&config, empty_learner.options, words[i], words[i + 1]);
    if (status == SHOAL_OK && shoal_ranks_find(&started))
        status = shoal_ranks_open(&ranks, NULL);
    if (status == SHOAL_OK)
        status = run(atoi(words[1]), words[2], &config, ranks);
    if (status < 0)
        fprintf(stderr, "bench_rounds: %s\n", shoal_error());
    shoal_ranks_close(&ranks);
    return status == SHOAL_OK ? 0 : 1;
}
