/* The command of a search: text for /bin/sh in which {machine}, {count} and any other parameter of the space stand for
 * their values (base/template.h). */
#ifndef PLAN_SEARCH_COMMAND_H
#define PLAN_SEARCH_COMMAND_H

#include "search_space.h"

/* SHOAL_USAGE when a {NAME} is not a parameter, when a parameter with several values is nowhere in the command, and
 * when a value would have to be quoted where the shell is within quotes already. */
int plan_search_command_check(const plan_search_space *space, const char *command);
/* The command for one candidate; values that are more than plain words are quoted. */
int plan_search_command_fill(char **out, const plan_search_space *space, const char *command, int64_t candidate);

#endif
