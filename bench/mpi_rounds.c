/* What a round costs on ranks, beside plain MPI_Allreduce of the same bytes in the same process.
 *
 *     mpirun -n 2 bench_mpi_rounds_openmpi [ROUNDS [K D]...]
 *
 * Prints JSON, on rank 0.  For every K x D two jobs of ROUNDS rounds (60): a learner of our own that maps and
 * updates nothing and whose partial has K*D + K sums, and k-means on a few rows.  A round of the empty learner also
 * makes one MPI_Allreduce of as many int64, on rank 0's clock, between buffers that are filled before as the engine
 * fills its own: so both meet the same neighbours, and ranks that are as much in step.  "communication" is all of a
 * round that is neither mapping nor update: from the end of the last map to the beginning of update, and from its
 * end until the round is over.  The figures are medians of all rounds but the first ten, in microseconds.
 *
 * "rows" is a labelling of many rows: how long rank 0 waited for labels and distances of the others when it had
 * mapped its own, beside what plain sends of the same bytes take.  What of that was not waited for was hidden behind
 * mapping. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <shoal/shoal.h>

enum { ROUNDS = 60, UNCOUNTED = 10, ROUNDS_MOST = 10000, ROWS_A_CENTRE = 16, ROWS_LEAST = 2000 };

/* Of the labelling. */
enum { LABELLED_ROWS = 2000000, LABELLED_COLUMNS = 8, LABELLED_CENTRES = 64, LABELLINGS = 5 };

static double microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* ---- what is measured -------------------------------------------------------------------------------------------- */

/* Each has one value a round. */
typedef struct figures {
    double whole[ROUNDS_MOST], communication[ROUNDS_MOST], plain[ROUNDS_MOST], update[ROUNDS_MOST],
        prepare[ROUNDS_MOST];
    int rounds;
} figures;

static struct {
    figures found;
    double prepared, mapped, update_began, update_ended, round_began; /* of the round that runs */
    double plain;                                                     /* what MPI_Allreduce took in it */
    int rounds;                                                       /* of the empty learner */
    int64_t k, columns;
    int64_t *in, *out; /* of the plain call */
} bench;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    int uncounted = count > 2 * UNCOUNTED ? UNCOUNTED : 0;
    qsort(values + uncounted, (size_t)(count - uncounted), sizeof *values, compare);
    return count ? values[uncounted + (count - uncounted) / 2] : 0;
}

static double mean(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / count : 0;
}

/* On rank 0, when a round is over.  Only rounds with another one behind them, and only those called "run", count. */
static void round_is_over(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    figures *found = &bench.found;
    double now = microseconds();
    (void)context, (void)rows, (void)seconds;
    if (strcmp(done->phase, "run") == 0 && next && found->rounds < ROUNDS_MOST) {
        int i = found->rounds++;
        found->whole[i] = now - bench.round_began - bench.plain;
        found->communication[i] = bench.update_began - bench.mapped + (now - bench.update_ended);
        found->plain[i] = bench.plain;
        found->update[i] = bench.update_ended - bench.update_began - bench.plain;
        found->prepare[i] = bench.prepared;
    }
    bench.plain = 0;
    bench.round_began = microseconds();
}

static int run(const shoal_algorithm *algorithm, const void *config, const char *url, shoal_ranks *ranks,
               shoal_report *report)
{
    shoal_run_options options = {.threads = 1, .ranks = ranks, .progress = round_is_over, .verify = 16};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    bench.found.rounds = 0;
    bench.plain = 0;
    bench.round_began = microseconds();
    int status = shoal_data_open(&data, url, NULL);
    if (status == SHOAL_OK)
        status = shoal_run(&result, report, algorithm, config, data, NULL, &options);
    shoal_result_free(&result);
    shoal_data_free(&data);
    return status;
}

/* ---- a learner without work -------------------------------------------------------------------------------------- */

static int make_round(shoal_round **out, int64_t step)
{
    int status = shoal_round_new(out, sizeof step);
    if (status < 0)
        return status;
    shoal_round *round = *out;
    memcpy(round->model, &step, sizeof step);
    round->layout.cells = 2;
    round->layout.cell[0] = (shoal_cell){.name = "sums", .kind = SHOAL_CELL_SUM, .count = bench.k * bench.columns};
    round->layout.cell[1] = (shoal_cell){.name = "rows", .kind = SHOAL_CELL_SUM, .count = bench.k};
    strcpy(round->phase, "run");
    return SHOAL_OK;
}

static int start_empty(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)config, (void)shape;
    return make_round(out, 0);
}

static int64_t rows_per_grain_empty(const void *config, const shoal_shape *shape)
{
    (void)config, (void)shape;
    return 1;
}

