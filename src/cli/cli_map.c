/* shoal map: a command for each argument, on the cores of this machine or on workers, as GNU parallel has it. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/pool.h"
#include "run/map.h"

enum { FAILED_MOST = 101, SOURCES_MOST = 256, INPUT_MOST = 1 << 30, JOBS_MOST = 4096, JOBS_UNLIMITED = 256 };

typedef struct settings {
    cli_common common;
    shoal_texts files, workers, send, returned;
    const char *jobs, *halt, *shell, *log, *ssh, *store;
    int64_t tries;
    double timeout;
    bool null, in_order, dry_run, resume, resume_failed, eta, transfer;
} settings;

static const shoal_option argument_rows[] = {
    {"arg-file", 'a', SHOAL_OPTION_LIST, offsetof(settings, files), "FILE",
     .help = "read arguments from FILE, one per line; '-' is standard input; may be given several times, as ::: may"},
    {"null", '0', SHOAL_OPTION_FLAG, offsetof(settings, null), NULL,
     .help = "arguments in files end with NUL rather than with a line, as `find -print0` writes them"},
    {0},
};
static const shoal_option job_rows[] = {
    {"jobs", 'j', SHOAL_OPTION_TEXT, offsetof(settings, jobs), "N",
     .help = "number of jobs at once, with --workers of each worker; +N and -N are so many more or fewer than there "
             "are cores, N% is a share of these, 0 is as many as there are jobs",
     .default_text = "the cores this process may use, or a worker's share of its machine's"},
    {"keep-order", 'k', SHOAL_OPTION_FLAG, offsetof(settings, in_order), NULL,
     .help = "print output in the order of the arguments rather than as jobs end"},
    {"timeout", 0, SHOAL_OPTION_REAL, offsetof(settings, timeout), "SECONDS",
     .help = "end a job that takes longer; it has failed (default: none)", .least = 0.001},
    {"retries", 0, SHOAL_OPTION_COUNT, offsetof(settings, tries), "N",
     .help = "run a job that fails again, N times in all", .fallback = "1", .least = 1, .most = 1000000},
    {"halt", 0, SHOAL_OPTION_TEXT, offsetof(settings, halt), "WHEN",
     .help = "now,fail=N: after N failed jobs end those that run, and start no others; soon,fail=N: let them end",
     .fallback = "never"},
    {"shell", 0, SHOAL_OPTION_TEXT, offsetof(settings, shell), "PROGRAM",
     .help = "the shell that reads the commands, also on other machines", .fallback = "/bin/sh"},
    {"dry-run", 0, SHOAL_OPTION_FLAG, offsetof(settings, dry_run), NULL, .help = "print the commands, and run none"},
    {0},
};
static const shoal_option log_rows[] = {
    {"joblog", 0, SHOAL_OPTION_TEXT, offsetof(settings, log), "FILE",
     .help = "write a line for each job that ends, in the format of GNU parallel"},
    {"resume", 0, SHOAL_OPTION_FLAG, offsetof(settings, resume), NULL,
     .help = "leave out the jobs that --joblog has already"},
    {"resume-failed", 0, SHOAL_OPTION_FLAG, offsetof(settings, resume_failed), NULL,
     .help = "the same, but run those again that failed"},
    {"eta", 0, SHOAL_OPTION_FLAG, offsetof(settings, eta), NULL,
     .help = "show on the terminal how many jobs have ended, and when the others may have"},
    {0},
};
static const shoal_option worker_rows[] = {
    {"workers", 0, SHOAL_OPTION_LIST, offsetof(settings, workers), "WHERE",
     .help = "run jobs on local:N processes of this machine, ssh:HOST[:N],... or slurm:N; may be given several times",
     .default_text = "this machine"},
    {"transfer", 0, SHOAL_OPTION_FLAG, offsetof(settings, transfer), NULL,
     .help = "bring each argument, which is a file below the current folder, to its job"},
    {"return", 0, SHOAL_OPTION_LIST, offsetof(settings, returned), "FILE",
     .help = "bring this file back, such as {.}.png; may be given several times"},
    {"send", 0, SHOAL_OPTION_LIST, offsetof(settings, send), "FILE",
     .help = "bring this file to all jobs; may be given several times"},
    {"ssh", 0, SHOAL_OPTION_TEXT, offsetof(settings, ssh), "COMMAND",
     .help = "command that ssh: calls instead of ssh, such as 'ssh -F FILE'", .default_text = "$SHOAL_SSH, or ssh"},
    {"store", 0, SHOAL_OPTION_TEXT, offsetof(settings, store), "URL",
     .help = "where jobs and results lie meanwhile (default: a temporary folder)"},
    {0},
};
static const shoal_option *const argument_options = argument_rows, *const job_options = job_rows,
                                 *const log_options = log_rows, *const worker_options = worker_rows;

static const base_option_group groups[] = {
    {"Arguments", &argument_options, 0},
    {"Jobs", &job_options, 0},
    {"Log and progress", &log_options, 0},
    {"Workers", &worker_options, 0},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* What was read of files; tables point into it. */
