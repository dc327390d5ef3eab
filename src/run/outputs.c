/* What a run writes when it has ended.  See run.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <shoal/version.h>

#include "outputs.h"

#include "apply.h"
#include "blobs.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "chart.h"
#include "data/data_internal.h"
#include "data/format/safetensors.h"
#include "learn/standardise.h"
#include "load.h"
#include "plot.h"
#include "plot/sheet.h"
#include "ranks.h"
#include "run.h"
#include "kept_request.h"

int run_outputs_check_names(const shoal_request *request)
{
    run_files outputs;
    int status = SHOAL_OK;
    run_request_outputs(&outputs, request);
    for (const run_file *output = outputs.file; output->name && status == SHOAL_OK; output++)
        if (output->path)
            status = data_content_check_name(output->name, output->path, &output->content);
    return status;
}

int run_outputs_check_old(const shoal_outcome *outcome)
{
    run_files outputs;
    run_request_outputs_for(&outputs, outcome->request, outcome->columns);
    for (run_file *output = outputs.file; output->name; output++)
        if (output->content.rank == 1) /* a value for each row */
            output->content.rows = outcome->rows;
    return run_files_check_old(outputs.file, outcome->request->force);
}

static int write_tensor(const char *path, const shoal_tensor *tensor, const data_codes *words)
{
    return data_array_write(path, &(data_array){.values = tensor->values,
                                                .type = tensor->type,
                                                .rank = tensor->rank,
                                                .shape = tensor->shape,
                                                .words = words ? *words : (data_codes){0}});
}

void run_output_note(data_content *content, const shoal_tensor *tensor)
{
    if (!tensor)
        return;
    content->type = shoal_type_name(tensor->type);
    content->rank = tensor->rank;
    content->rows = tensor->rank > 0 ? tensor->shape[0] : 1;
    content->columns = tensor->rank == 2 ? tensor->shape[1] : tensor->rank < 2 ? 1 : 0;
}

int run_write_tensor(const char *path, const shoal_result *result, const char *name, const data_codes *words)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, name);
    if (!tensor)
        SHOAL_BUG("the result has no %s", name);
    return write_tensor(path, tensor, words);
}

static int write_safetensors(const char *path, const shoal_outcome *outcome)
{
    const shoal_result *result = outcome->result;
    data_tensor *tensors = NULL;
    const data_metadata metadata[] = {{"learner", outcome->algorithm->name}, {"version", shoal_version()}};
    int status = base_alloc(&tensors, (size_t)result->tensors, sizeof *tensors, "the tensors of a result");
    if (status < 0)
        return status;
    for (int i = 0; i < result->tensors; i++) {
        const shoal_tensor *from = &result->tensor[i];
        tensors[i] = (data_tensor){.name = from->name, .type = from->type, .rank = from->rank, .values = from->values};
        memcpy(tensors[i].shape, from->shape, sizeof from->shape);
    }
    status = data_safetensors_write(path, tensors, result->tensors, metadata, sizeof metadata / sizeof metadata[0]);
    base_free(&tensors);
    return status;
}

/* The one tensor there is as an array, or all of them as .safetensors. */
static int write_result(const char *path, const char *name, const shoal_outcome *outcome)
{
    const shoal_tensor *tensor = &outcome->result->tensor[0];
    if (base_text_ends(path, ".safetensors"))
        return write_safetensors(path, outcome);
    if (outcome->result->tensors != 1)
        return shoal_fail(SHOAL_USAGE, "--%s %s: the result has %d tensors: write them to a .safetensors file", name,
                          path, outcome->result->tensors);
    return write_tensor(path, tensor, NULL);
}

int64_t run_picture_columns(const shoal_outcome *outcome)
{
    return outcome->columns - (outcome->face->classes_most > 0);
}

