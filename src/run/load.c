/* Rows, weights and target of a run.  See load.h. */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "arrange.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "data/data_internal.h"
#include "data/table/data_missing.h"
#include "data/table/data_select.h"
#include "data/read_whole.h"
#include "process.h"
#include "ranks.h"
#include "target.h"

enum { STORE_PATIENCE = 60 }; /* seconds */

bool run_is_in_store(const char *path)
{
    return strstr(path, "://") || strncmp(path, "dir:", 4) == 0;
}

bool run_is_read_once(const char *path)
{
    struct stat about;
    return strcmp(path, "-") == 0 || (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
}

int run_note_data(shoal_outcome *outcome, const char *name, int64_t rows, int64_t columns, shoal_type type)
{
    outcome->rows = rows;
    outcome->columns = columns;
    outcome->type = outcome->own_type = type;
    base_free(&outcome->data_name);
    return base_copy_text(&outcome->data_name, name);
}

/* Weights of rows that were left out go with them. */
static int64_t follow_rows(double *weights, const shoal_data *data, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (!data->gone[i])
            weights[kept++] = weights[i];
    return kept;
}

/* One weight a row, as a column or as a row. */
static int load_weights(shoal_outcome *outcome, const char *path)
{
    const shoal_data *data = outcome->data;
    int64_t rows = 0, columns = 0, needed = data->gone ? data->source_rows : outcome->rows;
    double largest = 0;
    int status = data_read_float64(&outcome->own_weights, &rows, &columns, path);
    outcome->weights = outcome->own_weights;
    if (status < 0)
        return status;
    if (!(columns == 1 && rows == needed) && !(rows == 1 && columns == needed))
        return shoal_fail(
            SHOAL_INVALID,
            "%s: %lld row%s and %lld column%s, but --weights needs one value for each of the %lld row%s of %s", path,
            (long long)rows, base_plural(rows), (long long)columns, base_plural(columns), (long long)needed,
            base_plural(needed), outcome->data_name);
    for (int64_t i = 0; i < needed; i++)
        if (outcome->weights[i] < 0)
            return shoal_fail(SHOAL_INVALID, "%s: row %lld is %g, but a weight is at least 0", path, (long long)(i + 1),
                              outcome->weights[i]);
    if (data->gone)
        needed = follow_rows(outcome->own_weights, data, needed);
    for (int64_t i = 0; i < needed; i++)
        largest = outcome->weights[i] > largest ? outcome->weights[i] : largest;
    return largest > 0 ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "%s: every weight is 0", path);
}

/* Weights in memory of rows some of which were left out. */
static int follow_given_weights(shoal_outcome *outcome)
{
    const shoal_data *data = outcome->data;
    if (!data->gone || !outcome->weights || outcome->own_weights)
        return SHOAL_OK;
    int status =
        base_alloc_unset(&outcome->own_weights, (size_t)data->source_rows, sizeof *outcome->own_weights, "weights");
    if (status < 0)
        return status;
    memcpy(outcome->own_weights, outcome->weights, (size_t)data->source_rows * sizeof *outcome->own_weights);
    follow_rows(outcome->own_weights, data, data->source_rows);
    outcome->weights = outcome->own_weights;
    return SHOAL_OK;
}

/* Once it is open, messages call a blob as the command line does. */
static int open_data(shoal_outcome *outcome, const char *path, const shoal_data_options *options)
{
    bool in_store = run_is_in_store(path);
    int status = in_store ? run_protect_secrets(path) : SHOAL_OK;
    if (status < 0)
        return status;
    status = in_store ? shoal_job_data_open(&outcome->data, path, options, shoal_after(STORE_PATIENCE))
                      : shoal_data_open(&outcome->data, path, options);
    if (status < 0)
        return status;
    if (shoal_data_skipped(outcome->data) > 0 && run_is_first())
        run_warn(outcome, shoal_data_skipped_text(outcome->data));
    return run_note_data(outcome, in_store ? path : shoal_data_path(outcome->data), shoal_data_rows(outcome->data),
                         shoal_data_columns(outcome->data), shoal_data_type(outcome->data));
}

/* Whether the options ask for anything but the rows as they are. */
static bool refines(const shoal_data_options *options)
{
    return options->keep_columns || options->drop_columns || options->target ||
           options->missing != SHOAL_MISSING_REFUSE;
}

/* Rows that the caller has in memory; what is made of them is a copy. */
static int take_given_rows(shoal_outcome *outcome, const shoal_data_options *options)
{
    const shoal_request *request = outcome->request;
    int status = SHOAL_OK;
    outcome->weights = request->weights;
    outcome->data_lent = !refines(options);
    if (outcome->data_lent)
        outcome->data = request->rows;
    else
        status = data_alias(&outcome->data, request->rows);
    if (status == SHOAL_OK && !outcome->data_lent)
        status = data_refine(&outcome->data, options);
    if (status < 0)
        return status;
    return run_note_data(outcome, shoal_data_path(outcome->data), shoal_data_rows(outcome->data),
                         shoal_data_columns(outcome->data), shoal_data_type(outcome->data));
}

