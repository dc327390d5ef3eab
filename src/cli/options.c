/* Options that several verbs have, declared once. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const shoal_option common_rows[] = {
    {"help", 'h', SHOAL_OPTION_FLAG, offsetof(cli_common, help), NULL, .help = "show this help"},
    {0},
};

static const shoal_option data_rows[] = {
    {"rows", 0, SHOAL_OPTION_COUNT, offsetof(shoal_data_options, rows), "N",
     .help = "raw files: how many rows there are; as many as the file holds when left out"},
    {"cols", 0, SHOAL_OPTION_COUNT, offsetof(shoal_data_options, columns), "N",
     .help = "raw files: how many columns a row has", .least = 1},
    {"type", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, type), "TYPE",
     .help = "raw files: the type of a value, as numpy names it: float32, uint8, i4"},
    {"drop-column", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, drop_columns), "NAMES",
     .help = "text files: columns to leave out, such as a label, by name or number from 1, with commas between"},
    {"memory", 0, SHOAL_OPTION_BYTES, offsetof(shoal_data_options, memory), "BYTES",
     .help = "bytes that decoded, fetched or generated rows may take in memory, such as 500MB or 2GiB; above that "
             "decoded and fetched rows go to a temporary file and generated rows are made again each round; half of "
             "what is free when left out"},
    {0},
};

static const shoal_option run_rows[] = {
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(cli_run_settings, threads), "N",
     .help = "threads to compute with; all cores this process may use when left out; never changes the result",
     .least = 1, .most = SHOAL_THREADS_MOST},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(cli_run_settings, kernel), "NAME",
     .help = "instructions to compute with: auto, portable, avx2, avx512 or vnni; never changes the result",
     .fallback = "auto"},
    {"grain", 0, SHOAL_OPTION_COUNT, offsetof(cli_run_settings, rows_per_grain), "ROWS",
     .help = "rows of one unit of work; chosen from the data when left out; may change the last bits of what is "
             "learned by gradients, and of nothing else",
     .least = 1},
    {0},
};

static const shoal_option print_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(cli_print_settings, json), NULL,
     .help = "print one JSON object at the end instead of the summary"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(cli_print_settings, quiet), NULL,
     .help = "no progress line and no summary; errors are still told"},
    {0},
};

const shoal_option *const cli_common_options = common_rows;
const shoal_option *const cli_data_options = data_rows;
const shoal_option *const cli_run_options = run_rows;
const shoal_option *const cli_print_options = print_rows;

json_t *cli_options_json(const shoal_option *table, const void *settings)
{
    json_t *object = json_object();
    for (const shoal_option *option = table; option->name; option++) {
        const char *at = (const char *)settings + option->offset;
        if (option->kind == SHOAL_OPTION_TEXT && *(const char *const *)at)
            cli_json_put(&object, option->name, cli_json_text(*(const char *const *)at));
        else if (option->kind == SHOAL_OPTION_COUNT || option->kind == SHOAL_OPTION_BYTES)
            cli_json_put(&object, option->name, json_integer(*(const int64_t *)at));
        else if (option->kind == SHOAL_OPTION_REAL)
            cli_json_put(&object, option->name, cli_json_real(*(const double *)at));
        else if (option->kind == SHOAL_OPTION_FLAG)
            cli_json_put(&object, option->name, json_boolean(*(const bool *)at));
        else if (option->kind == SHOAL_OPTION_CHOICE)
            cli_json_put(&object, option->name, json_string(option->choices[*(const int *)at]));
    }
    return object;
}

const char *const *cli_option_choices(const shoal_option *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0 && table->kind == SHOAL_OPTION_CHOICE)
            return table->choices;
    SHOAL_BUG("there is no choice --%s", name);
}

int cli_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = 80;
    if (isatty(STDOUT_FILENO) && columns)
        width = atoi(columns);
    else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        width = size.ws_col;
    return width < 50 ? 50 : width > 110 ? 110 : width;
}