typedef struct sources {
    map_table table, group; /* group: of the last source, with those that are linked to it; not in the table yet */
    char *text[SOURCES_MOST];
    const char **value[SOURCES_MOST];
    int count;
} sources;

static void release_sources(sources *self)
{
    for (int i = 0; i < self->count; i++) {
        base_free(&self->text[i]);
        base_free(&self->value[i]);
    }
    map_table_release(&self->table);
    map_table_release(&self->group);
}

static int end_group(sources *self)
{
    int status = self->group.columns > 0 ? map_table_cross(&self->table, &self->group) : SHOAL_OK;
    map_table_release(&self->group);
    return status;
}

static int add_values(sources *self, const char *const *value, int64_t count, bool linked)
{
    int status = linked ? SHOAL_OK : end_group(self);
    return status == SHOAL_OK ? map_table_add(&self->group, value, count) : status;
}

static int add_file(sources *self, const char *path, bool null, bool linked)
{
    bool standard = strcmp(path, "-") == 0;
    size_t size = 0;
    int64_t count = 0;
    if (self->count == SOURCES_MOST)
        return shoal_fail(SHOAL_USAGE, "map: more than %d files of arguments", SOURCES_MOST);
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(SHOAL_INVALID, errno, "%s", path);
    int at = self->count++;
    int status = base_read_whole(&self->text[at], &size, file, INPUT_MOST, standard ? "standard input" : path);
    if (!standard)
        close(file);
    if (status == SHOAL_OK)
        status = map_cut_values(&self->value[at], &count, self->text[at], size, null ? '\0' : '\n');
    return status == SHOAL_OK ? add_values(self, self->value[at], count, linked) : status;
}

static bool is_mark(const char *word)
{
    size_t colons = strspn(word, ":");
    return (colons == 3 || colons == 4) && (!word[colons] || strcmp(word + colons, "+") == 0);
}

/* ::: a b, :::: file, and each with a '+' when its values go with those of the source before. */
static int add_marked(sources *self, const char *const *word, int words, bool null)
{
    int status = SHOAL_OK;
    for (int at = 0; at < words && status == SHOAL_OK;) {
        const char *mark = word[at++];
        bool linked = strchr(mark, '+') != NULL, are_files = strncmp(mark, "::::", 4) == 0;
        int first = at;
        while (at < words && !is_mark(word[at]))
            at++;
        if (linked && self->group.columns == 0)
            return shoal_fail(SHOAL_USAGE, "map: nothing stands before '%s' that its arguments could go with", mark);
        if (are_files && at == first)
            return shoal_fail(SHOAL_USAGE, "map: '%s' needs the name of a file", mark);
        for (int i = first; are_files && i < at && status == SHOAL_OK; i++)
            status = add_file(self, word[i], null, linked);
        if (!are_files)
            status = add_values(self, word + first, at - first, linked);
    }
    return status;
}

static int read_sources(sources *self, const settings *settings, const char *const *word, int words)
{
    int status = SHOAL_OK;
    for (int i = 0; i < settings->files.count && status == SHOAL_OK; i++)
        status = add_file(self, settings->files.text[i], settings->null, false);
    if (status == SHOAL_OK)
        status = add_marked(self, word, words, settings->null);
    if (status == SHOAL_OK && self->group.columns == 0)
        status = add_file(self, "-", settings->null, false);
    return status == SHOAL_OK ? end_group(self) : status;
}

static int join_words(char **out, const char *const *word, int words)
{
    int status = SHOAL_OK;
    for (int i = 0; i < words && status == SHOAL_OK; i++) {
        char *longer = NULL;
        status = base_format(&longer, "%s%s%s", *out ? *out : "", *out ? " " : "", word[i]);
        base_free(out);
        *out = longer;
    }
    return status;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

typedef struct teller {
    cli_progress progress;
    double began;
    bool unread; /* nobody reads standard output any more */
} teller;

static int tell_done(void *context, const map_done *done)
{
    teller *self = context;
    cli_progress_clear(&self->progress);
    size_t size = done->result->size;
    if (fwrite(done->result->bytes, 1, size, stdout) < size || fflush(stdout) != 0) {
        self->unread = errno == EPIPE;
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "standard output");
    }
    fwrite(done->said, 1, done->said_size, stderr);
    if (!done->why[0])
        return SHOAL_OK;
    fprintf(stderr, "shoal: job %lld: ", (long long)done->row + 1);
    cli_put_text(stderr, done->why);
    fputc('\n', stderr);
    return SHOAL_OK;
}

