/* shoal sweep: searches hyper-parameters of a command or of a learner (sweep/runner.h). */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "base/pool.h"
#include "plan/units.h"
#include "run/jobs.h"
#include "run/tasks.h"
#include "sweep/crew.h"
#include "sweep/repeats.h"
#include "sweep_print.h"
#include "sweep_verb.h"

enum { WORKERS_MOST = 1024 };

typedef struct settings {
    cli_common common;
    shoal_texts vary;
    const char *run, *learner, *objective, *timeout, *folder;
    int64_t steps;
    int sampler, stop, order;
    int64_t eta, least, trials, seed, ahead, repeat;
    const char *reach, *time, *price, *budget, *other_sweep;
    run_jobs_settings jobs;
    const char *name;
    shoal_texts workers, send;
    const char *ssh;
    int64_t threads;
    bool resume, json, quiet;
} settings;

#define AT(field) offsetof(settings, field)

static const char *const samplers[] = {"tpe", "gp", "random", "sobol", "grid", NULL};
static const char *const stoppers[] = {"none", "asha", "hyperband", "median", NULL};
static const char *const orders[] = {"free", "strict", NULL};

static const shoal_option trial_rows[] = {
    {"run", 0, SHOAL_OPTION_TEXT, AT(run), "COMMAND",
     .help = "command of a trial, by /bin/sh; {NAME} is replaced by the value of a parameter; it reports by lines such "
             "as {\"step\": 3, \"loss\": 0.2} on its standard output"},
    {"learner", 0, SHOAL_OPTION_TEXT, AT(learner), "WORDS",
     .help = "instead: a learner of shoal with its data and options, such as 'train digits.npy --net digits.net'; each "
             "parameter is one of its options"},
    {"objective", 0, SHOAL_OPTION_TEXT, AT(objective), "KEY,...",
     .help =
         "what trials report, as small as possible, or as great where KEY is accuracy or score; KEY:min and KEY:max "
         "say which; seconds and cost are measured; further keys are only kept and shown (default: loss)"},
    {"steps", 0, SHOAL_OPTION_COUNT, AT(steps), "N",
     .help = "steps of a whole trial, epochs or rounds; it is ended there (default: as many as it reports)", .least = 1,
     .most = 1e6},
    {"repeat", 0, SHOAL_OPTION_COUNT, AT(repeat), "R",
     .help =
         "run each trial's command R times at once, with $SHOAL_REPEAT from 0 on, a learner with seeds 1 to R; what "
         "counts is the mean of their reports",
     .fallback = "1", .least = 1, .most = SWEEP_REPEATS_MOST},
    {"timeout", 0, SHOAL_OPTION_TEXT, AT(timeout), "TIME",
     .help = "a trial without a report for so long has failed: 30m, 2h (default: never)"},
    {"folder", 0, SHOAL_OPTION_TEXT, AT(folder), "DIR",
     .help = "folder with one for each trial, which its command finds as $SHOAL_FOLDER (default: NAME.trials)"},
    {0},
};
static const shoal_option search_rows[] = {
    {"vary", 0, SHOAL_OPTION_LIST, AT(vary), "NAME=VALUES",
     .help = "a parameter, as a range (rate=1e-4..1e-1:log) or a list (batch=32,128,512); may be given several times, "
             "with a SPACE.json or without"},
    {"trials", 0, SHOAL_OPTION_COUNT, AT(trials), "N", .help = "begin at most N trials", .fallback = "30", .least = 1,
     .most = 1e6},
    {"time", 0, SHOAL_OPTION_TEXT, AT(time), "TIME", .help = "stop after this time: 30m, 2h (default: never)"},
    {"reach", 0, SHOAL_OPTION_TEXT, AT(reach), "VALUE", .help = "stop when a trial is as good as this"},
    {"price", 0, SHOAL_OPTION_TEXT, AT(price), "MONEY", .help = "what an hour of one worker costs: 0.03USD"},
    {"budget", 0, SHOAL_OPTION_TEXT, AT(budget), "MONEY",
     .help = "stop before all workers of all processes, at --price, cost more than this (default: any)"},
    {"from", 0, SHOAL_OPTION_TEXT, AT(other_sweep), "OTHER",
     .help = "take over what another sweep of the same store has found, where this space has its points, too; it does "
             "not count against --trials"},
    {"sampler", 0, SHOAL_OPTION_CHOICE, AT(sampler), "NAME",
     .help = "how new trials are chosen: near good ones (tpe), where a Gaussian process expects most (gp), by chance, "
             "spread evenly (sobol), or all combinations",
     .fallback = "tpe", .choices = samplers},
    {"stop", 0, SHOAL_OPTION_CHOICE, AT(stop), "RULE",
     .help = "which trials are paused early: none; all but the best 1/eta at each rung (asha), in brackets that begin "
             "to compare later and later (hyperband); those worse than the median",
     .fallback = "none", .choices = stoppers},
    {"eta", 0, SHOAL_OPTION_COUNT, AT(eta), "N", .help = "asha, hyperband: one of N goes on", .fallback = "3",
     .least = 2, .most = 100},
    {"least-steps", 0, SHOAL_OPTION_COUNT, AT(least), "N",
     .help = "no trial is judged by fewer steps (default: steps / eta^4)", .least = 1, .most = 1e6},
    {"seed", 0, SHOAL_OPTION_COUNT, AT(seed), "N", .help = "seed of what is drawn by chance", .fallback = "1",
     .least = 0, .most = 1e15},
    {"order", 0, SHOAL_OPTION_CHOICE, AT(order), "ORDER",
     .help = "free: each decision sees all results so far; strict: the same trials and decisions for any number of "
             "workers, where trials report the same",
     .fallback = "free", .choices = orders},
    {"ahead", 0, SHOAL_OPTION_COUNT, AT(ahead), "A",
     .help = "strict: decision k sees the results of all before k - A, so that A can run at once", .fallback = "16",
     .least = 1, .most = 10000},
    {0},
};
static const shoal_option place_rows[] = {
    {"workers", 'w', SHOAL_OPTION_LIST, AT(workers), "N|WHERE",
     .help = "N trials at once; or workers that run one each: local:N processes of this machine, ssh:HOST[:N],... or "
             "slurm:N; may be given several times",
     .default_text = "half of the cores this process may use"},
    {"threads", 't', SHOAL_OPTION_COUNT, AT(threads), "N", .help = "threads of a learner's trial", .least = 1,
     .most = 1024, .default_text = "this machine's cores divided among trials at once; 1 elsewhere"},
    {"send", 0, SHOAL_OPTION_LIST, AT(send), "FILE",
     .help = "bring this file to workers of other machines; may be given several times; files that --learner names go "
             "by themselves"},
    {"ssh", 0, SHOAL_OPTION_TEXT, AT(ssh), "COMMAND",
     .help = "command that ssh: calls instead of ssh, such as 'ssh -F FILE'", .default_text = "$SHOAL_SSH, or ssh"},
    {"name", 0, SHOAL_OPTION_TEXT, AT(name), "NAME",
     .help = "what the sweep is called (default: the name of SPACE.json, or sweep)"},
    {"resume", 0, SHOAL_OPTION_FLAG, AT(resume), NULL,
     .help = "go on with the sweep of this name, if there is one; --trials, --reach, --price and --budget may be "
             "others"},
    {0},
};
static const shoal_option output_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, AT(json), NULL, .help = "print one JSON object at the end instead of the table"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, AT(quiet), NULL, .help = "print only the result, without the table"},
    {0},
};
static const shoal_option *const trial_options = trial_rows, *const search_options = search_rows,
                                 *const place_options = place_rows, *const output_options = output_rows;
