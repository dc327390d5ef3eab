/* shoal man and shoal help: verbs and topics, as roff and as text. */
#include "cli.h"

#include <string.h>

typedef struct settings {
    cli_common common;
    bool list;
} settings;

static const shoal_option list_rows[] = {
    {"list", 0, SHOAL_OPTION_FLAG, offsetof(settings, list), NULL,
     .help = "print the names of all manual pages, one per line, as they can be given for COMMAND"},
    {0},
};
static const shoal_option *const list_options = list_rows;

static const base_option_group man_groups[] = {
    {"Printing", &list_options, 0},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group help_groups[] = {
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static void print_list(void)
{
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        for (const char *c = (*verb)->name; *c; c++)
            putchar(*c == ' ' ? '-' : *c);
        putchar('\n');
    }
}

static int run_man(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const cli_verb *verb = words ? cli_verb_find(word, words) : NULL;
    if (settings->list)
        print_list();
    else if (verb)
        cli_manual_verb(stdout, verb);
    else if (words == 0 || (words == 1 && strcmp(word[0], "shoal") == 0))
        cli_manual_program(stdout);
    else
        return cli_verb_unknown(word, words);
    return SHOAL_OK;
}

static int run_help(void *from_main, const char *const *word, int words)
{
    const cli_verb *verb = words ? cli_verb_find(word, words) : NULL;
    (void)from_main;
    if (verb)
        cli_help_verb(stdout, verb);
    else if (words == 0)
        cli_help_program(stdout);
    else if (words == 1 && cli_verb_family(word[0]))
        cli_help_family(stdout, word[0]);
    else if (words && cli_topic_find(word, words))
        cli_help_topic(stdout, cli_topic_find(word, words));
    else
        return cli_topic_unknown(word, words);
    return SHOAL_OK;
}

static const char *const man_description[] = {
    "Writes the manual page of a command, or of shoal itself, as roff, made from the tables of shoal COMMAND -h.",
    NULL,
};
static const learn_example man_examples[] = {
    {"shoal man kmeans | man -l -", "read the manual page of shoal kmeans"},
    {"shoal man data head > shoal-data-head.1", "make a file that man can find"},
    {NULL, NULL},
};
const cli_verb cli_man = {
    .name = "man",
    .summary = "write a manual page",
    .word = {"COMMAND", "SUBCOMMAND"},
    .words_least = 0,
    .synopsis = "[--list]",
    .description = man_description,
    .examples = man_examples,
    .options = man_groups,
    .settings_size = sizeof(settings),
    .run = run_man,
};

static const char *const help_description[] = {
    "Lists commands and topics, explains a command as shoal COMMAND -h does, or explains a topic.", NULL};
static const learn_example help_examples[] = {
    {"shoal help kmeans", "explain shoal kmeans and its options"},
    {"shoal help workers", "how to use several processes or machines"},
    {NULL, NULL},
};
const cli_verb cli_help = {
    .name = "help",
    .summary = "explain a command or a topic",
    .word = {"COMMAND|TOPIC", "SUBCOMMAND"},
    .words_least = 0,
    .synopsis = "[options]",
    .description = help_description,
    .examples = help_examples,
    .options = help_groups,
    .settings_size = sizeof(settings),
    .run = run_help,
};
