/* The experiment of Durut and Rossi ("Communication challenges in cloud k-means", ESANN 2011) by simulation: the store
 * engine itself, with the paper's constants, in virtual time.
 *
 *     bench_engine_sim [--json] [--only P]
 *     bench_engine_sim --job WORKERS REDUCE [ROWS COLUMNS FLOPS RATE TOTAL_RATE LATENCY ROUNDS]
 *
 * 500,000 rows of 1,000 columns, 1,000 clusters, 10 iterations; P mappers, about √P reducers and a last one; 669
 * Mflop/s and 8 MB/s a worker, 800 MB/s in all.  Rows and models are stand-ins whose bytes count as the real ones do. 
 * Beside it the same number of machines with this engine's own default: each maps, some also reduce.  What the paper
 * measured stands in the last columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paper_times.h"
#include "sim_calm.h"

static const double ROWS = 500000, COLUMNS = 1000, CLUSTERS = 1000, FLOPS = 669e6, LATENCY = 0.02;
enum { ITERATIONS = 10 };

static const double PARTIAL_BYTES = 8e6, DATA_BYTES = 4e9; /* K x D numbers of eight bytes, and the rows */

static double sequential_seconds(void)
{
    return ITERATIONS * 3 * ROWS * CLUSTERS * COLUMNS / FLOPS;
}

static int units_of(int mappers)
{
    return mappers + (int)ceil(sqrt(mappers)) + 1;
}

/* Any job of the kind: as many machines, each of which does everything. */
typedef struct any_job {
    int workers, rounds;
    const char *reduce;
    double rows, columns, flops, rate, total_rate, latency;
} any_job;

static double map_seconds(const any_job *job)
{
    return 3 * job->rows * CLUSTERS * job->columns / job->flops;
}

static sim_calm_figures run_job(const any_job *job)
{
    return sim_calm_run(&(sim_calm_options){
        .seed = 1,
        .workers = job->workers,
        .slices = job->workers,
        .rounds = job->rounds,
        .reduce = job->reduce,
        .bytes = CLUSTERS * job->columns * 8,
        .slice_bytes = job->rows * job->columns * 8 / job->workers,
        .work = {.map_grain = map_seconds(job) / job->workers},
        .cloud = {.latency = job->latency, .jitter = 0.5, .worker_rate = job->rate, .total_rate = job->total_rate}});
}

/* Of the whole, loading included, and of a round. */
static void print_job(const any_job *job)
{
    sim_calm_figures figures = run_job(job);
    double alone = map_seconds(job), speedup = job->rounds * alone / figures.seconds;
    printf("%5d workers, %-10s: %6.1f s, speed-up %6.1f, efficiency %.2f; a round %5.2f s (%.2f); %4.1f requests a "
           "worker and round, %.2f MB sent\n",
           job->workers, job->reduce, figures.seconds, speedup, speedup / job->workers, figures.round_seconds,
           alone / job->workers / figures.round_seconds, figures.round_requests, figures.round_sent / 1e6);
}

/* WORKERS REDUCE, and what differs from the paper's: ROWS COLUMNS FLOPS RATE TOTAL_RATE LATENCY ROUNDS. */
static void run_words(int count, char **words)
{
    any_job job = {.workers = atoi(words[0]),
                   .rounds = count > 8 ? atoi(words[8]) : ITERATIONS,
                   .reduce = words[1],
                   .rows = count > 2 ? atof(words[2]) : ROWS,
                   .columns = count > 3 ? atof(words[3]) : COLUMNS,
                   .flops = count > 4 ? atof(words[4]) : FLOPS,
                   .rate = count > 5 ? atof(words[5]) : 8e6,
                   .total_rate = count > 6 ? atof(words[6]) : 800e6,
                   .latency = count > 7 ? atof(words[7]) : LATENCY};
    print_job(&job);
}

static sim_calm_figures run(int mappers, bool split)
{
    int units = units_of(mappers), slices = split ? mappers : units;
    sim_calm_options options = {.seed = 1,
                                .slices = slices,
                                .rounds = ITERATIONS,
                                .reduce = "two-level",
                                .bytes = PARTIAL_BYTES,
                                .slice_bytes = DATA_BYTES / slices,
                                .work = {.map_grain = sequential_seconds() / ITERATIONS / slices},
                                .cloud = {.latency = LATENCY, .jitter = 0.5, .worker_rate = 8e6, .total_rate = 800e6}};
    if (split) {
        options.mappers = mappers;
        options.reducers = units - mappers - 1;
        options.last = 1;
    } else {
        options.workers = units;
    }
    return sim_calm_run(&options);
}

static void print_run(int i, const sim_calm_figures figures[2], bool json, bool last)
{
    int units = units_of(paper_times[i].mappers);
    double whole = sequential_seconds();
    double speedup[2] = {whole / figures[0].seconds, whole / figures[1].seconds};
    if (json)
        printf("  {\"mappers\": %d, \"units\": %d, \"split_seconds\": %.1f, \"default_seconds\": %.1f, "
               "\"split_speedup\": %.2f, \"default_speedup\": %.2f, \"paper_seconds\": %.0f}%s\n",
               paper_times[i].mappers, units, figures[0].seconds, figures[1].seconds, speedup[0], speedup[1],
               paper_times[i].seconds, last ? "" : ",");
    else
        printf("%4d %6d | %8.0f %8.1f %10.2f | %8.0f %8.1f %10.2f | %8.0f %8.1f %10.2f\n", paper_times[i].mappers,
               units, figures[0].seconds, speedup[0], speedup[0] / units, figures[1].seconds, speedup[1],
               speedup[1] / units, paper_times[i].seconds, whole / paper_times[i].seconds, paper_times[i].efficiency);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    bool json = false;
    int only = 0, best[2] = {0, 0}, best_paper = 0;
    sim_calm_figures figures[PAPER_RUNS][2];
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--json") == 0)
            json = true;
        else if (strcmp(arguments[i], "--only") == 0 && i + 1 < count)
            only = atoi(arguments[++i]);
        else if (strcmp(arguments[i], "--job") == 0 && i + 2 < count)
            return run_words(count - i - 1, arguments + i + 1), 0;
        else
            return fprintf(stderr, "usage: bench_engine_sim [--json] [--only P] [--job WORKERS REDUCE ...]\n"), 2;
    }
    if (json)
        printf("[\n");
    else
        printf(
            "               the paper's roles              |  all roles, as many machines   |  measured in the paper\n"
            "   P  units |  seconds speed-up efficiency |  seconds speed-up efficiency |  seconds speed-up "
            "efficiency\n");
    for (int i = 0; i < PAPER_RUNS; i++) {
        if (only > 0 && paper_times[i].mappers != only)
            continue;
        for (int split = 0; split < 2; split++) {
            figures[i][split] = run(paper_times[i].mappers, split == 0);
            if (figures[i][split].seconds < figures[best[split]][split].seconds || only > 0)
                best[split] = i;
        }
        if (paper_times[i].seconds < paper_times[best_paper].seconds)
            best_paper = i;
        print_run(i, figures[i], json, i == PAPER_RUNS - 1 || only > 0);
    }
    if (json)
        printf("]\n");
    else if (only == 0)
        printf("best P: %d, %d; in the paper %d\n", paper_times[best[0]].mappers, paper_times[best[1]].mappers,
               paper_times[best_paper].mappers);
    return 0;
}