static const base_option_group groups[] = {
    {"Trials", &trial_options, 0},
    {"Search", &search_options, 0},
    {"Where", &place_options, 0},
    {"Store", &run_jobs_options, AT(jobs)},
    {"Output", &output_options, 0},
    {"Help", &cli_common_options, AT(common)},
    {0},
};

/* ---- the spec ---------------------------------------------------------------------------------------------------- */

/* "loss", "f1:max": the key, and whether it is to be great. */
static int read_objective(char key[256], bool *maximise, const char *text)
{
    static const char *const great[] = {"accuracy", "validation_accuracy", "score", NULL};
    static const char *const small[] = {"loss", "validation_loss", "objective", "error", "seconds", "cost", NULL};
    const char *colon = strrchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (length > 255)
        return shoal_fail(SHOAL_USAGE, "--objective %.80s...: is longer than 255 bytes", text);
    snprintf(key, 256, "%.*s", (int)length, text);
    *maximise = false;
    if (colon && (strcmp(colon, ":max") == 0 || strcmp(colon, ":min") == 0)) {
        *maximise = strcmp(colon, ":max") == 0;
        return key[0] ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "--objective %s: the key is missing", text);
    }
    for (int i = 0; great[i]; i++)
        if (strcmp(text, great[i]) == 0)
            *maximise = true;
    for (int i = 0; small[i] && !*maximise; i++)
        if (strcmp(text, small[i]) == 0)
            return SHOAL_OK;
    return *maximise ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "--objective %s: say %s:min or %s:max", text, text, text);
}

