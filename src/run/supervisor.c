/* Looking after the workers of a job that goes on without the process that submitted it.  See supervisor.h. */
#include "supervisor.h"

#include <stdio.h>

#include "base/memory.h"
#include "launch/launch.h"

/* `shoal job resume` in its own session looks after the workers of a detached job. */
int run_supervise(const shoal_outcome *outcome)
{
    const run_place *place = &outcome->request->place;
    const run_workers_options *options = &outcome->request->workers;
    char threads[24], memory[24], patience[32];
    char *log = NULL;
    snprintf(threads, sizeof threads, "%lld", (long long)place->threads);
    snprintf(memory, sizeof memory, "%lld", (long long)options->worker_memory);
    snprintf(patience, sizeof patience, "%.17g", run_patience(outcome));
    const char *arguments[LAUNCH_ARGUMENTS_MOST + 1] = {"job",
                                                        "resume",
                                                        outcome->away.id,
                                                        "--store",
                                                        outcome->jobs.url,
                                                        "--roles",
                                                        options->roles ? options->roles : "all",
                                                        "--kernel",
                                                        place->kernel,
                                                        "--patience",
                                                        patience,
                                                        "--quiet",
                                                        "--as-scaled"};
    int count = 13;
    for (int i = 0; i < options->workers.count; i++) {
        arguments[count++] = "--workers";
        arguments[count++] = options->workers.text[i];
    }
    if (options->ssh) {
        arguments[count++] = "--ssh";
        arguments[count++] = options->ssh;
    }
    if (options->allow_code) {
        arguments[count++] = "--allow-code";
        arguments[count++] = options->allow_code;
    }
    if (options->data_root) {
        arguments[count++] = "--data-root";
        arguments[count++] = options->data_root;
    }
    if (options->write_outputs)
        arguments[count++] = "--write-outputs";
    if (place->threads > 0) {
        arguments[count++] = "--threads";
        arguments[count++] = threads;
    }
    if (options->worker_memory > 0) {
        arguments[count++] = "--worker-memory";
        arguments[count++] = memory;
    }
    int status = run_jobs_file_path(&log, outcome->away.id, "log");
    if (status == SHOAL_OK)
        status = launch_detached(outcome->request->program, arguments, log);
    base_free(&log);
    return status;
}
