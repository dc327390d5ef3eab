/* The version of the library, for programs that load it at run time.
 *
 *     printf("%s\n", shoal_version());
 *
 * Structs may change their layout from one minor version to the next (0.1 to 0.2), never between 0.1.0 and 0.1.1. */
#ifndef SHOAL_VERSION_H
#define SHOAL_VERSION_H

#include <shoal/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". */
SHOAL_API const char *shoal_version(void);

#ifdef __cplusplus
}
#endif
#endif
