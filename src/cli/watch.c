/* How a verb watches a run.  Signals end a run after its round while that is allowed; lines go to stderr between those
 * of the progress. */
#include "cli.h"

#include "run/ranks.h"

void cli_watch_start(cli_watch *watch, bool quiet)
{
    *watch = (cli_watch){.quiet = quiet};
    cli_progress_start(&watch->progress, quiet || !run_is_first());
}

static void show_doing(void *context, const char *text)
{
    cli_watch *watch = context;
    if (text)
        cli_progress_say(&watch->progress, text);
    else
        cli_progress_clear(&watch->progress);
}

static void show_round(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    cli_watch *watch = context;
    cli_progress_round(&watch->progress, done, next, rows, seconds);
}

static void show_line(cli_watch *watch, const char *before, const char *line)
{
    if (watch->quiet)
        return;
    cli_progress_clear(&watch->progress);
    fputs(before, stderr);
    cli_put_text(stderr, line);
    fputc('\n', stderr);
}

static void show_warning(void *context, const char *line)
{
    show_line(context, "shoal: ", line);
}

static void show_note(void *context, const char *line)
{
    show_line(context, "", line);
}

static void allow_stop_run(void *context, bool may)
{
    (void)context;
    cli_signals_allow_stop(may);
}

static void remember_leftovers(void *context, const char *const *paths)
{
    (void)context;
    cli_signals_remove(paths);
}

shoal_watcher cli_watcher(cli_watch *watch)
{
    return (shoal_watcher){.context = watch,
                           .round = show_round,
                           .doing = show_doing,
                           .warn = show_warning,
                           .note = show_note,
                           .may_stop = allow_stop_run,
                           .leftovers = remember_leftovers,
                           .stop = cli_signals_stop()};
}