static bool is_listed(const json_t *others, const char *key, const char *name)
{
    bool found = strcmp(key, name) == 0;
    for (size_t i = 0; i < json_array_size(others); i++)
        found = found || strcmp(json_string_value(json_object_get(json_array_get(others, i), "objective")), name) == 0;
    return found;
}

/* What counts, and a list of what else is kept. */
static int read_objectives(char key[256], bool *maximise, json_t *others, const char *text)
{
    char *own = NULL, *rest = NULL;
    int status = base_copy_text(&own, text), count = 0;
    for (const char *one = status == SHOAL_OK ? strtok_r(own, ",", &rest) : NULL; one && status == SHOAL_OK;
         one = strtok_r(NULL, ",", &rest)) {
        char name[256];
        bool great = false;
        status = read_objective(name, &great, one);
        if (status == SHOAL_OK && is_listed(others, count > 0 ? key : "", name))
            status = shoal_fail(SHOAL_USAGE, "--objective %.80s: has %s twice", text, name);
        if (count++ == 0) {
            memcpy(key, name, sizeof name);
            *maximise = great;
        } else if (status == SHOAL_OK) {
            json_array_append_new(others,
                                  json_pack("{s:o,s:b}", "objective", base_json_text(name), "maximise", (int)great));
        }
    }
    base_free(&own);
    if (status == SHOAL_OK && (count == 0 || count > SWEEP_OBJECTIVES_MOST))
        status = shoal_fail(SHOAL_USAGE, "--objective %.80s: takes 1 to %d keys", text, SWEEP_OBJECTIVES_MOST);
    return status;
}

static int make_spec(sweep_spec **out, const settings *from, const char *space_path)
{
    sweep_space *space = NULL;
    char objective[256];
    bool maximise = false;
    double timeout = 0;
    json_t *others = json_array();
    *out = NULL;
    int status = sweep_space_read(&space, space_path, &from->vary);
    if (status == SHOAL_OK)
        status = read_objectives(objective, &maximise, others, from->objective ? from->objective : "loss");
    if (status == SHOAL_OK && from->timeout)
        status = plan_parse_duration(&timeout, "--timeout", from->timeout);
    if (status < 0) {
        json_decref(others);
        sweep_space_free(&space);
        return status;
    }
    json_t *json = json_object();
    base_json_put(&json, "sweep", json_integer(1));
    base_json_put(&json, "space", sweep_space_json(space));
    base_json_put(&json, "sampler", json_string(samplers[from->sampler]));
    base_json_put(&json, "stop", json_string(stoppers[from->stop]));
    base_json_put(&json, "eta", json_integer(from->eta));
    base_json_put(&json, "least", json_integer(from->least));
    base_json_put(&json, "steps", json_integer(from->steps));
    base_json_put(&json, "ahead", json_integer(from->order ? from->ahead : 0));
    base_json_put(&json, "seed", json_integer(from->seed));
    base_json_put(&json, "objective", base_json_text(objective));
    base_json_put(&json, "maximise", json_boolean(maximise));
    base_json_put(&json, "others", others);
    if (from->repeat > 1)
        base_json_put(&json, "repeat", json_integer(from->repeat));
    if (from->other_sweep)
        base_json_put(&json, "from", base_json_text(from->other_sweep));
    base_json_put(&json, from->run ? "run" : "learner", base_json_text(from->run ? from->run : from->learner));
    base_json_put(&json, "timeout", json_real(timeout));
    sweep_space_free(&space);
    status = json ? sweep_spec_of_json(out, space_path ? space_path : "--vary", json)
                  : shoal_fail(SHOAL_MEMORY, "out of memory for a sweep");
    if (status == SHOAL_OK)
        status = sweep_command_check(*out, space_path ? space_path : "--vary");
    return status == SHOAL_INVALID && !space_path ? SHOAL_USAGE : status;
}

