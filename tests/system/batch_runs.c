/* Runs batch_learner.c several times, on threads or, below mpirun, on ranks, so that a launcher is started once for all
 * of them.
 *
 *     batch_runs THREADS CASES
 *
 * Each line of the file CASES is a run: DATA WEIGHTS GRAIN MEMORY and options, NAME VALUE each; WEIGHTS is a file or -,
 * GRAIN and MEMORY may be 0.  Rank 0 prints a line for each: a JSON list of the result's values, or the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/shoal.h>

#include "batch_learner.h"

static const char *next_word(char **rest)
{
    return strtok_r(*rest ? *rest : NULL, " \n", rest);
}

static int read_weights(double *out, const char *path, int64_t rows)
{
    shoal_data *data = NULL;
    const void *values;
    int status = shoal_data_open(&data, path, NULL);
    if (status == SHOAL_OK && (shoal_data_rows(data) != rows || shoal_data_type(data) != SHOAL_FLOAT64))
        status = shoal_fail(SHOAL_INVALID, "%s: not a float64 for each of %lld rows", path, (long long)rows);
    if (status == SHOAL_OK)
        status = shoal_data_read(&values, data, 0, rows, NULL);
    if (status == SHOAL_OK)
        memcpy(out, values, (size_t)rows * sizeof *out);
    shoal_data_free(&data);
    return status;
}

static void print_values(const shoal_result *result)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, "result");
    const int64_t count = tensor->shape[0] * tensor->shape[1];
    for (int64_t i = 0; i < count; i++)
        printf("%s%.0f", i ? ", " : "[", ((const double *)tensor->values)[i]);
    printf("]\n");
}

static int run_case(shoal_ranks *ranks, int threads, char *line)
{
    batch_config config = {0};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    double *weights = NULL;
    char *rest = line;
    const char *url = next_word(&rest), *heavy = next_word(&rest), *grain = next_word(&rest),
               *memory = next_word(&rest);
    shoal_run_options options = {.threads = threads,
                                 .ranks = ranks,
                                 .rows_per_grain = atoll(grain),
                                 .memory = atoll(memory),
                                 .verify = ranks ? 1 : 0};
    int status = shoal_options_default(&config, batch_learner.options);
    for (const char *name; status == SHOAL_OK && (name = next_word(&rest)) != NULL;)
        status = shoal_options_set(&config, batch_learner.options, name, next_word(&rest));
    if (status == SHOAL_OK)
        status = strncmp(url, "dir:", 4) == 0 ? shoal_job_data_open(&data, url, NULL, shoal_after(60))
                                              : shoal_data_open(&data, url, NULL);
    if (status == SHOAL_OK && strcmp(heavy, "-") != 0) {
        weights = calloc((size_t)shoal_data_rows(data), sizeof *weights);
        status = weights ? read_weights(weights, heavy, shoal_data_rows(data)) : shoal_fail(SHOAL_MEMORY, "no memory");
    }
    if (status == SHOAL_OK)
        status = shoal_run(&result, NULL, &batch_learner, &config, data, weights, &options);
    if (status == SHOAL_OK && (!ranks || ranks->rank == 0))
        print_values(result);
    shoal_result_free(&result);
    shoal_data_free(&data);
    free(weights);
    return status;
}

int main(int count, char **words)
{
    char line[1000];
    shoal_ranks *ranks = NULL;
    shoal_ranks_started started;
    FILE *cases = count == 3 ? fopen(words[2], "r") : NULL;
    int status = cases ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "usage: batch_runs THREADS CASES");
    if (status == SHOAL_OK && shoal_ranks_find(&started))
        status = shoal_ranks_open(&ranks, NULL);
    while (status == SHOAL_OK && fgets(line, sizeof line, cases))
        status = run_case(ranks, atoi(words[1]), line);
    if (status < 0)
        fprintf(stderr, "batch_runs: %s\n", shoal_error());
    if (status < 0 && ranks)
        ranks->abort(ranks, NULL, 1);
    shoal_ranks_close(&ranks);
    if (cases)
        fclose(cases);
    return status == SHOAL_OK ? 0 : 1;
}