/* What the images are of: classes by their names, or, with one image for two classes, one of them against the other. */
static int name_classes(char **names, const data_sheet *sheet, const shoal_outcome *outcome)
{
    const shoal_tensor *classes = shoal_result_tensor(outcome->result, "classes");
    const learn_schema *schema = &outcome->columns_used.schema;
    const bool one = sheet->images == 1 && classes->shape[0] == 2;
    char *name[2] = {0};
    int status = SHOAL_OK;
    for (int64_t i = 0; i < sheet->images && status == SHOAL_OK; i++) {
        for (int k = 0; k <= one && status == SHOAL_OK; k++) {
            const int64_t class = one ? 1 - k : i;
            status = schema->classes && class < schema->classes_count
                         ? base_copy_text(&name[k], schema->classes[class])
                         : base_format(&name[k], "%.10g", ((const double *)classes->values)[class]);
        }
        if (status == SHOAL_OK)
            status = one ? base_format(&names[i], "%s (red) or %s (blue)", name[0], name[1])
                         : base_copy_text(&names[i], name[0]);
        base_free(&name[0]);
        base_free(&name[1]);
    }
    return status;
}

/* Weights of classes, as a sheet on which each has its name. */
static int write_class_sheet(const char *path, const data_sheet *sheet, const shoal_outcome *outcome)
{
    plot_canvas *canvas = NULL;
    char **names = NULL, *data_name = NULL, *title = NULL;
    int status = base_alloc(&names, (size_t)sheet->images, sizeof *names, "names of classes");
    if (status == SHOAL_OK)
        status = name_classes(names, sheet, outcome);
    if (status == SHOAL_OK)
        status = run_plot_name(&data_name, outcome);
    if (status == SHOAL_OK)
        status = base_format(&title, "%s: weights of %s", data_name, sheet->images > 1 ? "each class" : "two classes");
    if (status == SHOAL_OK)
        status = plot_sheet_new(&canvas, &(plot_sheet){.values = sheet->values,
                                                       .images = sheet->images,
                                                       .height = sheet->height,
                                                       .width = sheet->width,
                                                       .channels = sheet->channels == 3 ? 3 : 1,
                                                       .across = sheet->columns,
                                                       .scale = (double)outcome->request->picture.scale,
                                                       .names = names,
                                                       .title = title});
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
    plot_canvas_free(&canvas);
    base_free(&title);
    base_free(&data_name);
    for (int64_t i = 0; names && i < sheet->images; i++)
        base_free(&names[i]);
    base_free(&names);
    return status;
}

static int write_picture(const char *path, const shoal_outcome *outcome)
{
    const learn_ended ended = run_ended(outcome);
    data_sheet sheet = {0};
    double *images = NULL;
    int status = data_picture_find(&sheet, &outcome->request->picture, run_picture_columns(outcome), outcome->data);
    if (status == SHOAL_OK)
        status = outcome->face->draw(&sheet, &images, &ended);
    if (status == SHOAL_OK)
        status = sheet.of_classes ? write_class_sheet(path, &sheet, outcome) : data_picture_write(path, &sheet);
    base_free(&images);
    return status;
}

static int write_sheet(const char *path, const shoal_outcome *outcome)
{
    const learn_ended ended = run_ended(outcome);
    learn_shown shown = {0};
    plot_canvas *canvas = NULL;
    int status = outcome->face->show(&shown, outcome->blobs_to, &ended);
    if (status == SHOAL_OK)
        status = plot_sheet_new(&canvas, &(plot_sheet){.colours = shown.pixels,
                                                       .images = shown.images,
                                                       .height = shown.height,
                                                       .width = shown.width,
                                                       .scale = shown.height > 128 || shown.width > 128,
                                                       .names = shown.names,
                                                       .title = shown.title});
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
    else
        status = shoal_fail(status, "--picture %s: %s", path, shoal_error());
    plot_canvas_free(&canvas);
    learn_shown_release(&shown);
    return status;
}

static int write_chart(const char *path, const shoal_outcome *outcome)
{
    const learn_ended ended = run_ended(outcome);
    learn_chart chart;
    outcome->face->chart(&chart, &ended);
    return run_chart_write(path, &chart, outcome->data_name);
}

