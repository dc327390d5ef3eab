/* `shoal VERB -h` and the manual pages, both made from the table of verbs and the tables of options. */
#include "cli.h"

#include <ctype.h>
#include <string.h>

static const char program_summary[] = "machine learning in parallel, with the same answer everywhere";

static const char *const program_description[] = {
    "shoal runs learners over data sets on all cores of this machine, or on workers of any machines that meet in a "
    "store. A result depends on the data and the options of the learner alone: not one bit of it changes with the "
    "number of threads, the instructions of the CPU or the order in which things happen.",
    "shoal help VERB explains a verb and lists its options; shoal man VERB writes its manual page.", NULL};

static const struct {
    const char *code, *meaning;
} exit_codes[] = {
    {"0", "Done."},
    {"1", "Failed: the input is not what it should be, or the system refused. One line on stderr says why."},
    {"2", "Wrong usage: an option or argument is wrong. One line on stderr says which."},
    {"3", "A job stopped before it was done and can go on. One line on stderr says why and how."},
    {"130", "Stopped by a signal before it was done."}};

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"SHOAL_KERNEL", "Instructions to compute with when --kernel is not given."},
    {"AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN",
     "Credentials of az:// stores."},
    {"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL",
     "Credentials and address of s3:// stores."},
    {"SHOAL_STORE", "The store that jobs are in when --store is not given."},
    {"SHOAL_SSH", "The command that --workers ssh: uses when --ssh is not given; ssh when it is not set."},
    {"SHOAL_MPI_PLUGIN", "The file libshoal-mpi.so to use; the one of the MPI that started this when it is not set."},
    {"SHOAL_PORTABLE",
     "A folder with the builds of this program that are copied to other machines, or none to copy this one."},
    {"SHOAL_HISTORY", "off: runs leave no line in the history of what was predicted and what happened."},
    {"XDG_CONFIG_HOME", "Where the calibration is, in a folder shoal; ~/.config when it is not set."},
    {"XDG_STATE_HOME",
     "Where copies keep their journals, jobs are without a store, and the history of runs is, in a folder shoal; "
     "~/.local/state when it is not set."},
    {"XDG_CACHE_HOME",
     "Where workers keep rows they fetched, and shoal run the modules it compiled, in a folder shoal; ~/.cache when "
     "it is not set."},
    {"CC", "The compiler that shoal run compiles modules with; cc when it is not set."},
    {"TMPDIR", "Where temporary files go; /var/tmp when it is not set."}};

/* ---- help -------------------------------------------------------------------------------------------------------- */

static void put_usage(FILE *stream, const cli_verb *verb)
{
    fprintf(stream, "shoal %s", verb->name);
    for (int i = 0; i < CLI_WORDS_MOST && verb->word[i] && !verb->words_in_synopsis; i++)
        fprintf(stream, i < verb->words_least ? " %s" : " [%s]", verb->word[i]);
    fprintf(stream, " %s\n", verb->synopsis);
}

/* All verbs, or those of a family. */
static void list_verbs(FILE *stream, const char *first)
{
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        if (!first || cli_verb_is_of(*verb, first)) {
            fprintf(stream, "  %-18s", (*verb)->name);
            base_wrap(stream, (*verb)->summary, 20, 20, cli_width());
        }
    }
}

void cli_help_program(FILE *stream)
{
    fprintf(stream, "shoal: %s\n\nusage: shoal VERB [arguments] [options]\n\n", program_summary);
    list_verbs(stream, NULL);
    fputs("\nshoal VERB -h explains a verb; shoal --version tells the version.\n", stream);
}

void cli_help_family(FILE *stream, const char *first)
{
    fprintf(stream, "usage: shoal %s VERB [arguments] [options]\n\n", first);
    list_verbs(stream, first);
}

void cli_help_verb(FILE *stream, const cli_verb *verb)
{
    int width = cli_width();
    fputs("usage: ", stream);
    put_usage(stream, verb);
    fputc('\n', stream);
    fputc(toupper((unsigned char)verb->summary[0]), stream);
    fprintf(stream, "%s.\n", verb->summary + 1);
    fputc('\n', stream);
    base_wrap(stream, verb->description[0], 0, 0, width);
    base_options_help(stream, verb->options, width);
    fputs("\nExamples:\n", stream);
    for (const learn_example *example = verb->examples; example->command; example++)
        fprintf(stream, "  %s\n      %s\n", example->command, example->what);
    if (verb->description[1])
        fprintf(stream, "\nThe manual page tells more: shoal man %s | man -l -\n", verb->name);
}

