/* `shoal -h`, `shoal VERB -h` and the manual pages, made from the table of verbs and the tables of options. */
#include "cli.h"

#include <ctype.h>
#include <string.h>

static const char program_summary[] = "machine learning in parallel, with the same answer everywhere";

static const char *const program_description[] = {
    "shoal trains models on all cores of this machine, or on workers on any number of machines that share a store. The "
    "result depends only on the data and the options of the learner: not one bit changes with the number of threads, "
    "the CPU's instructions or the order in which things happen.",
    "shoal help COMMAND explains a command and lists its options; shoal man COMMAND writes its manual page.", NULL};

/* The commands in the order a newcomer meets them, by the first word of their names; learners come first. */
static const struct section {
    const char *title;
    const char *first[5];
} sections[] = {
    {"Train a model", {NULL}},
    {"Apply a model, or run your own code", {"predict", "run", "map"}},
    {"Search hyper-parameters", {"sweep"}},
    {"Data files", {"data"}},
    {"Workers and jobs", {"job", "worker", "check", "agent"}},
    {"Rented machines", {"cluster"}},
    {"Stores: folders, Azure, S3", {"store"}},
    {"Estimate run time and cost", {"plan", "calibrate"}},
    {"Help", {"help", "man", "completion"}},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

/* ---- help -------------------------------------------------------------------------------------------------------- */

static void put_usage(FILE *stream, const cli_verb *verb)
{
    fprintf(stream, "shoal %s", verb->name);
    for (int i = 0; i < CLI_WORDS_MOST && verb->word[i] && !verb->words_in_synopsis; i++)
        fprintf(stream, i < verb->words_least ? " %s" : " [%s]", verb->word[i]);
    fprintf(stream, " %s\n", verb->synopsis);
}

static void list_verb(FILE *stream, const cli_verb *verb)
{
    fprintf(stream, "  %-18s", verb->name);
    base_wrap(stream, verb->summary, 20, 20, cli_width());
}

static bool is_in_section(const cli_verb *verb, const struct section *section)
{
    if (!section->first[0])
        return verb->face != NULL && strchr(verb->name, ' ') == NULL;
    for (int i = 0; i < 5 && section->first[i]; i++)
        if (strcmp(verb->name, section->first[i]) == 0 || cli_verb_is_of(verb, section->first[i]))
            return true;
    return false;
}

void cli_help_program(FILE *stream)
{
    fprintf(stream, "shoal: %s\n\nusage: shoal COMMAND [arguments] [options]\n", program_summary);
    for (int i = 0; i < SECTIONS; i++) {
        fprintf(stream, "\n%s:\n", sections[i].title);
        for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
            if (is_in_section(*verb, &sections[i]))
                list_verb(stream, *verb);
    }
    fputs("\nTopics:\n", stream);
    for (const cli_topic *topic = cli_topics; topic->name; topic++)
        fprintf(stream, "  %-18s%s\n", topic->name, topic->summary);
    fputs("\nshoal COMMAND -h explains a command and shoal help TOPIC a topic.\n"
          "shoal --version prints the version.\n",
          stream);
}

void cli_help_family(FILE *stream, const char *first)
{
    fprintf(stream, "usage: shoal %s SUBCOMMAND [arguments] [options]\n\n", first);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        if (cli_verb_is_of(*verb, first))
            list_verb(stream, *verb);
    const cli_topic *topic = cli_topic_find(&first, 1);
    if (topic) {
        fputc('\n', stream);
        cli_help_topic(stream, topic);
    }
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
    if (cli_verb_family(verb->name)) {
        fputs("\nMore commands:\n", stream);
        for (const cli_verb *const *more = cli_verbs(); *more; more++)
            if (cli_verb_is_of(*more, verb->name))
                list_verb(stream, *more);
    }
    if (verb->description[1])
        fprintf(stream, "\nThe manual page says more: shoal man %s | man -l -\n", verb->name);
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
    cli_manual_notes(stream, cli_exit_codes);
    fputs(".SH ENVIRONMENT\n", stream);
    cli_manual_notes(stream, cli_variables);
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
    fputs("\\fBshoal\\fR \\fICOMMAND\\fR [arguments] [options]\n", stream);
    put_paragraphs(stream, program_description);
    fputs(".SH COMMANDS\n", stream);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        fprintf(stream, ".TP\n\\fBshoal %s\\fR\n", (*verb)->name);
        base_roff(stream, (*verb)->summary);
        fputc('\n', stream);
    }
    for (const cli_topic *topic = cli_topics; topic->name; topic++) {
        if (topic->notes == cli_exit_codes || topic->notes == cli_variables)
            continue;
        fputs(".SH ", stream);
        for (const char *c = topic->name; *c; c++)
            fputc(toupper((unsigned char)*c), stream);
        fputc('\n', stream);
        cli_manual_notes(stream, topic->notes);
    }
    put_exit_status(stream);
    put_see_also(stream, NULL);
}
