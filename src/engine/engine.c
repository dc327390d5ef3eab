/* shoal_run: checks the request, fills in defaults, and hands over to an engine. */
#include "engine/engine_internal.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "learn/check.h"
#include "data/grain.h"

void engine_number_round(shoal_round *round, int64_t number)
{
    round->number = number;
    for (int i = 0; i < round->keeps; i++)
        if (round->kept[i]->born < 0)
            round->kept[i]->born = number;
}

static int choose_strata(shoal_shape *shape, const shoal_algorithm *algorithm, const void *config)
{
    int64_t most = shape->grains < SHOAL_STRATA_MOST ? shape->grains : SHOAL_STRATA_MOST;
    int status = algorithm->strata(config, shape);
    if (status < 0)
        return status;
    if (shape->strata < 0 || shape->held < 0 || shape->held >= shape->rows || (shape->held > 0 && shape->strata == 0))
        return shoal_fail(SHOAL_USAGE, "the learner '%s' asks for %lld strata and holds out %lld of %lld rows",
                          algorithm->name, (long long)shape->strata, (long long)shape->held, (long long)shape->rows);
    shape->strata = shape->strata < most ? shape->strata : most;
    return SHOAL_OK;
}

int engine_fill_shape(shoal_shape *shape, const shoal_algorithm *algorithm, const void *config, shoal_data *data,
                      const double *weights, int64_t rows_per_grain)
{
    *shape = (shoal_shape){0};
    shape->rows = shoal_data_rows(data);
    shape->columns = shoal_data_columns(data);
    shape->type = shoal_data_type(data);
    shape->weighted = weights != NULL;
    int status = learn_algorithm_check(algorithm);
    if (status < 0)
        return status;
    if (rows_per_grain < 0)
        return shoal_fail(SHOAL_USAGE, "rows_per_grain must be at least 1, not %lld", (long long)rows_per_grain);
    if (!rows_per_grain && algorithm->rows_per_grain)
        rows_per_grain = algorithm->rows_per_grain(config, shape);
    if (!rows_per_grain)
        rows_per_grain = data_rows_per_grain(shape->rows, shape->columns * (int64_t)shoal_type_size(shape->type));
    int64_t most = shape->rows < SHOAL_GRAIN_ROWS_MOST ? shape->rows : SHOAL_GRAIN_ROWS_MOST;
    shape->rows_per_grain = rows_per_grain < most ? rows_per_grain : most;
    shape->grains = (shape->rows + shape->rows_per_grain - 1) / shape->rows_per_grain;
    if (shape->grains > UINT32_MAX)
        return shoal_fail(SHOAL_USAGE, "%lld rows in grains of %lld are too many grains", (long long)shape->rows,
                          (long long)shape->rows_per_grain);
    return algorithm->strata ? choose_strata(shape, algorithm, config) : SHOAL_OK;
}

void engine_add_phase(shoal_phase phase[SHOAL_PHASES_MOST], int *phases, const char *name, double seconds,
                      int64_t rounds)
{
    int i = 0;
    while (i < *phases && strcmp(phase[i].name, name) != 0)
        i++;
    if (i == SHOAL_PHASES_MOST) {
        i--;
    } else if (i == *phases) {
        phase[i] = (shoal_phase){0};
        snprintf(phase[i].name, sizeof phase[i].name, "%s", name);
        (*phases)++;
    }
    phase[i].seconds += seconds;
    phase[i].rounds += rounds;
}

/* Errors that can be found before ranks exchange anything. */
static int check_call(engine_call *call, int64_t rows_per_grain)
{
    const shoal_run_options *options = call->options;
    if (options->threads < 0 || options->threads > SHOAL_THREADS_MOST)
        return shoal_fail(SHOAL_USAGE, "threads must be 1 to %d, not %d", SHOAL_THREADS_MOST, options->threads);
    if (!(options->checkpoint_seconds >= 0) || options->verify < 0)
        return shoal_fail(SHOAL_USAGE,
                          "neither the seconds between checkpoints nor the rounds between comparisons can be negative");
    if (!options->checkpoint && (options->checkpoint_seconds > 0 || options->resume))
        return shoal_fail(SHOAL_USAGE, "a checkpoint needs a file");
    if (options->into && options->into->name && options->ranks)
        return shoal_fail(SHOAL_USAGE, "memory for the result can't be given with ranks, which each have a part of it");
    int status = kernel_choose(&call->kernel, options->kernel);
    if (status == SHOAL_OK)
        status =
            engine_fill_shape(&call->shape, call->algorithm, call->config, call->data, call->weights, rows_per_grain);
    if (status == SHOAL_OK)
        status = engine_choose_device(&call->device, call->algorithm, &call->shape, options->device);
    return status;
}

int engine_choose_device(kernel_device **out, const shoal_algorithm *algorithm, const shoal_shape *shape,
                         const char *name)
{
    /* With fewer values a CPU is done before a GPU is awake. */
    static const double pays_from = 1 << 22;
    const bool named = name && *name && strcmp(name, "auto") != 0 && strcmp(name, "cpu") != 0;
    *out = NULL;
    if (algorithm->map_many)
        return named || (double)shape->rows * (double)shape->columns >= pays_from ? kernel_device_choose(out, name)
                                                                                  : SHOAL_OK;
    return named ? shoal_fail(SHOAL_USAGE, "--device: the learner '%s' runs on the CPU alone, not on %s",
                              algorithm->name, name)
                 : SHOAL_OK;
}

static int share_cores(engine_call *call)
{
    shoal_ranks *ranks = call->options->ranks;
    int asked = call->options->threads;
    int threads = asked ? asked : base_cores();
    call->shares = (engine_shares){.threads = threads, .all = threads, .hosts = 1, .here = 1};
    int status = ranks ? engine_share_cores(&call->shares, ranks, asked) : SHOAL_OK;
    call->threads = call->shares.threads;
    call->report->threads = call->threads;
    call->report->all_threads = call->shares.all;
    call->report->hosts = call->shares.hosts;
    call->report->ranks = ranks ? ranks->size : 1;
    return status;
}

int shoal_run(shoal_result **out, shoal_report *report, const shoal_algorithm *algorithm, const void *config,
              shoal_data *data, const double *weights, const shoal_run_options *options)
{
    static const shoal_run_options defaults;
    shoal_report unwanted;
    engine_call call = {.algorithm = algorithm,
                        .config = config,
                        .data = data,
                        .weights = weights,
                        .options = options ? options : &defaults,
                        .report = report ? report : &unwanted};
    *out = NULL;
    memset(call.report, 0, sizeof *call.report);
    int status = check_call(&call, call.options->rows_per_grain);
    if (call.options->ranks)
        status = engine_agree(call.options->ranks, status);
    if (status == SHOAL_OK)
        status = share_cores(&call);
    if (status < 0)
        return status;
    call.report->kernel = call.kernel->name;
    fenv_t callers; /* results do not depend on the caller's rounding mode */
    fegetenv(&callers);
    base_default_arithmetic();
    if (call.options->ranks || call.options->checkpoint)
        call.kernel_check = kernel_fingerprint(call.kernel, algorithm->kernel_free);
    status = engine_run_rounds(out, &call);
    fesetenv(&callers);
    return status;
}
