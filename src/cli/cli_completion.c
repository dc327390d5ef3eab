/* shoal completion: scripts that let bash, zsh and fish complete command lines.
 *
 * The scripts are thin: they ask the program itself (`shoal completion candidates -- WORD...`) what may follow, so that
 * the answer always fits the program that would run.  It comes from the tables of verbs and options. */
#include "cli.h"

#include <string.h>

#include "base/memory.h"
#include "run/jobs.h"

/* ---- scripts ----------------------------------------------------------------------------------------------------- */

/* Bash cuts words at = and : as well; they are joined again before they are asked about, and what stands before the
 * last of these is left away from the answers. */
static const char bash_script[] =
    "# bash completion for shoal, written by `shoal completion bash`\n"
    "_shoal() {\n"
    "    local rest=${COMP_LINE:0:COMP_POINT} word answer kind words=() answers=() i\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        [[ $i -gt 0 && $rest != [[:space:]]* ]] && words[${#words[@]}-1]+=$word || words+=(\"$word\")\n"
    "        rest=${rest#\"${rest%%[![:space:]]*}\"}\n"
    "        rest=${rest#\"$word\"}\n"
    "    done\n"
    "    local current=${words[${#words[@]}-1]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r answer; do\n"
    "        answers+=(\"${answer%%$'\\t'*}\")\n"
    "    done < <(\"${words[0]/#\\~/$HOME}\" completion candidates -- \"${words[@]:1}\" 2>/dev/null)\n"
    "    kind=${answers[0]}\n"
    "    current=${current##*[=:]}\n"
    "    if [[ $kind == :files ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        while IFS= read -r answer; do COMPREPLY+=(\"$answer\"); done < <(compgen -f -- \"$current\")\n"
    "        return\n"
    "    fi\n"
    "    for answer in \"${answers[@]:1}\"; do\n"
    "        [[ $answer == \"$current\"* ]] && COMPREPLY+=(\"$answer\")\n"
    "    done\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -F _shoal shoal\n";

static const char zsh_script[] =
    "#compdef shoal\n"
    "# zsh completion for shoal, written by `shoal completion zsh`\n"
    "_shoal() {\n"
    "    local -a answers shown\n"
    "    local answer name about\n"
    "    answers=(\"${(@f)$(${(Q)words[1]/#\\~/$HOME} completion candidates -- \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    compset -P '--*='\n"
    "    if [[ $answers[1] == :files ]]; then\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    for answer in \"${(@)answers[2,-1]}\"; do\n"
    "        name=${answer%%$'\\t'*} about=${answer#*$'\\t'}\n"
    "        [[ $about == $answer ]] && about=\n"
    "        shown+=(\"${name//:/\\\\:}${about:+:$about}\")\n"
    "    done\n"
    "    _describe -V shoal shown\n"
    "}\n"
    "if [[ $funcstack[1] == _shoal ]]; then\n"
    "    _shoal \"$@\"\n"
    "else\n"
    "    compdef _shoal shoal\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion for shoal, written by `shoal completion fish`\n"
    "function __shoal_candidates\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l before (string match -r -- '^--[^=]*=' $current)\n"
    "    set -l answers ($words[1] completion candidates -- $words[2..-1] \"$current\" 2>/dev/null)\n"
    "    if test \"$answers[1]\" = :files\n"
    "        for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' \"$current\"))\n"
    "            echo \"$before$path\"\n"
    "        end\n"
    "    else\n"
    "        for answer in $answers[2..-1]\n"
    "            echo \"$before$answer\"\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c shoal -f -a '(__shoal_candidates)'\n";

static const struct shell {
    const char *name, *script;
} shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
enum { SHELLS = sizeof shells / sizeof *shells };

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* Prints a candidate, with a description if there is one; `length` of -1 is all of it. */
static void offer(const char *text, int length, const char *description)
{
    printf("%.*s%s%s\n", length < 0 ? (int)strlen(text) : length, text, description ? "\t" : "",
           description ? description : "");
}

