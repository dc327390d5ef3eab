/* What the files of the history share: history.c has the file, history_line.c what a line of it says. */
#ifndef PLAN_HISTORY_INTERNAL_H
#define PLAN_HISTORY_INTERNAL_H

#include <stddef.h>

#include "plan/history.h"

/* One line with its newline; the caller frees it. */
int plan_history_line_write(char **out, size_t *size, const plan_run *run);
/* False for bytes, without a newline, that are no such line, or one of another version. */
bool plan_history_line_read(plan_run *out, const char *line, size_t size);

#endif