/* Features that a model knows and no row of an svmlight file has are zeros, whose columns the model still needs. */
static void ask_for_features(shoal_data_options *reading, const learn_schema *model)
{
    int64_t last = 0;
    reading->features = model->columns;
    for (int64_t i = 0; model->names && i < model->columns; i++) {
        int64_t index;
        if (!data_svmlight_is_feature(&index, model->names[i]))
            return;
        reading->feature_zero |= index == 0;
        last = index > last ? index : last;
    }
    if (model->names)
        reading->features = last + reading->feature_zero;
}

/* How the rows are read: with the target, which may be words, and as a model needs them. */
static void choose_reading(shoal_data_options *reading, char number[24], const shoal_outcome *outcome)
{
    const learn_schema *model = outcome->columns_used.model ? &outcome->columns_used.schema : NULL;
    run_target_read(reading, outcome);
    if (model && !reading->target && model->target) {
        reading->target = model->target;
    } else if (model && !reading->target && model->target_column > 0) {
        snprintf(number, 24, "%" PRId64, model->target_column);
        reading->target = number;
    }
    if (!model)
        return;
    ask_for_features(reading, model);
    reading->keep_text = true; /* also of columns that the model does not use, and so is what is missing there */
    reading->missing = SHOAL_MISSING_KEEP;
}

/* Rows that a model is applied to, once they have its columns. */
static int settle_for_model(shoal_outcome *outcome)
{
    const int64_t column = shoal_data_target(outcome->data);
    if (column >= 0 && shoal_data_word(outcome->data, 0))
        return shoal_fail(SHOAL_INVALID, "%s: column %" PRId64 " holds text, and %s was trained on numbers",
                          outcome->data_name, column + 1, outcome->columns_used.model);
    outcome->data->target = -1;
    if (outcome->columns != outcome->columns_used.schema.columns)
        return SHOAL_OK; /* which whoever applies the model refuses */
    return outcome->request->reading.missing == SHOAL_MISSING_MEAN
               ? data_missing_fill(&outcome->data, outcome->columns_used.schema.fill)
               : SHOAL_OK;
}

int run_load_rows(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const char *path = request->data, *weights = outcome->weights ? NULL : request->inputs.weights;
    shoal_data_options reading = request->reading;
    char target[24];
    char text[256];
    double started = base_seconds();
    if (path) {
        snprintf(text, sizeof text, "loading %s", path);
        run_doing(outcome, text);
    }
    outcome->read_once |= (path && run_is_read_once(path)) || (weights && run_is_read_once(weights));
    choose_reading(&reading, target, outcome);
    int status = path ? open_data(outcome, path, &reading) : take_given_rows(outcome, &reading);
    if (status == SHOAL_OK)
        status = run_target_settle(outcome);
    if (status == SHOAL_OK && weights)
        status = load_weights(outcome, weights);
    if (status == SHOAL_OK)
        status = follow_given_weights(outcome);
    if (status == SHOAL_OK)
        status = run_columns_settle(outcome);
    if (status == SHOAL_OK && outcome->columns_used.model)
        status = settle_for_model(outcome);
    if (status == SHOAL_OK)
        status = run_columns_scale(outcome);
    outcome->load_seconds = base_seconds() - started;
    return status;
}

int run_load_alone(shoal_outcome *outcome)
{
    int status = run_load_rows(outcome);
    return status == SHOAL_OK ? run_arrange(outcome) : status;
}

static int refuse_missing(const shoal_outcome *outcome, const data_missing *found)
{
    const run_columns *columns = &outcome->columns_used;
    char *advice = NULL;
    int status = columns->model
                     ? base_format(&advice,
                                   columns->schema.fill ? "--missing mean fills in the means that %s was trained with"
                                                        : "fill in what is missing, or train %s with --missing mean",
                                   columns->model)
                     : SHOAL_OK;
    if (status == SHOAL_OK)
        status = data_missing_refuse(outcome->data, found, advice);
    base_free(&advice);
    return status;
}

int run_explain_missing(const shoal_outcome *outcome, int status)
{
    char *told = NULL;
    data_missing found = {0};
    if (outcome->data && !outcome->request->rows && base_copy_text(&told, shoal_error()) == SHOAL_OK &&
        data_missing_count(&found, outcome->data) == SHOAL_OK && found.values > 0)
        status = refuse_missing(outcome, &found);
    else if (told)
        status = shoal_fail(status, "%s", told);
    base_free(&told);
    return status;
}