/* ---- manual pages ------------------------------------------------------------------------------------------------ */

/* "data info" is the page shoal-data-info. */
static void put_page_name(FILE *stream, const char *name, bool capitals)
{
    fputs(capitals ? "SHOAL" : "shoal", stream);
    for (const char *c = name ? name : ""; *c || c == name; c++) {
        if (c == name)
            fputs("\\-", stream);
        if (*c == ' ')
            fputs("\\-", stream);
        else
            fputc(capitals ? toupper((unsigned char)*c) : *c, stream);
    }
}

static void put_title(FILE *stream, const char *name, const char *summary)
{
    fputs(".TH ", stream);
    put_page_name(stream, name, true);
    fputs(" 1 \"\" \"shoal ", stream);
    base_roff(stream, SHOAL_VERSION);
    fputs("\" \"shoal manual\"\n.SH NAME\n", stream);
    put_page_name(stream, name, false);
    fputs(" \\- ", stream);
    base_roff(stream, summary);
    fputs("\n.SH SYNOPSIS\n", stream);
}

static void put_paragraphs(FILE *stream, const char *const *paragraphs)
{
    fputs(".SH DESCRIPTION\n", stream);
    for (const char *const *paragraph = paragraphs; *paragraph; paragraph++) {
        if (paragraph != paragraphs)
            fputs(".PP\n", stream);
        base_roff(stream, *paragraph);
        fputc('\n', stream);
    }
}

static void put_exit_status(FILE *stream)
{
    fputs(".SH EXIT STATUS\n", stream);
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++) {
        fprintf(stream, ".TP\n%s\n", exit_codes[i].code);
        base_roff(stream, exit_codes[i].meaning);
        fputc('\n', stream);
    }
    fputs(".SH ENVIRONMENT\n", stream);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        fprintf(stream, ".TP\n%s\n", variables[i].name);
        base_roff(stream, variables[i].meaning);
        fputc('\n', stream);
    }
}

static void put_examples(FILE *stream, const cli_verb *verb)
{
    fputs(".SH EXAMPLES\n", stream);
    for (const learn_example *example = verb->examples; example->command; example++) {
        fputs(".TP\n\\fB", stream);
        base_roff(stream, example->command);
        fputs("\\fR\n", stream);
        base_roff(stream, example->what);
        fputc('\n', stream);
    }
}

static void put_synopsis(FILE *stream, const cli_verb *verb)
{
    fprintf(stream, "\\fBshoal %s\\fR", verb->name);
    for (int i = 0; i < CLI_WORDS_MOST && verb->word[i] && !verb->words_in_synopsis; i++)
        fprintf(stream, i < verb->words_least ? " \\fI%s\\fR" : " [\\fI%s\\fR]", verb->word[i]);
    fputc(' ', stream);
    base_roff(stream, verb->synopsis);
    fputc('\n', stream);
}

static void put_see_also(FILE *stream, const cli_verb *self)
{
    const char *before = "";
    fputs(".SH SEE ALSO\n", stream);
    if (self) {
        fputs("\\fBshoal\\fR(1)", stream);
        before = ", ";
    }
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        if (*verb != self) {
            fprintf(stream, "%s\\fB", before);
            put_page_name(stream, (*verb)->name, false);
            fputs("\\fR(1)", stream);
            before = ", ";
        }
    }
    fputc('\n', stream);
}

void cli_manual_verb(FILE *stream, const cli_verb *verb)
{
    put_title(stream, verb->name, verb->summary);
    put_synopsis(stream, verb);
    put_paragraphs(stream, verb->description);
    base_options_manual(stream, verb->options);
    put_examples(stream, verb);
    put_exit_status(stream);
    put_see_also(stream, verb);
}

void cli_manual_program(FILE *stream)
{
    put_title(stream, NULL, program_summary);
    fputs("\\fBshoal\\fR \\fIVERB\\fR [arguments] [options]\n", stream);
    put_paragraphs(stream, program_description);
    fputs(".SH VERBS\n", stream);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        fprintf(stream, ".TP\n\\fBshoal %s\\fR\n", (*verb)->name);
        base_roff(stream, (*verb)->summary);
        fputc('\n', stream);
    }
    put_exit_status(stream);
    put_see_also(stream, NULL);
}
