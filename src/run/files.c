/* The files of a request.  See request.h. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arrange.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/data_address.h"
#include "function.h"
#include "target.h"

/* ---- which there are --------------------------------------------------------------------------------------------- */

static void add_run_file(run_files *out, int *count, const char *dashes, const char *name, const char *path)
{
    snprintf(out->name[*count], RUN_NAME_BYTES, "%s%s", dashes, name);
    out->file[*count] = (run_file){.name = out->name[*count], .path = path};
    ++*count;
}

data_content run_output_content(const learn_output *output, const char *learner, int64_t columns)
{
    static const data_content_kind kinds[] = {
        [LEARN_TENSOR] = DATA_CONTENT_ARRAY,  [LEARN_APPLIED] = DATA_CONTENT_ARRAY,
        [LEARN_MODEL] = DATA_CONTENT_MODEL,   [LEARN_PICTURE] = DATA_CONTENT_PICTURE,
        [LEARN_CHART] = DATA_CONTENT_PICTURE, [LEARN_PLOT] = DATA_CONTENT_PICTURE,
        [LEARN_RESULT] = DATA_CONTENT_RESULT, [LEARN_SHEET] = DATA_CONTENT_PICTURE};
    return (data_content){.kind = kinds[output->kind],
                          .type = output->type,
                          .rank = output->rank,
                          .rows = DATA_CONTENT_LATER,
                          .columns = output->rank == 1         ? 1
                                     : output->as_wide_as_data ? columns
                                                               : 0,
                          .learner = learner};
}

void run_request_outputs_for(run_files *out, const shoal_request *request, int64_t columns)
{
    int count = 0;
    *out = (run_files){0};
    for (int i = 0; request->face->outputs[i].name; i++) {
        const learn_output *output = &request->face->outputs[i];
        add_run_file(out, &count, "--", output->name, request->output[i]);
        out->file[i].content = run_output_content(output, request->algorithm->name, columns);
    }
    add_run_file(out, &count, "--", "trace", request->trace.trace);
    out->file[count - 1].content.kind = DATA_CONTENT_TRACE;
    add_run_file(out, &count, "--", "held-picture", request->workers.held_picture);
    out->file[count - 1].content.kind = DATA_CONTENT_PICTURE;
}

void run_request_outputs(run_files *out, const shoal_request *request)
{
    run_request_outputs_for(out, request, 0);
}

void run_request_inputs(run_files *out, const shoal_request *request)
{
    const char *option = "";
    const char *start =
        request->face->start_file ? request->face->start_file(&option, request->config, &request->inputs) : NULL;
    int count = 0;
    *out = (run_files){0};
    add_run_file(out, &count, "", "DATA", request->data);
    add_run_file(out, &count, "--", "target", run_target_file(request->inputs.target));
    add_run_file(out, &count, "--", "weights", request->inputs.weights);
    add_run_file(out, &count, "--", "validation", run_arrangement_of(request).held);
    add_run_file(out, &count, "--", "validation-target", run_target_file(run_arrangement_of(request).held_target));
    if (start)
        add_run_file(out, &count, "", option, start);
    if (request->face->runs_code) {
        add_run_file(out, &count, "", "MODULE", request->function.module);
        add_run_file(out, &count, "--", "params", run_params_file(request));
        for (int i = 0; i < request->function.send.count && count < RUN_FILES_MOST - 1; i++)
            add_run_file(out, &count, "--", "send", request->function.send.text[i]);
    }
}

/* ---- that they are apart ----------------------------------------------------------------------------------------- */

/* Whether two paths mean one file that would be replaced.  Pipes, terminals and what stderr is redirected to take one
 * output after the other. */
static int is_same_file(bool *same, const char *output, const char *other)
{
    struct stat a, b;
    bool has_a = stat(output, &a) == 0 && strcmp(output, "-") != 0;
    bool has_b = strcmp(other, "-") == 0 ? fstat(STDIN_FILENO, &b) == 0 : stat(other, &b) == 0;
    *same = false;
    if ((has_a && !S_ISREG(a.st_mode)) || base_output_descriptor(output) >= 0)
        return SHOAL_OK;
    if (has_a && has_b)
        *same = a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (has_a || has_b)
        return SHOAL_OK;
    char *path = NULL, *other_path = NULL;
    int status = base_output_resolve(&path, output);
    if (status == SHOAL_OK)
        status = base_output_resolve(&other_path, other);
    if (status == SHOAL_OK)
        *same = strcmp(path, other_path) == 0;
    base_free(&path);
    base_free(&other_path);
    return status;
}