static int check_sweep_settings(const settings *from, int words)
{
    if (words == 0 && from->vary.count == 0)
        return shoal_fail(SHOAL_USAGE, "sweep needs a SPACE.json or --vary NAME=VALUES");
    if (!from->run && !from->learner)
        return shoal_fail(SHOAL_USAGE, "sweep needs --run COMMAND or --learner WORDS: what a trial is");
    if (from->run && from->learner)
        return shoal_fail(SHOAL_USAGE, "--run and --learner exclude each other");
    if (from->budget && !from->price)
        return shoal_fail(SHOAL_USAGE, "--budget needs --price MONEY: what an hour of one worker costs");
    return SHOAL_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

enum { FAILURES_SHOWN = 5 };

typedef struct shown {
    const settings *from;
    const sweep_spec *spec;
    cli_progress progress;
    int64_t failures;
    char failure[SWEEP_NOTE_BYTES]; /* the last */
} shown;

static int64_t count_ended(const sweep_course *course)
{
    return course->orders - course->open;
}

static void show_failure(shown *self, int64_t trial)
{
    cli_progress_clear(&self->progress);
    fprintf(stderr, "shoal: trial %" PRId64 " failed: ", trial);
    cli_put_text(stderr, self->failure);
    fputs(self->failures == FAILURES_SHOWN ? "\nshoal: further failures are not shown\n" : "\n", stderr);
}

/* The line on a terminal; the table shows trials that have come to where they will stay for now. */
static void show_sweep(void *context, const sweep_log *log, const sweep_ended *ended)
{
    shown *self = context;
    char line[256];
    if (ended && ended->result.failed) {
        memcpy(self->failure, ended->note, sizeof self->failure);
        if (++self->failures <= FAILURES_SHOWN && !self->from->quiet)
            show_failure(self, log->course.order[ended->result.order].trial);
    }
    if (!self->progress.stream)
        return;
    snprintf(line, sizeof line, "%" PRId64 " trials, %" PRId64 " results, %" PRId64 " running", log->course.trials,
             count_ended(&log->course), log->course.open);
    if (log->course.best >= 0)
        snprintf(line + strlen(line), sizeof line - strlen(line), ", best %s %.6g (trial %" PRId64 ")",
                 self->spec->objective, cli_sweep_value(log, log->course.best), log->course.best);
    cli_progress_say(&self->progress, line);
}

static void show_table(const sweep_spec *spec, const sweep_log *log)
{
    cli_sweep_print_head(spec);
    for (int64_t i = 0; i < log->course.trials; i++)
        cli_sweep_print_trial(log, i);
    putchar('\n');
}

static int say_end(const shown *self, const sweep_log *log, const sweep_place *place, int status)
{
    const settings *from = self->from;
    const char *name = place->name;
    const sweep_spec *spec = self->spec;
    if (status < 0 && status != SHOAL_STOPPED)
        return status;
    if (from->json)
        cli_print_json(cli_sweep_json(spec, log, name));
    if (!from->json && !from->quiet)
        show_table(spec, log);
    if (!from->json)
        cli_sweep_print_end(spec, log, place);
    if (status == SHOAL_STOPPED) {
        fprintf(stderr, "shoal: interrupted; the same command with --resume goes on\n");
        return CLI_INTERRUPTED;
    }
    if (log->course.best >= 0)
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID, "no trial of sweep '%s' has reported \"%s\"%s%.400s", name, spec->objective,
                      self->failure[0] ? "; the last that failed: " : "", self->failure);
}

/* "space" of "path/space.json". */
static int name_sweep(char **out, const settings *from, const char *space_path)
{
    if (from->name || !space_path)
        return base_copy_text(out, from->name ? from->name : "sweep");
    const char *last = base_path_name(space_path), *dot = strrchr(last, '.');
    return base_copy_text_n(out, last, dot && dot > last ? (size_t)(dot - last) : strlen(last));
}