/* The first words of commands. */
static void offer_commands(void)
{
    const char *before = "";
    puts(":words");
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        size_t length = strcspn((*verb)->name, " ");
        bool family = (*verb)->name[length] == ' ';
        /* Families are in one piece, and may begin with a command of their name. */
        if (strncmp((*verb)->name, before, length) != 0 || (before[length] != ' ' && before[length]))
            offer((*verb)->name, (int)length, family ? "more commands" : (*verb)->summary);
        before = (*verb)->name;
    }
}

static void offer_subcommands(const char *first)
{
    puts(":words");
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        if (cli_verb_is_of(*verb, first))
            offer((*verb)->name + strlen(first) + 1, -1, (*verb)->summary);
}

static void offer_options(const cli_verb *verb)
{
    char name[64];
    puts(":words");
    for (const base_option_group *group = verb->options; group->title; group++) {
        for (const shoal_option *option = *group->table; option->name; option++) {
            snprintf(name, sizeof name, "--%s", option->name);
            offer(name, -1, option->help);
        }
    }
}

static void offer_value(const shoal_option *option)
{
    static const char *const kernels[] = {"auto", "portable", "avx2", "avx512", "vnni", NULL};
    bool number = option->kind == SHOAL_OPTION_COUNT || option->kind == SHOAL_OPTION_REAL ||
                  option->kind == SHOAL_OPTION_BYTES || option->kind == SHOAL_OPTION_COUNTS;
    const char *const *choices = option->kind == SHOAL_OPTION_CHOICE   ? option->choices
                                 : strcmp(option->name, "kernel") == 0 ? kernels
                                                                       : NULL;
    puts(choices || number ? ":words" : ":files");
    for (; choices && *choices; choices++)
        offer(*choices, -1, NULL);
}

/* The jobs of a folder; a store that is elsewhere would make people wait for their key press. */
static void offer_jobs(const char *given)
{
    run_jobs_settings settings = {.store = given, .patience = 1};
    run_jobs jobs = {0};
    char *url = NULL;
    shoal_job_id *ids = NULL;
    int64_t count = 0;
    puts(":words");
    bool here = run_jobs_url(&url, given) == SHOAL_OK && strstr(url, "://") == NULL;
    base_free(&url);
    if (here && run_jobs_open(&jobs, &settings, RUN_JOBS_READ) == SHOAL_OK &&
        shoal_job_list(&ids, &count, jobs.store, run_jobs_deadline(&jobs)) == SHOAL_OK)
        for (int64_t i = 0; i < count; i++)
            offer(ids[i].text, -1, NULL);
    shoal_job_list_free(&ids);
    run_jobs_close(&jobs);
}

/* What help calls the argument that comes after `count` others; NULL when there may be no more. */
static const char *word_name(const cli_verb *verb, int count)
{
    if (count < CLI_WORDS_MOST && verb->word[count])
        return verb->word[count];
    for (int i = 0; i < CLI_WORDS_MOST && verb->word[i]; i++)
        if (strstr(verb->word[i], "..."))
            return verb->word[i];
    return NULL;
}

/* An argument that is not an option, by what help calls it. */
static void offer_word(const cli_verb *verb, const char *const *word, int count, const char *store)
{
    const char *name = word_name(verb, count);
    if (!name) {
        puts(":words");
    } else if (strcmp(name, "ID") == 0 || strcmp(name, "JOB") == 0) {
        offer_jobs(store);
    } else if (strncmp(name, "COMMAND", 7) == 0) {
        offer_commands();
        for (const cli_topic *topic = cli_topics; topic->name && strchr(name, '|'); topic++)
            if (!cli_verb_family(topic->name)) /* which is among the commands */
                offer(topic->name, -1, topic->summary);
    } else if (strcmp(name, "SUBCOMMAND") == 0) {
        offer_subcommands(word[0]);
    } else if (strcmp(name, "SHELL") == 0) {
        puts(":words");
        for (int i = 0; i < SHELLS; i++)
            offer(shells[i].name, -1, NULL);
    } else {
        puts(":files");
    }
}

