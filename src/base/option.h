/* Command lines and help from tables of options (include/shoal/option.h).
 *
 *     struct settings { cli_data_settings data; bool json; };
 *     static const shoal_option rows[] = {{"json", ...}, {0}}, *const own = rows;
 *     static const base_option_group groups[] = {
 *         {"Data", &cli_data_options, offsetof(struct settings, data)}, {"Output", &own, 0}, {0}};
 *     base_options_parse(&settings, groups, false, words, &count, argc, argv);
 *
 * A program's options are groups: each a heading, a table, and where its values lie in one struct.  The same
 * groups give the parser, the help text and the manual page, so that they can't differ. */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <shoal/option.h>

/* What an option of kind COUNTS is: a number, or the text of several. */
typedef struct base_option_counts {
    int64_t one;
    const char *several;
} base_option_counts;

typedef struct base_option_group {
    const char *title; /* NULL in the row that ends an array of groups */
    const shoal_option *const
        *table;    /* a pointer to the table: &shoal_kmeans.options is a constant, its value is not */
    size_t offset; /* of the struct the table describes within the settings */
} base_option_group;

/* Sets what has a fallback in every group.  The settings should be zero before. */
int base_options_default(void *settings, const base_option_group *groups);

/* Sets one option by its long name or an alias of it, as the command line does; a text of NULL makes it what it is when
 * nobody gives it.  Values point into the text. */
int base_options_set(void *settings, const base_option_group *groups, const char *name, const char *text);
/* The option that the first `length` characters name, by its own name or an alias; the one with this letter; NULL when
 * there is none. */
const shoal_option *base_options_find(const base_option_group *groups, const char *name, size_t length);
const shoal_option *base_options_letter(const base_option_group *groups, char letter);
/* The name of the option that was probably meant, or NULL. */
const char *base_options_nearest(const base_option_group *groups, const char *typed);

/* Reads --name=value, --name value, -k5, -k 5, -qk5; everything else, and all after --, is put into `words`, which
 * has room for argc pointers; with `leading`, so is all that follows the first word.  argv[0] is the first argument,
 * not the program.  Values point into argv.  SHOAL_USAGE with a sentence that names the option. */
int base_options_parse(void *settings, const base_option_group *groups, bool leading, const char **words,
                       int *word_count, int argc, char *const *argv);

/* How many letters may be wrong, of a word with that many, for another word to be suggested. */
int base_typos_most(size_t letters);
/* The one of `count` names that `text` was probably meant to be, or NULL when none is near. */
const char *base_nearest(const char *text, const char *const *names, int count);

/* The C locale, whose decimal point is a point, whatever language the host program speaks. */
locale_t base_plain_locale(void);

/* The number a COUNT (500e3), REAL or BYTES (64MB) option reads; false when it is none or does not fit. */
bool base_parse_count(int64_t *out, const char *text);
bool base_parse_bytes(int64_t *out, const char *text);
bool base_parse_real(double *out, const char *text);
/* Reads "LOW:HIGH", two numbers of which the second is greater by a finite amount. */
bool base_parse_range(double *low, double *high, const char *text);

/* Writes the groups as help for a terminal of `width` columns.  Errors are left in the stream. */
void base_options_help(FILE *stream, const base_option_group *groups, int width);
/* Writes the groups as the OPTIONS section of a manual page. */
void base_options_manual(FILE *stream, const base_option_group *groups);

/* Writes text broken at spaces: `column` characters stand on the line already, later lines are indented by `indent`. */
void base_wrap(FILE *stream, const char *text, int column, int indent, int width);
/* Writes text so that roff shows it as it is; a line of it never becomes a request. */
void base_roff(FILE *stream, const char *text);

#endif
