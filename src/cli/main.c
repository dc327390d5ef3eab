/* The program: finds the verb, reads its options, runs it, and turns what it returned into one line and an exit code.
 * To add a verb, write cli_<verb>.c and add a row here and to `sections` in help.c; the verbs of learners are made from
 * their faces. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/ranks.h"
#include "run/process.h"

/* Before these come the verbs of learners, what is done with a model, clusters, and the learners' plans.  Verbs of one
 * first word lie side by side. */
static const cli_verb *const other_verbs[] = {
    &cli_plan_search, &cli_sweep,        &cli_sweep_show,  &cli_sweep_best,   &cli_sweep_table,  &cli_sweep_export,
    &cli_sweep_watch, &cli_sweep_plot,   &cli_sweep_check, &cli_sweep_list,   &cli_calibrate,    &cli_data_info,
    &cli_data_head,   &cli_data_convert, &cli_data_split,  &cli_data_shuffle, &cli_data_patches, &cli_data_pack,
    &cli_data_verify, &cli_data_speed,   &cli_store_ls,    &cli_store_get,    &cli_store_put,    &cli_store_cat,
    &cli_store_rm,    &cli_store_du,     &cli_store_copy,  &cli_store_bench,  &cli_map,          &cli_worker,
    &cli_agent,       &cli_check,        &cli_job_list,    &cli_job_show,     &cli_job_watch,    &cli_job_wait,
    &cli_job_logs,    &cli_job_result,   &cli_job_scale,   &cli_job_deadline, &cli_job_budget,   &cli_job_resume,
    &cli_job_cancel,  &cli_job_remove,   &cli_help,        &cli_man,          &cli_completion,
};
enum { OTHER_VERBS = sizeof other_verbs / sizeof *other_verbs, VERBS_MOST = OTHER_VERBS + 64, TOPICS_MOST = 16 };

const cli_verb *const *cli_verbs(void)
{
    static const cli_verb *list[VERBS_MOST + 1];
    int count = 0;
    if (list[0])
        return list;
    cli_predict_prepare();
    cli_run_prepare();
    cli_data_pack_prepare();
    for (const learn_face *const *face = learn_faces; *face; face++)
        if (cli_learner_verb(*face))
            list[count++] = cli_learner_verb(*face);
    list[count++] = &cli_predict;
    list[count++] = &cli_run;
    for (const cli_verb *const *verb = cli_cluster_verbs; *verb; verb++)
        list[count++] = *verb;
    for (const learn_face *const *face = learn_faces; *face; face++)
        if (cli_plan_verb(*face))
            list[count++] = cli_plan_verb(*face);
    list[count++] = cli_plan_run();
    memcpy(list + count, other_verbs, sizeof other_verbs);
    return list;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

/* Whether the words spell the verb's name, with a space where one word has a dash. */
static bool is_called(const cli_verb *verb, const char *const *word, int count)
{
    const char *name = verb->name;
    for (int i = 0; i < count; i++) {
        if (i > 0 && *name++ != ' ')
            return false;
        for (const char *c = word[i]; *c; c++, name++)
            if (*c != *name && !(*c == '-' && *name == ' '))
                return false;
    }
    return *name == '\0';
}

const cli_verb *cli_verb_find(const char *const *word, int count)
{
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        if (is_called(*verb, word, count))
            return *verb;
    return NULL;
}

bool cli_verb_is_of(const cli_verb *verb, const char *first)
{
    size_t length = strlen(first);
    return strncmp(verb->name, first, length) == 0 && verb->name[length] == ' ';
}

bool cli_verb_family(const char *first)
{
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        if (cli_verb_is_of(*verb, first))
            return true;
    return false;
}

/* "'data' needs a subcommand: info, head, convert or patches" */
static int fail_no_subcommand(const char *first)
{
    char list[512] = "";
    size_t length = 0;
    const cli_verb *last = NULL;
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        if (cli_verb_is_of(*verb, first))
            last = *verb;
    for (const cli_verb *const *verb = cli_verbs(); *verb && length < sizeof list; verb++)
        if (cli_verb_is_of(*verb, first))
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
                                       length == 0     ? ""
                                       : *verb == last ? " or "
                                                       : ", ",
                                       (*verb)->name + strlen(first) + 1);
    return shoal_fail(SHOAL_USAGE, "'%s' needs a subcommand: %s", first, list);
}

/* Fails for words that are not one of the verbs, nor of the topics when those are allowed. */
static int fail_unknown(const char *const *word, int count, const cli_topic *topic)
{
    const char *names[VERBS_MOST + TOPICS_MOST], *kind = topic ? "command or topic" : "command";
    char typed[128];
    int known = 0;
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        names[known++] = (*verb)->name;
    for (; topic && topic->name && known < VERBS_MOST + TOPICS_MOST; topic++)
        names[known++] = topic->name;
    bool family = cli_verb_family(word[0]), both = count > 1 && family;
    if (family && !both)
        return fail_no_subcommand(word[0]);
    snprintf(typed, sizeof typed, "%s%s%s", word[0], both ? " " : "", both ? word[1] : "");
    const char *near = base_nearest(typed, names, known);
    if (near)
        return shoal_fail(SHOAL_USAGE, "unknown %s '%s'; did you mean '%s'?", kind, typed, near);
    return shoal_fail(SHOAL_USAGE, "unknown %s '%s'", kind, typed);
}