/* What stands for a row that was left out: -1, or not a number. */
static void fill_gone(void *values, shoal_type type, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (type == SHOAL_FLOAT64)
            ((double *)values)[i] = NAN;
        else if (type == SHOAL_FLOAT32)
            ((float *)values)[i] = NAN;
        else
            ((int32_t *)values)[i] = -1;
    }
}

/* As many rows as DATA has, so that they line up, although --missing drop left out some. */
static int write_of_rows(const char *path, const shoal_outcome *outcome, const shoal_tensor *tensor)
{
    const shoal_data *data = outcome->data;
    shoal_tensor whole = *tensor;
    void *values = NULL;
    const size_t size = shoal_type_size(tensor->type);
    int64_t width = 1;
    for (int i = 1; i < tensor->rank; i++)
        width *= tensor->shape[i];
    if (tensor->shape[0] != data->rows) /* what came from a store may be anything */
        return shoal_fail(SHOAL_INVALID, "%s has %" PRId64 " rows, but %s has %" PRId64, tensor->name, tensor->shape[0],
                          outcome->data_name, data->rows);
    if (tensor->type != SHOAL_FLOAT64 && tensor->type != SHOAL_FLOAT32 && tensor->type != SHOAL_INT32)
        SHOAL_BUG("no value of %s stands for rows that were left out", shoal_type_name(tensor->type));
    int status = base_alloc(&values, (size_t)data->source_rows, (size_t)width * size, tensor->name);
    const char *from = tensor->values;
    for (int64_t i = 0; i < data->source_rows && status == SHOAL_OK; i++) {
        char *to = (char *)values + (size_t)(i * width) * size;
        if (data->gone[i]) {
            fill_gone(to, tensor->type, width);
        } else {
            memcpy(to, from, (size_t)width * size);
            from += (size_t)width * size;
        }
    }
    whole.values = values;
    whole.shape[0] = data->source_rows;
    if (status == SHOAL_OK)
        status = write_tensor(path, &whole, NULL);
    base_free(&values);
    return status;
}

/* With the numbers that rows have in DATA, of which --missing drop left out some. */
static int write_naming_rows(const char *path, const shoal_outcome *outcome, const shoal_tensor *tensor)
{
    const shoal_data *data = outcome->data;
    const int64_t width = tensor->shape[1];
    shoal_tensor named = *tensor;
    int64_t *values = NULL, kept = -1, in_data = -1;
    const size_t count = (size_t)(tensor->shape[0] * width);
    int status = base_alloc(&values, count, sizeof *values, tensor->name);
    if (status < 0)
        return status;
    memcpy(values, tensor->values, count * sizeof *values);
    for (int64_t i = 0; i < tensor->shape[0] && status == SHOAL_OK; i++) {
        const int64_t row = values[i * width];
        while (kept < row && in_data + 1 < data->source_rows)
            kept += !data->gone[++in_data];
        if (kept != row) /* what came from a store may be anything */
            status = shoal_fail(SHOAL_INVALID, "%s has row %" PRId64 ", but %s has %" PRId64, tensor->name, row,
                                outcome->data_name, data->rows);
        values[i * width] = in_data;
    }
    named.values = values;
    if (status == SHOAL_OK)
        status = write_tensor(path, &named, NULL);
    base_free(&values);
    return status;
}

/* In the units that the rows had before --standardise. */
static int write_unstandardised(const char *path, const learn_schema *schema, const shoal_tensor *tensor)
{
    shoal_tensor original = *tensor;
    double *values = NULL;
    if (tensor->type != SHOAL_FLOAT64 || tensor->rank != 2 || tensor->shape[1] != schema->columns)
        return shoal_fail(SHOAL_INVALID, "%s does not have the %" PRId64 " columns of the rows", tensor->name,
                          schema->columns);
    const size_t count = (size_t)(tensor->shape[0] * tensor->shape[1]);
    int status = base_alloc(&values, count, sizeof *values, tensor->name);
    if (status < 0)
        return status;
    memcpy(values, tensor->values, count * sizeof *values);
    learn_unstandardise_values(values, tensor->shape[0], schema);
    original.values = values;
    status = write_tensor(path, &original, NULL);
    base_free(&values);
    return status;
}

