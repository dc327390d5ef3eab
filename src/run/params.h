/* What --params says: a JSON object, or the name of a file that holds one. */
#ifndef RUN_PARAMS_H
#define RUN_PARAMS_H

#include <stdbool.h>

/* Whether it is the object itself. */
bool run_params_are_json(const char *asked);
/* Sets *text to the object, which the caller frees, also after a failure; NULL when `asked` is.  SHOAL_USAGE or
 * SHOAL_INVALID for what is none. */
int run_params_read(char **text, const char *asked);

#endif