int cli_verb_unknown(const char *const *word, int count)
{
    return fail_unknown(word, count, NULL);
}

int cli_topic_unknown(const char *const *word, int count)
{
    return fail_unknown(word, count, cli_topics);
}

static int check_words(const cli_verb *verb, const void *settings, const char *const *word, int count)
{
    int most = 0;
    bool any_number = false;
    for (; most < CLI_WORDS_MOST && verb->word[most]; most++)
        any_number |= strchr(verb->word[most], '.') != NULL;
    if (count < verb->words_least && !(verb->stands_alone && verb->stands_alone(settings)))
        return shoal_fail(SHOAL_USAGE, "%s needs %.*s", verb->name, (int)strcspn(verb->word[count], "."),
                          verb->word[count]);
    if (count > most && !any_number)
        return shoal_fail(SHOAL_USAGE, "%s: unexpected argument '%s'", verb->name, word[most]);
    return SHOAL_OK;
}

/* Reads the arguments after the verb's name and runs it. */
static int run_verb(const cli_verb *verb, int argc, char *const *argv)
{
    void *settings = NULL;
    const char **word = NULL;
    int count = 0;
    if (verb->of_ranks)
        run_ranks_expect();
    int status = base_alloc(&settings, 1, verb->settings_size, "the settings");
    if (status == SHOAL_OK)
        status = base_alloc(&word, (size_t)argc + CLI_WORDS_MOST, sizeof *word, "the arguments");
    if (status == SHOAL_OK)
        status = base_options_default(settings, verb->options);
    if (status == SHOAL_OK)
        status = base_options_parse(settings, verb->options, verb->options_lead, word, &count, argc, argv);
    if (status == SHOAL_OK)
        ((cli_common *)settings)->verb = verb;
    bool help = status == SHOAL_OK && ((cli_common *)settings)->help;
    if (help && run_is_first())
        cli_help_verb(stdout, verb);
    else if (!help && status == SHOAL_OK && (status = check_words(verb, settings, word, count)) == SHOAL_OK)
        status = verb->run(settings, word, count);
    base_free(&word);
    base_free(&settings);
    return status;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* Runs the command line; *verb is set as soon as it is known, for the hint after an error. */
static int dispatch(const cli_verb **verb, int argc, char *const *argv)
{
    const char *const *words = (const char *const *)argv + 1;
    int count = argc - 1;
    if (count == 0) {
        run_ranks_expect(); /* so that only one of them prints it */
        return shoal_fail(SHOAL_USAGE, "shoal needs a command, such as kmeans");
    }
    if (is_one_of(words[0], "-h", "--help")) {
        cli_help_program(stdout);
        return SHOAL_OK;
    }
    if (is_one_of(words[0], "-V", "--version") || strcmp(words[0], "version") == 0) {
        puts("shoal " SHOAL_VERSION);
        return SHOAL_OK;
    }
    int used = 2;
    *verb = count >= 2 ? cli_verb_find(words, 2) : NULL;
    if (!*verb) {
        used = 1;
        *verb = cli_verb_find(words, 1);
    }
    if (*verb)
        return run_verb(*verb, count - used, argv + 1 + used);
    if (count == 2 && is_one_of(words[1], "-h", "--help") && cli_verb_family(words[0])) {
        cli_help_family(stdout, words[0]);
        return SHOAL_OK;
    }
    run_ranks_expect();
    if (words[0][0] == '-')
        return shoal_fail(SHOAL_USAGE, "unknown option %s before the command", words[0]);
    return cli_verb_unknown(words, count);
}

/* A program started without its standard streams would otherwise write messages into the first file it opens.  They
 * are opened the wrong way round, so that using them is still an error. */
static void hold_standard_streams(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) != descriptor)
            return;
}

/* Room for what most commands print, so that it is written by finish_stdout, which can say why that failed. */
static void widen_stdout(void)
{
    static char room[1 << 16];
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, room, _IOFBF, sizeof room);
}

/* What was printed may not have arrived: a closed pipe, a full disk. */
static int finish_stdout(int status)
{
    bool failed_before = ferror(stdout) != 0; /* its errno is gone by now */
    bool fails_now = fflush(stdout) != 0;
    if (status >= 0 && fails_now)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "standard output: can't write");
    if (status >= 0 && failed_before)
        return shoal_fail(SHOAL_SYSTEM, "standard output: can't write everything");
    return status;
}

int main(int argc, char **argv)
{
    const cli_verb *verb = NULL;
    hold_standard_streams();
    widen_stdout();
    cli_signals_start();
    run_process_is_shoal();
    int status = dispatch(&verb, argc, argv);
    status = finish_stdout(run_ranks_end(status));
    if (status >= 0)
        return status;
    fprintf(stderr, "shoal: %s\n", shoal_error());
    if (status == SHOAL_USAGE) {
        const char *about = verb ? verb->name : argc > 1 && cli_verb_family(argv[1]) ? argv[1] : "";
        fprintf(stderr, "try 'shoal %s%s-h'\n", about, *about ? " " : "");
    }
    run_ranks_give_up();
    return status == SHOAL_USAGE ? CLI_WRONG_USAGE : status == SHOAL_STOPPED ? CLI_INTERRUPTED : CLI_FAILED;
}
