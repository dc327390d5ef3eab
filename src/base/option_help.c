/* Help and manual pages from the tables that also drive the parser.  See option.h. */
#include "option.h"

#include <string.h>

enum { NAMES_MOST = 160, HELP_COLUMN_MOST = 32 };

/* Characters a terminal shows for UTF-8 text. */
static int shown_width(const char *text, size_t length)
{
    int width = 0;
    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

void base_wrap(FILE *stream, const char *text, int column, int indent, int width)
{
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " ");
        int word = shown_width(text, length);
        if (!first && column + 1 + word > width) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', stream);
            column++;
        }
        fwrite(text, 1, length, stream);
        column += word;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', stream);
}

/* What help calls an option's argument: its name, or the choices themselves; "" for a flag. */
static void name_argument(char *out, size_t size, const shoal_option *option)
{
    out[0] = '\0';
    if (option->kind == SHOAL_OPTION_FLAG)
        return;
    if (option->kind != SHOAL_OPTION_CHOICE) {
        snprintf(out, size, "%s", option->argument ? option->argument : "VALUE");
        return;
    }
    for (int i = 0; option->choices[i]; i++) {
        size_t length = strlen(out);
        snprintf(out + length, size - length, "%s%s", i ? "|" : "", option->choices[i]);
    }
}

/* "  -k, --clusters K" */
static void name_option(char *out, size_t size, const shoal_option *option)
{
    char argument[NAMES_MOST / 2];
    name_argument(argument, sizeof argument, option);
    char letter[5] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(out, size, "  %s--%s%s%s", letter, option->name, argument[0] ? " " : "", argument);
}

/* What help says the default is; "" for nothing. */
static const char *shown_default(const shoal_option *option)
{
    return option->default_text ? option->default_text : option->fallback ? option->fallback : "";
}

static void help_one(FILE *stream, const shoal_option *option, int column, int width)
{
    char names[NAMES_MOST], text[1024];
    name_option(names, sizeof names, option);
    int used = shown_width(names, strlen(names));
    if (used + 2 > column)
        fprintf(stream, "%s\n%*s", names, column, "");
    else
        fprintf(stream, "%s%*s", names, column - used, "");
    const char *usual = shown_default(option);
    snprintf(text, sizeof text, "%s%s%s%s", option->help, usual[0] ? " (default: " : "", usual, usual[0] ? ")" : "");
    base_wrap(stream, text, column, column, width);
}

/* Where the explanations start: after the longest names that are not too long. */
static int help_column(const base_option_group *groups)
{
    int column = 12;
    for (const base_option_group *group = groups; group->title; group++) {
        for (const shoal_option *option = *group->table; option->name; option++) {
            char names[NAMES_MOST];
            name_option(names, sizeof names, option);
            int needed = shown_width(names, strlen(names)) + 2;
            if (needed > column && needed <= HELP_COLUMN_MOST)
                column = needed;
        }
    }
    return column;
}

void base_options_help(FILE *stream, const base_option_group *groups, int width)
{
    int column = help_column(groups);
    for (const base_option_group *group = groups; group->title; group++) {
        fprintf(stream, "\n%s:\n", group->title);
        for (const shoal_option *option = *group->table; option->name; option++)
            help_one(stream, option, column, width);
    }
}

/* One character of UTF-8 as roff's \[uXXXX]; returns how many bytes it took. */
static size_t roff_unicode(FILE *stream, const unsigned char *text)
{
    size_t more = text[0] >= 0xf0 ? 3 : text[0] >= 0xe0 ? 2 : 1;
    unsigned code = text[0] & (0x3fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return i;
        code = code << 6 | (text[i] & 0x3f);
    }
    fprintf(stream, "\\[u%04X]", code);
    return more + 1;
}

void base_roff(FILE *stream, const char *text)
{
    static const struct {
        char from;
        const char *to;
    } special[] = {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    bool line_start = true;
    while (*text) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", stream);
        line_start = *text == '\n';
        if ((unsigned char)*text >= 0x80) {
            text += roff_unicode(stream, (const unsigned char *)text);
            continue;
        }
        const char *to = NULL;
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
            if (special[i].from == *text)
                to = special[i].to;
        if (to)
            fputs(to, stream);
        else
            fputc(*text, stream);
        text++;
    }
}

static void manual_one(FILE *stream, const shoal_option *option)
{
    char argument[NAMES_MOST / 2];
    name_argument(argument, sizeof argument, option);
    fputs(".TP\n", stream);
    if (option->letter)
        fprintf(stream, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", stream);
    base_roff(stream, option->name);
    fputs("\\fR", stream);
    if (argument[0]) {
        fputs(" \\fI", stream);
        base_roff(stream, argument);
        fputs("\\fR", stream);
    }
    fputc('\n', stream);
    base_roff(stream, option->help);
    if (shown_default(option)[0]) {
        fputs(" (default: ", stream);
        base_roff(stream, shown_default(option));
        fputc(')', stream);
    }
    fputs(".\n", stream);
}

void base_options_manual(FILE *stream, const base_option_group *groups)
{
    fputs(".SH OPTIONS\n", stream);
    for (const base_option_group *group = groups; group->title; group++) {
        fputs(".SS ", stream);
        base_roff(stream, group->title);
        fputc('\n', stream);
        for (const shoal_option *option = *group->table; option->name; option++)
            manual_one(stream, option);
    }
}