static void tell_progress(void *context, int64_t ended, int64_t failed, int64_t jobs)
{
    teller *self = context;
    char line[160], left[48] = "";
    double seconds = base_seconds() - self->began;
    if (ended > 0 && ended < jobs)
        snprintf(left, sizeof left, ", about %.0f s left", seconds / (double)ended * (double)(jobs - ended));
    snprintf(line, sizeof line, "%lld of %lld jobs, %lld failed%s", (long long)ended, (long long)jobs,
             (long long)failed, left);
    cli_progress_say(&self->progress, line);
}

static void tell_warning(void *context, const char *line)
{
    teller *self = context;
    cli_progress_clear(&self->progress);
    fputs("shoal: ", stderr);
    cli_put_text(stderr, line);
    fputc('\n', stderr);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static int read_halt(map_options *out, const char *text)
{
    char *end = NULL;
    bool now = strncmp(text, "now,fail=", 9) == 0, soon = strncmp(text, "soon,fail=", 10) == 0;
    if (strcmp(text, "never") == 0)
        return SHOAL_OK;
    out->halt = now || soon ? strtoll(strchr(text, '=') + 1, &end, 10) : 0;
    out->halt_now = now;
    return out->halt > 0 && !*end
               ? SHOAL_OK
               : shoal_fail(SHOAL_USAGE, "--halt: '%s' is none of never, now,fail=N and soon,fail=N", text);
}

/* N, +N, -N, N% or 0, as GNU parallel has them. */
static int read_jobs(int64_t *out, const char *text, int64_t cores, bool elsewhere)
{
    int64_t number = 0;
    size_t length = text ? strlen(text) : 0;
    char digits[24] = "";
    bool relative = length > 0 && (text[0] == '+' || text[0] == '-'), share = length > 0 && text[length - 1] == '%';
    *out = 0;
    if (!text)
        return SHOAL_OK;
    snprintf(digits, sizeof digits, "%.*s", (int)(length - share - relative), text + relative);
    if (length >= sizeof digits || (relative && share) || !base_parse_count(&number, digits))
        return shoal_fail(SHOAL_USAGE, "--jobs: '%s' is none of N, +N, -N and N%%", text);
    if ((relative || share) && elsewhere)
        return shoal_fail(SHOAL_USAGE, "--jobs: '%s' counts the cores of this machine: with --workers it is a number",
                          text);
    if (number > JOBS_MOST)
        return shoal_fail(SHOAL_USAGE, "--jobs must be at most %d, not %s", JOBS_MOST, text);
    if (share)
        number = cores * number / 100;
    else if (relative)
        number = text[0] == '+' ? cores + number : cores - number;
    else if (number == 0)
        number = JOBS_UNLIMITED;
    *out = number < 1 ? 1 : number;
    return SHOAL_OK;
}

/* Workers may also be named at the end, after the arguments: no two files are called --workers and ssh:... */
static int take_last_workers(shoal_texts *workers, const char *const *word, int *words)
{
    static const char *const kinds[] = {"local:", "ssh:", "slurm:"};
    for (bool found = true; found && *words >= 3 && strcmp(word[*words - 2], "--workers") == 0;) {
        found = false;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            found |= strncmp(word[*words - 1], kinds[i], strlen(kinds[i])) == 0;
        if (found && workers->count == SHOAL_TEXTS_MOST)
            return shoal_fail(SHOAL_USAGE, "--workers can be given %d times at most", SHOAL_TEXTS_MOST);
        if (found) {
            workers->text[workers->count++] = word[*words - 1];
            *words -= 2;
        }
    }
    return SHOAL_OK;
}

static int print_commands(const map_options *options)
{
    map_template *template = NULL;
    int status = map_template_new(&template, options->command, options->table->columns, true);
    for (int64_t row = 0; row < options->table->rows && status == SHOAL_OK; row++) {
        char *command = NULL;
        status = map_template_fill(&command, template, options->table, row, true);
        if (status == SHOAL_OK)
            puts(command);
        base_free(&command);
    }
    map_template_free(&template);
    return status;
}

/* Where nobody reads its output it ends as programs do there, but only when its folder and its jobs are gone. */
static int run_all(const map_options *options)
{
    const teller *teller = options->context;
    map_counts counts = {0};
    cli_signals_allow_stop(true);
    void (*usual)(int) = signal(SIGPIPE, SIG_IGN);
    int status = run_map(&counts, options);
    signal(SIGPIPE, usual);
    cli_signals_allow_stop(false);
    if (teller->unread)
        raise(SIGPIPE);
    if (status < 0)
        return status;
    return counts.halted_by ? counts.halted_by : counts.failed < FAILED_MOST ? (int)counts.failed : FAILED_MOST;
}

static int run_map_verb(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    sources sources = {.count = 0};
    teller teller = {.began = base_seconds()};
    char *command = NULL;
    int before = 0;
    while (before < words && !is_mark(word[before]))
        before++;
    map_options options = {.table = &sources.table,
                           .shell = settings->shell,
                           .workers = &settings->workers,
                           .store = settings->store,
                           .ssh = settings->ssh,
                           .in_order = settings->in_order,
                           .transfer = settings->transfer,
                           .send = &settings->send,
                           .returned = &settings->returned,
                           .log = settings->log,
                           .resume = settings->resume,
                           .resume_failed = settings->resume_failed,
                           .tries = settings->tries,
                           .timeout = settings->timeout,
                           .stop = cli_signals_stop(),
                           .done = tell_done,
                           .progress = settings->eta ? tell_progress : NULL,
                           .warn = tell_warning,
                           .context = &teller};
    cli_progress_start(&teller.progress, !settings->eta);
    int status = take_last_workers(&settings->workers, word, &words);
    if (status == SHOAL_OK)
        status = read_jobs(&options.jobs, settings->jobs, base_cores(), settings->workers.count > 0);
    if (status == SHOAL_OK)
        status = read_halt(&options, settings->halt);
    if (status == SHOAL_OK && (settings->resume || settings->resume_failed) && !settings->log)
        status = shoal_fail(SHOAL_USAGE, "--resume needs the --joblog of the jobs that have ended");
    if (status == SHOAL_OK)
        status = join_words(&command, word, before);
    if (status == SHOAL_OK)
        status = read_sources(&sources, settings, word + before, words - before);
    options.command = command;
    if (status == SHOAL_OK)
        status = settings->dry_run ? print_commands(&options) : run_all(&options);
    cli_progress_clear(&teller.progress);
    release_sources(&sources);
    base_free(&command);
    return status;
}

static const char *const description[] = {
    "Runs COMMAND once for each argument, as GNU parallel does: on the cores of this machine, or with --workers on "
    "others, any of which may die at any moment.",
    "Arguments are the words after ':::', the lines of the files after '::::' and of --arg-file, or those of standard "
    "input. Several sources make each combination, the last one varying fastest; ':::+' and '::::+' go with the source "
    "before, one by one. Options stand before COMMAND, whose own may follow it; only --workers may also end the line. "
    "Without COMMAND the arguments are commands.",
    "In COMMAND, {} is the argument, {.} the same without its extension, {/} what follows its last '/', {//} its "
    "folder, {/.} its name without extension, and {#} the number of the job; {1} and {2.} are those of the first and "
    "the second source. They are quoted for the shell: an argument may have spaces, quotes and line ends. A command "
    "that has none of these gets ' {}' at its end. Its words are joined by spaces and read by --shell; put it in "
    "quotes if it has anything that your own shell would read.",
    "Jobs on this machine run in the current folder. With --transfer, --send or --return, and on other machines, each "
    "runs in an empty folder that has the files which are brought, under their own names; those of --return come "
    "back to the same names here.",
    "What a job prints is printed when it has ended, standard output first. The exit code is the number of jobs that "
    "failed, 101 if those are more than 100; after --halt, the exit code of the last job that failed; 1 and 2 also if "
    "shoal could not run the jobs, which a message says.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal map 'convert {} {.}.png' ::: *.jpg", "on all cores of this machine"},
    {"find . -name '*.wav' -print0 | shoal map -0 -k 'soxi -D {}'", "arguments from standard input, output in order"},
    {"shoal map --workers ssh:corn10,corn11 --transfer --return {.}.png 'convert {} {.}.png' ::: *.jpg",
     "on other machines, which get the pictures and send back others"},
    {"shoal map --joblog log --resume --retries 3 './fit {1} --rate {2}' ::: *.npy ::: 0.1 0.01",
     "each file with each rate; when started again, what is missing"},
    {NULL, NULL},
};

const cli_verb cli_map = {
    .name = "map",
    .summary = "run a command for each of many arguments",
    .word = {"WORD..."},
    .words_in_synopsis = true,
    .options_lead = true,
    .synopsis = "[options] COMMAND [::: ARGUMENT...]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_map_verb,
};