static int make_folder(char **out, const settings *from, const char *name)
{
    char *given = NULL;
    int status = from->folder ? base_copy_text(&given, from->folder) : base_format(&given, "%s.trials", name);
    if (status == SHOAL_OK && mkdir(given, 0777) < 0 && errno != EEXIST)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make the folder of the trials", given);
    char *path = status == SHOAL_OK ? realpath(given, NULL) : NULL;
    if (status == SHOAL_OK)
        status = path ? base_copy_text(out, path)
                      : shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't find the folder of the trials", given);
    free(path);
    base_free(&given);
    return status;
}

/* This very program, for trials of learners. */
static int find_program(char **out)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't find the program that runs");
    return base_copy_text_n(out, path, (size_t)length);
}

static bool is_stopped(void *context)
{
    (void)context;
    return *cli_signals_stop() != 0;
}

static int run_spec(const settings *from, const sweep_spec *spec, sweep_run *run)
{
    shown self = {.from = from, .spec = spec};
    sweep_log log;
    int status = sweep_run_open(run, from->resume);
    if (status < 0)
        return status;
    sweep_log_init(&log, &spec->rules, spec->maximise, spec->ahead);
    cli_progress_start(&self.progress, from->quiet);
    run->told = show_sweep;
    run->stops = is_stopped;
    run->context = &self;
    cli_signals_allow_stop(true);
    status = sweep_run_trials(&log, run);
    cli_signals_allow_stop(false);
    cli_progress_clear(&self.progress);
    status = say_end(&self, &log, &run->place, status);
    sweep_log_release(&log);
    return status;
}

static int read_money(sweep_run *run, const settings *from, const sweep_spec *spec)
{
    int status = from->price ? plan_parse_money(&run->price, "--price", from->price) : SHOAL_OK;
    if (status == SHOAL_OK && from->budget)
        status = plan_parse_money(&run->budget, "--budget", from->budget);
    for (int i = 0; i < spec->objective_count && status == SHOAL_OK; i++)
        if (spec->objectives[i].measure == SWEEP_COST && run->price == 0)
            status = shoal_fail(SHOAL_USAGE, "--objective cost needs --price MONEY: what an hour of one worker costs");
    return status;
}

/* ---- where trials run -------------------------------------------------------------------------------------------- */

/* From a thread that looks after workers. */
static void say_line(void *context, const char *line)
{
    const settings *from = context;
    if (from->quiet)
        return;
    flockfile(stderr);
    fputs("shoal: ", stderr);
    cli_put_text(stderr, line);
    fputc('\n', stderr);
    funlockfile(stderr);
}

/* N trials at once of this process; 0: workers elsewhere. */
static int read_workers(int64_t *out, const settings *from)
{
    const char *first = from->workers.count == 1 ? from->workers.text[0] : "";
    int64_t cores = base_cores();
    *out = from->workers.count == 0 ? (cores + 1) / 2 : 0;
    if (*first && !first[strspn(first, "0123456789")] &&
        (!base_parse_count(out, first) || *out < 1 || *out > WORKERS_MOST))
        return shoal_fail(SHOAL_USAGE, "--workers %s: is not from 1 to %d", first, WORKERS_MOST);
    if (*out > 0 && (from->send.count > 0 || from->ssh))
        return shoal_fail(SHOAL_USAGE, "--%s is for workers elsewhere: --workers ssh:HOST", from->ssh ? "ssh" : "send");
    return SHOAL_OK;
}

/* Files that a learner's words name, in a copy of them that the caller frees. */
static int send_files_of(shoal_texts *send, char **words, const char *learner)
{
    char *rest = NULL;
    struct stat about;
    int status = base_copy_text(words, learner);
    for (char *word = status == SHOAL_OK ? strtok_r(*words, " \t\n'\"", &rest) : NULL; word;
         word = strtok_r(NULL, " \t\n'\"", &rest)) {
        const char *value = word[0] == '-' && strchr(word, '=') ? strchr(word, '=') + 1 : word;
        if (send->count < SHOAL_TEXTS_MOST && base_path_stays_below(value) && stat(value, &about) == 0 &&
            S_ISREG(about.st_mode))
            send->text[send->count++] = value;
    }
    return status;
}