/* The option whose value stands in the argument after this one; NULL when it needs none. */
static const shoal_option *awaits_value(const cli_verb *verb, const char *argument)
{
    const shoal_option *option = NULL;
    if (strncmp(argument, "--", 2) == 0) {
        option = base_options_find(verb->options, argument + 2, strlen(argument + 2)); /* none has a = in its name */
        return option && option->kind != SHOAL_OPTION_FLAG ? option : NULL;
    }
    for (const char *letter = argument + 1; argument[0] == '-' && *letter; letter++) {
        option = base_options_letter(verb->options, *letter);
        if (!option || option->kind != SHOAL_OPTION_FLAG)
            return option && letter[1] == '\0' ? option : NULL;
    }
    return NULL;
}

/* What may stand where the last argument is. */
static void offer_argument(const cli_verb *verb, const char *const *argument, int count)
{
    const char *word[CLI_WORDS_MOST] = {NULL}, *store = NULL, *last = argument[count - 1];
    const shoal_option *option = NULL;
    int words = 0;
    bool only_words = false;
    for (int i = 0; i < count - 1; i++) {
        if (option && strcmp(option->name, "store") == 0)
            store = argument[i];
        if (option)
            option = NULL;
        else if (!only_words && strcmp(argument[i], "--") == 0)
            only_words = true;
        else if (only_words || argument[i][0] != '-' || argument[i][1] == '\0') {
            if (words < CLI_WORDS_MOST)
                word[words] = argument[i];
            words++;
        } else
            option = awaits_value(verb, argument[i]);
    }
    size_t name = strncmp(last, "--", 2) == 0 ? strcspn(last, "=") : 0;
    if (option)
        offer_value(option);
    else if (!only_words && name && last[name] == '=' && base_options_find(verb->options, last + 2, name - 2))
        offer_value(base_options_find(verb->options, last + 2, name - 2));
    else if (!only_words && last[0] == '-' && strcmp(last, "-") != 0)
        offer_options(verb);
    else
        offer_word(verb, word, words, store);
}

/* Prints ":words" and one candidate a line, or ":files" where the shell should offer files. */
static void print_candidates(const char *const *word, int count)
{
    const cli_verb *verb = count > 2 ? cli_verb_find(word, 2) : NULL;
    int used = verb ? 2 : 1;
    if (!verb && count > 1)
        verb = cli_verb_find(word, 1);
    if (count <= 1)
        offer_commands();
    else if (verb)
        offer_argument(verb, word + used, count - used);
    else if (count == 2)
        offer_subcommands(word[0]);
    else
        puts(":words");
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

typedef struct settings {
    cli_common common;
} settings;

static const base_option_group groups[] = {
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int run_completion(void *from_main, const char *const *word, int words)
{
    (void)from_main;
    if (strcmp(word[0], "candidates") == 0) {
        print_candidates(word + 1, words - 1);
        return SHOAL_OK;
    }
    if (words > 1)
        return shoal_fail(SHOAL_USAGE, "completion: unexpected argument '%s'", word[1]);
    for (int i = 0; i < SHELLS; i++) {
        if (strcmp(word[0], shells[i].name) == 0) {
            fputs(shells[i].script, stdout);
            return SHOAL_OK;
        }
    }
    return shoal_fail(SHOAL_USAGE, "completion: '%s' is not one of bash, zsh, fish", word[0]);
}

static const char *const description[] = {
    "Prints a script that lets a shell complete commands, options, their choices, files and names of jobs. An "
    "installed shoal comes with the scripts; otherwise load them from the shell's start-up file as the examples show.",
    "The scripts run shoal completion candidates -- WORD..., which prints what the last WORD of a command line may be: "
    "a line :words and then one candidate per line, with a tab before its description; or a line :files.",
    NULL,
};
static const learn_example examples[] = {
    {"source <(shoal completion bash)", "in ~/.bashrc"},
    {"source <(shoal completion zsh)", "in ~/.zshrc, after compinit"},
    {"shoal completion fish > ~/.config/fish/completions/shoal.fish", "once, for fish"},
    {NULL, NULL},
};
const cli_verb cli_completion = {
    .name = "completion",
    .summary = "print a script that completes commands in bash, zsh or fish",
    .word = {"SHELL", "WORD..."},
    .words_least = 1,
    .words_in_synopsis = true,
    .synopsis = "bash|zsh|fish",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_completion,
};
