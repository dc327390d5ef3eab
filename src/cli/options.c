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

static const shoal_option print_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(cli_print_settings, json), NULL,
     .help = "print one JSON object at the end instead of the summary"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(cli_print_settings, quiet), NULL,
     .help = "print no progress line and no summary; errors are still printed"},
    {0},
};

const shoal_option *const cli_common_options = common_rows;
const shoal_option *const cli_print_options = print_rows;

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
