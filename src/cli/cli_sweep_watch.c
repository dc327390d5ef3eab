/* shoal sweep watch: how a sweep goes on, as a table on a terminal that is drawn anew, elsewhere a line for each
 * change. */
#include "cli.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"
#include "sweep_print.h"
#include "sweep_verb.h"

static const double LOOK_EVERY = 1, SLEEP = 0.1;

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
} settings;

static const base_option_group groups[] = {
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int64_t rows_of_terminal(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

/* Trials that run, and then the best, as many as the terminal has room for. */
static int draw_table(const cli_sweep_known *s)
{
    const sweep_course *course = &s->log.course;
    const sweep_question question = {.trial = course->trial, .trials = course->trials};
    const int64_t room = rows_of_terminal() - 11;
    int64_t *order = NULL, shown = 0;
    int status = base_alloc(&order, (size_t)course->trials, sizeof *order, "a table");
    if (status < 0)
        return status;
    fputs("\033[H\033[J", stdout);
    cli_sweep_print_end(s->spec, &s->log, &s->at.place);
    putchar('\n');
    cli_sweep_print_head(s->spec);
    for (int64_t i = course->trials - 1; i >= 0 && shown < room / 2; i--)
        if (course->trial[i].state == SWEEP_RUNNING) {
            cli_sweep_print_trial(&s->log, i);
            shown++;
        }
    const int64_t ranked = sweep_rank_trials(order, &question);
    for (int64_t i = 0; i < ranked && shown < room; i++)
        if (course->trial[order[i]].state != SWEEP_RUNNING) {
            cli_sweep_print_trial(&s->log, order[i]);
            shown++;
        }
    base_free(&order);
    return SHOAL_OK;
}

static void print_line(const cli_sweep_known *s)
{
    const sweep_course *course = &s->log.course;
    printf("%" PRId64 " trials, %" PRId64 " results, %" PRId64 " running", course->trials,
           course->orders - course->open, course->open);
    if (course->best >= 0)
        printf(", best %s %.6g (trial %" PRId64 ")", s->spec->objective, cli_sweep_value(&s->log, course->best),
               course->best);
    putchar('\n');
}

static int run_watch(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    const bool terminal = isatty(STDOUT_FILENO);
    bool over = false;
    cli_sweep_known s;
    int64_t entries = -1;
    (void)words;
    int status = cli_sweep_open(&s, &from->jobs, word[0], false);
    cli_signals_allow_stop(true);
    while (status == SHOAL_OK) {
        if (s.log.entries != entries && terminal)
            status = draw_table(&s);
        else if (s.log.entries != entries)
            print_line(&s);
        entries = s.log.entries;
        fflush(stdout);
        if (status == SHOAL_OK)
            status = sweep_log_has_ended(&over, &s.log);
        if (status < 0 || over)
            break;
        const int64_t until = base_time_after(base_now(), LOOK_EVERY);
        while (base_now() < until && !cli_signals_stopped())
            base_sleep_until(base_time_after(base_now(), SLEEP));
        if (cli_signals_stopped())
            break;
        status = sweep_place_pull(&s.log, &s.at.place, false);
    }
    cli_signals_allow_stop(false);
    if (status == SHOAL_OK && !terminal && over)
        cli_sweep_print_end(s.spec, &s.log, &s.at.place);
    cli_sweep_close(&s);
    return status;
}

static const char *const description[] = {
    "Shows how a sweep goes on until it is over: on a terminal its best trials and those that run, drawn anew as "
    "results come, elsewhere a line whenever something has come. Ctrl-C ends the watching, not the sweep.",
    NULL,
};
static const learn_example examples[] = {{"shoal sweep watch digits", "the sweep 'digits', wherever it runs"},
                                         {NULL, NULL}};
const cli_verb cli_sweep_watch = {.name = "sweep watch",
                                  .summary = "show how a sweep goes on",
                                  .word = {"NAME"},
                                  .words_least = 1,
                                  .synopsis = "[options]",
                                  .description = description,
                                  .examples = examples,
                                  .options = groups,
                                  .settings_size = sizeof(settings),
                                  .run = run_watch};
