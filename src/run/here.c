/* Runs on the threads of this process, or on ranks.  See run.h. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "predicted.h"
#include "ranks.h"
#include "blobs.h"
#include "run.h"
#include "function.h"
#include "load.h"
#include "process.h"

/* The place of the checkpoint, when there is to be one.  It is removed in the end, and so would be an output there. */
static int name_checkpoint(shoal_outcome *outcome)
{
    const run_ranks_options *ranks = &outcome->request->ranks;
    run_files outputs;
    if (ranks->checkpoint <= 0 && !ranks->resume)
        return SHOAL_OK;
    if (ranks->file && run_is_in_store(ranks->file))
        return run_protect_secrets(ranks->file) < 0 ? SHOAL_USAGE : base_copy_text(&outcome->checkpoint, ranks->file);
    int status = ranks->file ? base_copy_text(&outcome->checkpoint, ranks->file)
                             : base_format(&outcome->checkpoint, "%s.checkpoint", outcome->algorithm->name);
    if (status < 0 || !run_is_first())
        return status;
    run_request_outputs(&outputs, outcome->request);
    return run_files_apart(&(run_file){.name = "the checkpoint", .path = outcome->checkpoint}, outputs.file, NULL,
                           ": each needs its own");
}

static void warn_idle(const shoal_outcome *outcome)
{
    const shoal_report *report = &outcome->report;
    int grains = report->ranks - report->idle;
    char line[160];
    if (report->idle == 0 || !run_is_first())
        return;
    snprintf(line, sizeof line, "%d of %d ranks had nothing to do: there %s only %d grain%s of rows", report->idle,
             report->ranks, grains == 1 ? "is" : "are", grains, base_plural(grains));
    run_warn(outcome, line);
}

/* Whether the failure is one of reading rows, which says where they are. */
static bool names_data(const shoal_outcome *outcome)
{
    const char *path = shoal_data_path(outcome->data), *found = strstr(shoal_error(), path);
    return found && (run_is_in_store(outcome->data_name) || strncmp(found + strlen(path), ": ", 2) == 0);
}

static void warn_spared(const shoal_outcome *outcome)
{
    char line[240], bytes[32];
    if (outcome->report.spared == 0 || !run_is_first())
        return;
    base_format_bytes(bytes, sizeof bytes, (double)outcome->report.spared);
    snprintf(line, sizeof line,
             "what frozen layers give takes %s for the rows of this process, more than there is memory for, and was "
             "computed anew in each step: --memory says how much may be used",
             bytes);
    run_warn(outcome, line);
}

/* A run that had to do without the device says why, and is as right. */
static void warn_device(const shoal_outcome *outcome)
{
    char line[400];
    if (!*outcome->report.device_lost || !run_is_first())
        return;
    snprintf(line, sizeof line, "went on on the CPU: %s", outcome->report.device_lost);
    run_warn(outcome, line);
}

int run_here(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    int status = name_checkpoint(outcome);
    shoal_run_options options = {.threads = (int)request->place.threads,
                                 .kernel = request->place.kernel,
                                 .device = request->place.device,
                                 .every_round = request->trace.trace || request->trace.tensorboard,
                                 .rows_per_grain = request->place.rows_per_grain,
                                 .memory = request->reading.memory,
                                 .code = outcome->function ? outcome->function->code.folder : NULL,
                                 .code_hash = outcome->function ? outcome->function->code.hash : NULL,
                                 .progress = run_on_round,
                                 .progress_context = outcome,
                                 .stop = request->watch.stop,
                                 .ranks = run_ranks(),
                                 .verify = request->ranks.verify,
                                 .checkpoint_seconds = request->ranks.checkpoint,
                                 .checkpoint = outcome->checkpoint,
                                 .resume = request->ranks.resume,
                                 .into = request->into};
    if (status == SHOAL_OK)
        status = run_blobs_open(outcome);
    if (status == SHOAL_OK)
        status = run_blobs_begin(outcome);
    if (status == SHOAL_OK)
        status = run_blobs_watch(&options.from, outcome);
    options.to = outcome->blobs_to;
    if (status == SHOAL_OK && run_is_first())
        status = run_trace_open(&outcome->trace, &request->trace);
    if (status < 0)
        return status;
    run_may_stop(outcome, outcome->face->keeps_part && run_is_learning(outcome));
    status = shoal_run(&outcome->result, &outcome->report, outcome->algorithm, outcome->config, outcome->data,
                       outcome->weights, &options);
    run_may_stop(outcome, false);
    run_doing(outcome, NULL);
    if (status == SHOAL_INVALID)
        status = run_explain_missing(outcome, status);
    if (status == SHOAL_INVALID && !request->rows && !names_data(outcome)) /* a learner sees rows, not files */
        status = shoal_fail(status, "%s: %s", outcome->data_name, shoal_error());
    warn_idle(outcome);
    if (status == SHOAL_OK)
        warn_spared(outcome);
    if (status == SHOAL_OK)
        warn_device(outcome);
    if (status == SHOAL_OK && outcome->report.ranks == 1 && outcome->report.resumed == 0)
        run_predicted_note(outcome);
    return run_ranks_settled(status);
}
