/* What --params says: a JSON object, or the name of a file that holds one. */
#ifndef CLI_RUN_PARAMS_H
#define CLI_RUN_PARAMS_H

#include <stdbool.h>

/* Whether it is the object itself. */
bool cli_params_are_json(const char *asked);
/* Sets *text to the object, which the caller frees, also after a failure; NULL when `asked` is.  SHOAL_USAGE or
 * SHOAL_INVALID for what is none. */
int cli_params_read(char **text, const char *asked);

#endif