static size_t scratch_bytes_empty(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

static int map_empty(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    (void)round, (void)prepared, (void)scratch;
    shoal_partial_values(partial, 1)[0] += grain->rows;
    bench.mapped = microseconds();
    return SHOAL_OK;
}

/* On huge pages, as the engine's own arrays are: without them the plain call takes longer. */
static int64_t *take(size_t count)
{
    size_t huge = 2 << 20, bytes = (count * sizeof(int64_t) + huge - 1) / huge * huge;
    int64_t *values = aligned_alloc(huge, bytes);
    if (!values)
        return NULL;
    (void)madvise(values, bytes, MADV_HUGEPAGE); /* advice only */
    return memset(values, 0, bytes);
}

static void call_plain(void)
{
    size_t count = (size_t)(bench.k * bench.columns + bench.k);
    memset(bench.in, 0, count * sizeof *bench.in);
    double began = microseconds();
    MPI_Allreduce(bench.in, bench.out, (int)count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    bench.plain = microseconds() - began;
}

static int update_empty(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    int64_t step;
    memcpy(&step, round->model, sizeof step);
    (void)crew, (void)stop;
    bench.update_began = microseconds();
    if (shoal_partial_values(merged, 1)[0] != shape->rows)
        return shoal_fail(SHOAL_INVALID, "the ranks' sums are wrong");
    int status = step < bench.rounds ? make_round(next, step + 1) : shoal_result_new(result);
    call_plain();
    bench.update_ended = microseconds();
    /* What is beside the call, filling its buffer, is no part of a round. */
    bench.round_began += bench.update_ended - bench.update_began - bench.plain;
    return status;
}

static int check_empty(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self, (void)round, (void)shape;
    return SHOAL_OK; /* nothing comes from elsewhere here */
}

static const shoal_algorithm empty_learner = {.version = SHOAL_ALGORITHM_VERSION,
                                              .bytes = sizeof(shoal_algorithm),
                                              .name = "empty",
                                              .summary = "sums of nothing",
                                              .start = start_empty,
                                              .check = check_empty,
                                              .rows_per_grain = rows_per_grain_empty,
                                              .scratch_bytes = scratch_bytes_empty,
                                              .map = map_empty,
                                              .update = update_empty};

/* ---- k-means, whose functions are timed -------------------------------------------------------------------------- */

static int prepare_timed(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    double began = microseconds();
    int status = shoal_kmeans.prepare(prepared, round, shape, crew);
    bench.mapped = microseconds(); /* for a rank that has no rows */
    bench.prepared = bench.mapped - began;
    return status;
}

static int map_timed(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    int status = shoal_kmeans.map(partial, round, prepared, grain, scratch);
    bench.mapped = microseconds();
    return status;
}

static int update_timed(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    bench.update_began = microseconds();
    int status = shoal_kmeans.update(next, result, round, merged, shape, crew, stop);
    bench.update_ended = microseconds();
    return status;
}

static int run_kmeans(shoal_ranks *ranks, shoal_report *report)
{
    char url[200];
    shoal_kmeans_config config = {0};
    shoal_algorithm timed = shoal_kmeans;
    int64_t rows = ROWS_A_CENTRE * bench.k;
    timed.prepare = prepare_timed;
    timed.map = map_timed;
    timed.update = update_timed;
    int status = shoal_options_default(&config, shoal_kmeans.options);
    config.k = bench.k;
    config.init = "random";
    config.iterations = bench.rounds;
    config.tolerance = 0;
    config.empty = SHOAL_EMPTY_KEEP;
    snprintf(url, sizeof url, "gen:uniform?rows=%lld&cols=%lld&seed=1",
             (long long)(rows < ROWS_LEAST ? ROWS_LEAST : rows), (long long)bench.columns);
    return status == SHOAL_OK ? run(&timed, &config, url, ranks, report) : status;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void print_empty(figures *found, const shoal_report *report)
{
    printf("  {\"k\": %lld, \"columns\": %lld, \"bytes\": %lld, \"rounds\": %d,\n", (long long)bench.k,
           (long long)bench.columns, (long long)(8 * (bench.k * bench.columns + bench.k)), found->rounds);
    printf("   \"communication_mean\": %.2f, \"plain_mean\": %.2f, \"reduce_seconds\": %.6f,\n",
           mean(found->communication, found->rounds), mean(found->plain, found->rounds), report->reduce_seconds);
    printf("   \"round\": %.2f, \"communication\": %.2f, \"plain\": %.2f,\n", median(found->whole, found->rounds),
           median(found->communication, found->rounds), median(found->plain, found->rounds));
}

static void print_kmeans(figures *found, const shoal_report *report)
{
    printf("   \"kmeans\": {\"rounds\": %d, \"round\": %.2f, \"communication\": %.2f, \"update\": %.2f, \"prepare\": "
           "%.2f, \"update_seconds\": %.6f}}",
           found->rounds, median(found->whole, found->rounds), median(found->communication, found->rounds),
           median(found->update, found->rounds), median(found->prepare, found->rounds), report->update_seconds);
}

static int measure(shoal_ranks *ranks, int64_t k, int64_t columns, bool last)
{
    size_t count = (size_t)(k * columns + k);
    char url[100];
    shoal_report report;
    bench.k = k;
    bench.columns = columns;
    bench.in = take(count);
    bench.out = take(count);
    if (!bench.in || !bench.out)
        return shoal_fail(SHOAL_MEMORY, "out of memory");
    snprintf(url, sizeof url, "gen:uniform?rows=%d&cols=1&seed=1", ranks->size);
    int status = run(&empty_learner, NULL, url, ranks, &report);
    if (status == SHOAL_OK && ranks->rank == 0)
        print_empty(&bench.found, &report);
    if (status == SHOAL_OK)
        status = run_kmeans(ranks, &report);
    if (status == SHOAL_OK && ranks->rank == 0) {
        print_kmeans(&bench.found, &report);
        printf(last ? "\n" : ",\n");
    }
    free(bench.in);
    free(bench.out);
    return status;
}

/* ---- rows on their way ------------------------------------------------------------------------------------------- */

/* Seconds until rank 0 has what the other ranks have of `bytes`, which all have in equal shares. */
static double send_plain(shoal_ranks *ranks, char *rows, size_t bytes)
{
    size_t share = bytes / (size_t)ranks->size;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = microseconds();
    if (ranks->rank > 0)
        MPI_Send(rows, (int)share, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    for (int from = 1; ranks->rank == 0 && from < ranks->size; from++)
        MPI_Recv(rows + share * (size_t)from, (int)share, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return microseconds() - began;
}

static int measure_rows(shoal_ranks *ranks)
{
    enum { ROW_BYTES = sizeof(int32_t) + sizeof(double) };
    static double centres[LABELLED_CENTRES * LABELLED_COLUMNS], waited[LABELLINGS], plain[LABELLINGS],
        mapped[LABELLINGS];
    shoal_predict_config config = {
        .centres = centres, .k = LABELLED_CENTRES, .columns = LABELLED_COLUMNS, .distances = true};
    size_t bytes = (size_t)LABELLED_ROWS * ROW_BYTES;
    char url[100], *rows = calloc(bytes, 1);
    int status = rows ? SHOAL_OK : shoal_fail(SHOAL_MEMORY, "out of memory");
    for (int i = 0; i < LABELLED_CENTRES * LABELLED_COLUMNS; i++)
        centres[i] = (double)(i * 7919 % 1000) / 1000;
    snprintf(url, sizeof url, "gen:uniform?rows=%d&cols=%d&seed=1", LABELLED_ROWS, LABELLED_COLUMNS);
    for (int i = 0; status == SHOAL_OK && i < LABELLINGS; i++) {
        shoal_report report;
        status = run(&shoal_kmeans_predict, &config, url, ranks, &report);
        waited[i] = 1e6 * report.row_seconds;
        mapped[i] = 1e6 * report.map_seconds;
        if (status == SHOAL_OK)
            plain[i] = send_plain(ranks, rows, bytes);
    }
    if (status == SHOAL_OK && ranks->rank == 0)
        printf("\"rows\": {\"bytes\": %zu, \"map\": %.2f, \"waited\": %.2f, \"plain\": %.2f}",
               bytes / (size_t)ranks->size * (size_t)(ranks->size - 1), median(mapped, LABELLINGS),
               median(waited, LABELLINGS), median(plain, LABELLINGS));
    free(rows);
    return status;
}

int main(int count, char **words)
{
    static const int64_t usual[][2] = {{10, 100}, {100, 100}, {1000, 100}, {1000, 1000}};
    shoal_ranks *ranks = NULL;
    int shapes = count > 3 ? (count - 2) / 2 : 4;
    bench.rounds = count > 1 ? atoi(words[1]) : ROUNDS;
    int status = shoal_ranks_open(&ranks, NULL);
    if (status == SHOAL_OK && ranks->rank == 0)
        printf("{\"mpi\": \"%s\", \"ranks\": %d, \"sizes\": [\n", ranks->name, ranks->size);
    for (int i = 0; status == SHOAL_OK && i < shapes; i++)
        status = count > 3 ? measure(ranks, atoll(words[2 + 2 * i]), atoll(words[3 + 2 * i]), i + 1 == shapes)
                           : measure(ranks, usual[i][0], usual[i][1], i + 1 == shapes);
    if (status == SHOAL_OK && ranks->rank == 0)
        printf("],\n ");
    if (status == SHOAL_OK)
        status = measure_rows(ranks);
    if (status == SHOAL_OK && ranks->rank == 0)
        printf("}\n");
    if (status < 0)
        fprintf(stderr, "bench_mpi_rounds: %s\n", shoal_error());
    shoal_ranks_close(&ranks);
    return status == SHOAL_OK ? 0 : 1;
}