int run_files_apart(const run_file *output, const run_file *list, const run_file *end, const char *why)
{
    for (; list != end && list->name; list++) {
        bool same = false;
        char *file = NULL; /* that an array lies in */
        int status = list->path ? data_address_file(&file, list->path) : SHOAL_OK;
        if (status == SHOAL_OK && file)
            status = is_same_file(&same, output->path, file);
        base_free(&file);
        if (status < 0)
            return status;
        if (same)
            return shoal_fail(SHOAL_USAGE, "%s %s and %s %s are the same file%s", output->name, output->path,
                              list->name, list->path, why);
    }
    return SHOAL_OK;
}

/* Whether the path is what stdout is, other than /dev/null, where nothing mixes, and /dev/fd/N, with which somebody
 * wants it so. */
static bool is_stdout(const char *path)
{
    struct stat out, file, null;
    if (base_output_descriptor(path) > STDERR_FILENO)
        return false;
    if (strcmp(path, "-") == 0)
        path = "/dev/stdout";
    if (fstat(STDOUT_FILENO, &out) < 0 || stat(path, &file) < 0 || file.st_dev != out.st_dev ||
        file.st_ino != out.st_ino)
        return false;
    return stat("/dev/null", &null) < 0 || null.st_dev != out.st_dev || null.st_ino != out.st_ino;
}

/* Two outputs on standard output would have no border between them. */
static int check_stdout_apart(const run_file *output, const run_file *outputs)
{
    for (const run_file *other = outputs; other != output && is_stdout(output->path); other++)
        if (other->path && is_stdout(other->path))
            return shoal_fail(SHOAL_USAGE, "%s %s and %s %s both go to standard output: write one of them to a file",
                              other->name, other->path, output->name, output->path);
    return SHOAL_OK;
}

int run_files_check(const run_file *outputs, const run_file *inputs, bool json)
{
    for (const run_file *output = outputs; output->name; output++) {
        if (!output->path)
            continue;
        if (json && is_stdout(output->path))
            return shoal_fail(SHOAL_USAGE, "%s %s is standard output, which --json prints to: write to another file",
                              output->name, output->path);
        int status = check_stdout_apart(output, outputs);
        if (status == SHOAL_OK)
            status = run_files_apart(output, outputs, output, ": each output needs its own");
        if (status == SHOAL_OK)
            status = run_files_apart(output, inputs, NULL, ": an input is never overwritten; write to another file");
        if (status == SHOAL_OK)
            status = data_content_check_name(output->name, output->path, &output->content);
        if (status == SHOAL_OK)
            status = base_output_check(output->path);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

int run_files_check_old(const run_file *outputs, bool force)
{
    int status = SHOAL_OK;
    for (; outputs->name && status == SHOAL_OK && !force; outputs++)
        if (outputs->path)
            status = data_content_check_old(outputs->name, outputs->path, &outputs->content);
    return status;
}

int run_file_place(char **out, run_moved *moved, const run_file *output, bool force)
{
    int status = force ? SHOAL_OK : data_content_check_old(output->name, output->path, &output->content);
    if (status != SHOAL_USAGE)
        return status == SHOAL_OK ? base_copy_text(out, output->path) : status;
    status = data_content_beside(out, output->path);
    if (status == SHOAL_OK && !moved->sentence)
        status = base_format(&moved->sentence,
                             "%s %s: the file holds something else, so it was left alone and %s was written instead",
                             output->name, output->path, *out);
    return status;
}

int run_moved_tell(run_moved *moved, int status)
{
    if (moved->sentence && status == SHOAL_OK)
        status = shoal_fail(SHOAL_SYSTEM, "%s", moved->sentence);
    base_free(&moved->sentence);
    return status;
}

static const shoal_option force_rows[] = {
    {"force", 0, SHOAL_OPTION_FLAG, 0, NULL,
     .help = "replace output files whatever they hold; without it a file is replaced only by more of the same: the "
             "same format, type and shape"},
    {0},
};
const shoal_option *const run_force_options = force_rows;

bool run_files_have_stdout(const run_file *files)
{
    for (; files->name; files++)
        if (files->path && is_stdout(files->path))
            return true;
    return false;
}
