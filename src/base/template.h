/* Commands with blanks: text for /bin/sh in which {NAME} stands for a value.
 *
 * A brace that is no {NAME} is left alone ({}, {a,b}, { print $1 }), so is ${NAME}, and {{NAME}} gives {NAME}.  A value
 * with nothing but letters, digits and a few signs means itself wherever the shell meets it.  Any other is put between
 * single quotes, which is right only where no quotes are open; where that is not certain the name is told to be
 * `exposed`, and the caller refuses such values. */
#ifndef BASE_TEMPLATE_H
#define BASE_TEMPLATE_H

#include <stdbool.h>

typedef struct base_template {
    const char *option; /* that gave the command: "--run" */
    const char *source; /* what has the names: "space.json" */
    const char *const *name;
    int names;
} base_template;

/* SHOAL_USAGE when a {NAME} is none of the names, and for an empty command.  used[i] and exposed[i] become true for
 * names that are so. */
int base_template_check(bool used[], bool exposed[], const base_template *names, const char *command);
/* The command with value[i] for each {NAME} of name i. */
int base_template_fill(char **out, const base_template *names, const char *command, const char *const value[]);
/* Whether a value means itself everywhere. */
bool base_template_is_plain(const char *value);

#endif