static int write_named(const char *path, const shoal_outcome *outcome, const shoal_result *result,
                       const learn_output *output)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, output->name);
    if (tensor && output->as_wide_as_data && outcome->columns_used.schema.mean)
        return write_unstandardised(path, &outcome->columns_used.schema, tensor);
    if (tensor && output->of_rows && outcome->data && outcome->data->gone)
        return write_of_rows(path, outcome, tensor);
    if (tensor && output->names_rows && outcome->data && outcome->data->gone)
        return write_naming_rows(path, outcome, tensor);
    return run_write_tensor(path, result, output->name, NULL);
}

static int write_output(const shoal_outcome *outcome, const learn_output *output, const char *path)
{
    const learn_ended ended = run_ended(outcome);
    switch (output->kind) {
    case LEARN_TENSOR: return write_named(path, outcome, outcome->result, output);
    case LEARN_MODEL: return learn_model_file_write(path, outcome->face, &ended);
    case LEARN_PICTURE: return write_picture(path, outcome);
    case LEARN_RESULT: return write_result(path, output->name, outcome);
    case LEARN_CHART: return write_chart(path, outcome);
    case LEARN_SHEET: return write_sheet(path, outcome);
    case LEARN_PLOT:
    case LEARN_APPLIED: break; /* which take a run */
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
                            "%s: now %" PRId64 " row%s of %" PRId64 " column%s; the job had %" PRId64 " of %" PRId64,
                            outcome->data_name, outcome->rows, base_plural(outcome->rows), outcome->columns,
                            base_plural(outcome->columns), rows, columns);
    return status;
}

static int write_applied(run_moved *moved, shoal_outcome *outcome, const learn_output *output, run_file *file)
{
    const learn_ended ended = run_ended(outcome);
    shoal_result *result = NULL;
    char *place = NULL;
    int status = run_apply_ended(&result, outcome, &ended, output->name);
    if (status == SHOAL_OK && run_is_first()) {
        run_output_note(&file->content, shoal_result_tensor(result, output->name));
        status = run_file_place(&place, moved, file, outcome->request->force);
        if (status == SHOAL_OK)
            status = write_named(place, outcome, result, output);
    }
    base_free(&place);
    shoal_result_free(&result);
    return status;
}

static int write_plot(run_moved *moved, shoal_outcome *outcome, run_file *file)
{
    const learn_ended ended = run_ended(outcome);
    learn_plot shown;
    run_plotted plotted;
    char *place = NULL;
    outcome->face->plot(&shown, &ended);
    int status = run_plot_make(&plotted, outcome, &outcome->request->plot, &shown);
    if (status == SHOAL_OK && run_is_first())
        status = run_file_place(&place, moved, file, outcome->request->force);
    if (place)
        status = run_plot_write(place, &plotted, outcome);
    base_free(&place);
    run_plot_release(&plotted);
    return status;
}