static int run_sweep(void *from_main, const char *const *word, int words)
{
    const settings *from = from_main;
    const int cores = base_cores();
    sweep_spec *spec = NULL;
    cli_sweep_place place = {0};
    char *name = NULL, *folder = NULL, *program = NULL, *learner = NULL;
    shoal_texts send = from->send;
    sweep_crew_options crew = {
        .workers = &from->workers, .ssh = from->ssh, .send = &send, .say = say_line, .context = from_main};
    sweep_run run = {.trials = from->trials, .goal = INFINITY};
    int status = check_sweep_settings(from, words);
    if (status == SHOAL_OK)
        status = read_workers(&run.workers, from);
    run.threads = from->threads ? from->threads : run.workers && run.workers < cores ? cores / run.workers : 1;
    run.crew = run.workers ? NULL : &crew;
    if (status == SHOAL_OK && run.crew && (status = run_check_task_workers(&from->workers)) == SHOAL_OK)
        status = sweep_crew_check(&crew);
    if (status == SHOAL_OK)
        status = make_spec(&spec, from, word[0]);
    if (status == SHOAL_OK)
        status = read_money(&run, from, spec);
    if (status == SHOAL_OK && from->time)
        status = plan_parse_duration(&run.seconds, "--time", from->time);
    if (status == SHOAL_OK && from->reach && (!base_parse_real(&run.goal, from->reach) || !isfinite(run.goal)))
        status = shoal_fail(SHOAL_USAGE, "--reach %s: is not a number", from->reach);
    if (status == SHOAL_OK)
        status = name_sweep(&name, from, word[0]);
    if (status == SHOAL_OK)
        status = cli_sweep_place_open(&place, &from->jobs, name, RUN_JOBS_CREATE);
    if (status == SHOAL_OK)
        status = make_folder(&folder, from, name);
    if (status == SHOAL_OK)
        status = find_program(&program);
    if (status == SHOAL_OK && run.crew && from->learner)
        status = send_files_of(&send, &learner, from->learner);
    if (status == SHOAL_OK) {
        crew.url = place.jobs.url;
        run.spec = spec;
        run.place = place.place;
        run.folder = folder;
        run.program = program;
        status = run_spec(from, spec, &run);
    }
    cli_sweep_place_close(&place);
    sweep_spec_free(&spec);
    base_free(&learner);
    base_free(&program);
    base_free(&folder);
    base_free(&name);
    return status;
}

static const char *const description[] = {
    "Searches the hyper-parameters of a command, or of one of shoal's learners. Each trial runs it with other values; "
    "all that is decided and known lies in a store, so that kill -9 of anything and --resume lose nothing but what "
    "running trials did since their last checkpoint.",
    "SPACE.json is an object: {\"rate\": {\"low\": 1e-4, \"high\": 0.1, \"scale\": \"log\"}, \"batch\": [32, 128], "
    "\"momentum\": {\"low\": 0.5, \"high\": 0.99, \"when\": {\"optimiser\": \"momentum\"}}, \"optimiser\": "
    "[\"sgd\", \"momentum\"]}; docs/sweep.md has its form.",
    "A trial's command reports by lines of JSON on its standard output, {\"step\": 3, \"loss\": 0.2}, and finds its "
    "number as $SHOAL_TRIAL, the steps of a whole trial as $SHOAL_STEPS, and a folder of its own, which it gets back "
    "when it is taken up again, as $SHOAL_FOLDER. One that fails, hangs past --timeout or reports NaN is one failed "
    "trial. What it leaves running is ended with it.",
    "With --workers trials run on workers that this command starts, here, by ssh or by Slurm, each of which takes one "
    "trial after another and decides by itself what is next; this command looks on. One that dies is started again, "
    "and others go on with its trial from the last checkpoint that the store has: folders of trials are kept there "
    "every 30 seconds. Elsewhere a trial runs in a folder with what --send brings.",
    "The same command may run several times for one sweep, with --resume, on one machine or on several that share the "
    "store: they share the trials.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal sweep space.json --run './train --rate {rate} --batch {batch}' --trials 50", "50 trials of a command"},
    {"shoal sweep --vary rate=1e-4..1e-1:log --vary batch=32,128 --steps 9 --stop asha "
     "--learner 'train digits.npy --net digits.net --epochs 9 --validation 0.1' --objective validation_loss",
     "of a learner, most of them paused early"},
    {NULL, NULL},
};
const cli_verb cli_sweep = {
    .name = "sweep",
    .summary = "search hyper-parameters of a command or a learner",
    .word = {"SPACE.json"},
    .words_least = 0,
    .synopsis = "--run COMMAND | --learner WORDS [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_sweep,
};
