/* What the times of runs say.  See speed.h. */
#include "speed.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"

const char *const speed_factor_names[SPEED_FACTORS] = {"batch size", "batches", "data size", "repetition"};

double speed_value(const speed_run *run, speed_factor factor)
{
    const int64_t values[SPEED_FACTORS] = {run->batch_size, run->batches, run->images, run->repetition};
    return (double)values[factor];
}

double speed_rate(const speed_run *run)
{
    return (double)run->images / run->seconds;
}

int speed_pass(const speed_outcome *outcome, int regression)
{
    return outcome->passes > 1 ? regression : 0;
}

/* The runs of a source in one pass, as columns. */
typedef struct columns {
    int64_t count;
    double *factor[SPEED_FACTORS];
    double *rate, *seconds, *processor;
    double *pair;  /* batches and images, row by row */
    double *again; /* rates that the fit would give */
    double *memory;
} columns;

static int make_columns(columns *out, int64_t runs)
{
    enum { COLUMNS = SPEED_FACTORS + 6 };
    *out = (columns){0};
    int status = base_alloc(&out->memory, (size_t)runs, COLUMNS * sizeof *out->memory, "the times of runs");
    if (status < 0)
        return status;
    for (int i = 0; i < SPEED_FACTORS; i++)
        out->factor[i] = out->memory + i * runs;
    out->rate = out->memory + SPEED_FACTORS * runs;
    out->seconds = out->rate + runs;
    out->processor = out->seconds + runs;
    out->again = out->processor + runs;
    out->pair = out->again + runs;
    return SHOAL_OK;
}

static void fill_columns(columns *out, const speed_outcome *outcome, int source, int pass)
{
    out->count = 0;
    for (int64_t i = 0; i < outcome->runs; i++) {
        const speed_run *run = &outcome->run[i];
        if (run->source != source || run->pass != pass)
            continue;
        for (int k = 0; k < SPEED_FACTORS; k++)
            out->factor[k][out->count] = speed_value(run, (speed_factor)k);
        out->rate[out->count] = speed_rate(run);
        out->seconds[out->count] = run->seconds;
        out->processor[out->count] = run->processor;
        out->pair[2 * out->count] = (double)run->batches;
        out->pair[2 * out->count + 1] = (double)run->images;
        out->count++;
    }
}

static void summarise_rates(speed_found *out, columns *with)
{
    double sum = 0;
    for (int64_t i = 0; i < with->count; i++)
        sum += with->rate[i];
    out->mean = sum / (double)with->count;
    memcpy(with->again, with->rate, (size_t)with->count * sizeof *with->again);
    base_sort_reals(with->again, (size_t)with->count);
    out->median = (with->again[(with->count - 1) / 2] + with->again[with->count / 2]) / 2;
}

static double processor_of(const speed_outcome *outcome, int source)
{
    double seconds = 0, images = 0;
    for (int64_t i = 0; i < outcome->runs; i++)
        if (outcome->run[i].source == source) {
            seconds += outcome->run[i].processor;
            images += (double)outcome->run[i].images;
        }
    return seconds / images;
}

/* The rates of runs that take exactly as long as the fit says. */
static void predict_rates(columns *with, const base_regression *fit)
{
    for (int64_t i = 0; i < with->count; i++) {
        const double batches = with->pair[2 * i], images = with->pair[2 * i + 1];
        with->again[i] = images / (fit->of[0].value + fit->of[1].value * batches + fit->of[2].value * images);
    }
}

static int analyse_source(speed_outcome *outcome, int source, columns *with)
{
    speed_found *found = &outcome->source[source].found;
    fill_columns(with, outcome, source, 0);
    summarise_rates(found, with);
    found->processor = processor_of(outcome, source);
    fill_columns(with, outcome, source, speed_pass(outcome, SPEED_FACTORS));
    int status = base_regress(&found->fit, with->pair, 2, with->seconds, with->count);
    if (status == SHOAL_OK)
        status = base_regress(&found->work, with->pair, 2, with->processor, with->count);
    for (int i = 0; i < SPEED_FACTORS && status == SHOAL_OK; i++) {
        speed_influence *of = &found->factor[i];
        fill_columns(with, outcome, source, speed_pass(outcome, i));
        of->correlation = base_correlate(with->factor[i], with->rate, with->count);
        of->explained = NAN;
        if (found->fit.known) {
            predict_rates(with, &found->fit);
            of->explained = base_correlate(with->factor[i], with->again, with->count).value;
        }
        status = base_regress(&of->line, with->factor[i], 1, with->rate, with->count);
    }
    return status;
}

int speed_analyse(speed_outcome *outcome)
{
    columns with;
    int status = make_columns(&with, outcome->runs);
    for (int i = 0; i < outcome->sources && status == SHOAL_OK; i++)
        status = analyse_source(outcome, i, &with);
    base_free(&with.memory);
    return status;
}
