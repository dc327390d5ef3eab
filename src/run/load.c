/* Rows, weights and labels of a run.  See load.h. */
#include "load.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data/read_whole.h"
#include "labels.h"
#include "process.h"

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
    outcome->type = type;
    base_free(&outcome->data_name);
    return base_copy_text(&outcome->data_name, name);
}

/* One weight a row, as a column or as a row. */
static int load_weights(shoal_outcome *outcome, const char *path)
{
    int64_t rows = 0, columns = 0, needed = outcome->rows;
    double largest = 0;
    int status = data_read_float64(&outcome->own_weights, &rows, &columns, path);
    outcome->weights = outcome->own_weights;
    if (status < 0)
        return status;
    if (!(columns == 1 && rows == needed) && !(rows == 1 && columns == needed))
        return shoal_fail(
            SHOAL_INVALID,
            "%s: %lld rows and %lld columns, but --weights needs one value for each of the %lld rows of %s", path,
            (long long)rows, (long long)columns, (long long)needed, outcome->data_name);
    for (int64_t i = 0; i < needed; i++) {
        if (outcome->weights[i] < 0)
            return shoal_fail(SHOAL_INVALID, "%s: row %lld is %g, but a weight is at least 0", path, (long long)(i + 1),
                              outcome->weights[i]);
        largest = outcome->weights[i] > largest ? outcome->weights[i] : largest;
    }
    return largest > 0 ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "%s: every weight is 0", path);
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
    return run_note_data(outcome, in_store ? path : shoal_data_path(outcome->data), shoal_data_rows(outcome->data),
                         shoal_data_columns(outcome->data), shoal_data_type(outcome->data));
}

/* Rows that the caller has in memory. */
static int take_given_rows(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    outcome->data = request->rows;
    outcome->data_lent = true;
    outcome->weights = request->weights;
    return run_note_data(outcome, shoal_data_path(request->rows), shoal_data_rows(request->rows),
                         shoal_data_columns(request->rows), shoal_data_type(request->rows));
}

int run_load_alone(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const char *path = request->data, *weights = outcome->weights ? NULL : request->inputs.weights;
    char text[256];
    double started = base_seconds();
    if (path) {
        snprintf(text, sizeof text, "loading %s", path);
        run_doing(outcome, text);
    }
    outcome->read_once |= (path && run_is_read_once(path)) || (weights && run_is_read_once(weights));
    int status = path ? open_data(outcome, path, &request->reading) : take_given_rows(outcome);
    if (status == SHOAL_OK && weights)
        status = load_weights(outcome, weights);
    if (status == SHOAL_OK && request->inputs.labels)
        status = run_labels_join(outcome, request->inputs.labels);
    if (status == SHOAL_OK)
        status = run_columns_settle(outcome);
    outcome->load_seconds = base_seconds() - started;
    return status;
}
