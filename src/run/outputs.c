/* What a run writes when it has ended.  See run.h. */
#include <inttypes.h>
#include <string.h>
#include <shoal/version.h>

#include "outputs.h"

#include "apply.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "data/safetensors.h"
#include "load.h"
#include "ranks.h"
#include "run.h"
#include "kept_request.h"

int run_outputs_check(const shoal_request *request)
{
    for (int i = 0; request->face->outputs[i].name; i++) {
        const char *path = request->output[i];
        if (!path || request->face->outputs[i].kind != LEARN_RESULT || base_text_ends(path, ".npy") ||
            base_text_ends(path, ".safetensors") || strncmp(path, "/dev/", 5) == 0)
            continue;
        return shoal_fail(SHOAL_USAGE, "--%s %s: the name must end in .npy or .safetensors",
                          request->face->outputs[i].name, path);
    }
    return SHOAL_OK;
}

int run_write_tensor(const char *path, const shoal_result *result, const char *name)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, name);
    if (!tensor)
        SHOAL_BUG("the result has no %s", name);
    return shoal_npy_write(path, tensor->values, tensor->type, tensor->rank, tensor->shape);
}

static int write_safetensors(const char *path, const shoal_outcome *outcome)
{
    const shoal_result *result = outcome->result;
    data_tensor tensors[SHOAL_TENSORS_MOST];
    const data_metadata metadata[] = {{"learner", outcome->algorithm->name}, {"version", shoal_version()}};
    for (int i = 0; i < result->tensors; i++) {
        const shoal_tensor *from = &result->tensor[i];
        tensors[i] = (data_tensor){.name = from->name, .type = from->type, .rank = from->rank, .values = from->values};
        memcpy(tensors[i].shape, from->shape, sizeof from->shape);
    }
    return data_safetensors_write(path, tensors, result->tensors, metadata, sizeof metadata / sizeof metadata[0]);
}

/* The one tensor there is as .npy, or all of them as .safetensors. */
static int write_result(const char *path, const char *name, const shoal_outcome *outcome)
{
    const shoal_tensor *tensor = &outcome->result->tensor[0];
    if (base_text_ends(path, ".safetensors"))
        return write_safetensors(path, outcome);
    if (outcome->result->tensors != 1)
        return shoal_fail(SHOAL_USAGE, "--%s %s: the result has %d tensors: write them to a .safetensors file", name,
                          path, outcome->result->tensors);
    return shoal_npy_write(path, tensor->values, tensor->type, tensor->rank, tensor->shape);
}

static int write_picture(const char *path, const shoal_outcome *outcome)
{
    const learn_ended ended = run_ended(outcome);
    data_sheet sheet = {0};
    double *images = NULL;
    int status = data_picture_find(&sheet, &outcome->request->picture, outcome->columns);
    if (status == SHOAL_OK)
        status = outcome->face->draw(&sheet, &images, &ended);
    if (status == SHOAL_OK)
        status = data_picture_write(path, &sheet);
    base_free(&images);
    return status;
}

static int write_output(const shoal_outcome *outcome, const learn_output *output, const char *path)
{
    const learn_ended ended = run_ended(outcome);
    switch (output->kind) {
    case LEARN_TENSOR: return run_write_tensor(path, outcome->result, output->name);
    case LEARN_MODEL: return learn_model_file_write(path, outcome->face, &ended);
    case LEARN_PICTURE: return write_picture(path, outcome);
    case LEARN_RESULT: return write_result(path, output->name, outcome);
    case LEARN_APPLIED: break; /* which takes a run */
    }
    return SHOAL_OK;
}

/* ---- what the model says of the rows it was learnt from ---------------------------------------------------------- */

/* Opens the rows again that a resumed job was submitted with. */
static int load_again(shoal_outcome *outcome, const char *option)
{
    int64_t rows = outcome->rows, columns = outcome->columns;
    int status = outcome->kept ? run_kept_may_load(outcome->kept, outcome->away.id) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = run_load_alone(outcome);
    if (status < 0)
        return shoal_fail(status, "--%s: %s", option, shoal_error());
    if (outcome->rows != rows || outcome->columns != columns)
        status = shoal_fail(SHOAL_INVALID,
                            "%s: now %" PRId64 " rows of %" PRId64 " columns; the job had %" PRId64 " of %" PRId64,
                            outcome->data_name, outcome->rows, outcome->columns, rows, columns);
    return status;
}

/* All ranks apply the model, and rank 0 alone writes. */
static int write_applied(shoal_outcome *outcome, const learn_output *output, const char *path)
{
    const learn_ended ended = run_ended(outcome);
    bool wanted = path != NULL;
    shoal_result *result = NULL;
    int status = run_ranks_follow(&wanted);
    if (status < 0 || !wanted)
        return status;
    if (!outcome->data)
        status = load_again(outcome, output->name);
    if (status == SHOAL_OK)
        status = run_apply_ended(&result, outcome, &ended, output->name);
    if (status == SHOAL_OK && run_is_first())
        status = run_write_tensor(path, result, output->name);
    shoal_result_free(&result);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int write_run_outputs(shoal_outcome *outcome)
{
    const learn_output *outputs = outcome->face->outputs;
    int status = SHOAL_OK;
    for (int i = 0; outputs[i].name && status == SHOAL_OK && run_is_first(); i++)
        if (outcome->request->output[i])
            status = write_output(outcome, &outputs[i], outcome->request->output[i]);
    for (int i = 0; outputs[i].name && status == SHOAL_OK; i++)
        if (outputs[i].kind == LEARN_APPLIED)
            status = write_applied(outcome, &outputs[i], outcome->request->output[i]);
    return status;
}

/* The trace comes last: a file of it that is there tells that the others are. */
int run_finish(shoal_outcome *outcome)
{
    double started = base_seconds();
    int status = write_run_outputs(outcome);
    if (!run_is_first())
        return status;
    if (status == SHOAL_OK)
        status = run_trace_commit(&outcome->trace, shoal_result_number(outcome->result, "objective"));
    outcome->write_seconds = base_seconds() - started;
    if (status == SHOAL_OK && outcome->checkpoint && !outcome->report.stopped)
        status = shoal_checkpoint_remove(outcome->checkpoint);
    return run_away_close(outcome, status);
}