/* All ranks run over the rows once more, and rank 0 alone writes. */
static int write_run(run_moved *moved, shoal_outcome *outcome, const learn_output *output, run_file *file)
{
    bool wanted = file->path != NULL;
    int status = run_ranks_follow(&wanted);
    if (status < 0 || !wanted)
        return status;
    if (!outcome->data)
        status = load_again(outcome, output->name);
    if (status < 0)
        return status;
    return output->kind == LEARN_PLOT ? write_plot(moved, outcome, file) : write_applied(moved, outcome, output, file);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Writes one output that needs no run, and that rank 0 has a file for. */
static int write_placed(run_moved *moved, shoal_outcome *outcome, const learn_output *output, run_file *file)
{
    const shoal_result *result = outcome->result;
    const bool drops = outcome->request->reading.missing == SHOAL_MISSING_DROP;
    char *place = NULL;
    if (output->kind == LEARN_TENSOR)
        run_output_note(&file->content, shoal_result_tensor(result, output->name));
    else if (output->kind == LEARN_RESULT && result->tensors == 1)
        run_output_note(&file->content, &result->tensor[0]);
    int status = run_file_place(&place, moved, file, outcome->request->force);
    if (status == SHOAL_OK && output->kind == LEARN_TENSOR && (output->of_rows || output->names_rows) && drops &&
        !outcome->data)
        status = load_again(outcome, output->name); /* which rows were left out */
    if (status == SHOAL_OK)
        status = write_output(outcome, output, place);
    base_free(&place);
    return status;
}

static bool takes_run(const learn_output *output)
{
    return output->kind == LEARN_APPLIED || output->kind == LEARN_PLOT;
}

/* Pictures of blobs, once these are at their place. */
static int write_sheets(run_moved *moved, shoal_outcome *outcome)
{
    const learn_output *outputs = outcome->face->outputs;
    run_files files;
    int status = SHOAL_OK;
    run_request_outputs_for(&files, outcome->request, outcome->columns);
    for (int i = 0; outputs[i].name && status == SHOAL_OK; i++)
        if (files.file[i].path && outputs[i].kind == LEARN_SHEET)
            status = write_placed(moved, outcome, &outputs[i], &files.file[i]);
    return status;
}

static int write_run_outputs(run_moved *moved, shoal_outcome *outcome)
{
    const learn_output *outputs = outcome->face->outputs;
    run_files files;
    int status = SHOAL_OK;
    run_request_outputs_for(&files, outcome->request, outcome->columns);
    for (int i = 0; outputs[i].name && status == SHOAL_OK && run_is_first(); i++)
        if (files.file[i].path && !takes_run(&outputs[i]) && outputs[i].kind != LEARN_SHEET)
            status = write_placed(moved, outcome, &outputs[i], &files.file[i]);
    for (int i = 0; outputs[i].name && status == SHOAL_OK; i++)
        if (takes_run(&outputs[i]))
            status = write_run(moved, outcome, &outputs[i], &files.file[i]);
    return status;
}

/* Where the trace goes, which has been written under another name until now. */
static int place_trace(run_moved *moved, shoal_outcome *outcome)
{
    const run_file file = {"--trace", outcome->request->trace.trace, {.kind = DATA_CONTENT_TRACE}};
    char *place = NULL;
    if (!outcome->trace.output)
        return SHOAL_OK;
    int status = run_file_place(&place, moved, &file, outcome->request->force);
    if (status == SHOAL_OK && strcmp(place, file.path) != 0)
        status = base_output_redirect(outcome->trace.output, place);
    base_free(&place);
    return status;
}

/* The trace comes last: once its file is there, so are the others. */
int run_finish(shoal_outcome *outcome)
{
    double started = base_seconds();
    run_moved moved = {0};
    int status = write_run_outputs(&moved, outcome);
    if (!run_is_first())
        return status;
    if (status == SHOAL_OK)
        status = place_trace(&moved, outcome);
    if (status == SHOAL_OK)
        status = run_blobs_finish(outcome);
    if (status == SHOAL_OK)
        status = write_sheets(&moved, outcome);
    if (status == SHOAL_OK)
        run_tell_end(outcome);
    if (status == SHOAL_OK)
        status = run_trace_commit(&outcome->trace, shoal_result_number(outcome->result, "objective"));
    outcome->write_seconds = base_seconds() - started;
    if (status == SHOAL_OK && outcome->checkpoint && !outcome->report.stopped)
        status = shoal_checkpoint_remove(outcome->checkpoint);
    return run_away_close(outcome, run_moved_tell(&moved, status));
}
