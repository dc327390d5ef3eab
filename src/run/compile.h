/* Modules from C files: compiled once, kept by the hash of all that goes into them. */
#ifndef RUN_COMPILE_H
#define RUN_COMPILE_H

#include <stddef.h>

/* A public header, as it was when this program was built; the list ends with a row without a name.  The build writes
 * it. */
typedef struct run_header {
    const char *name; /* "shoal/module.h" */
    const unsigned char *bytes;
    size_t size;
} run_header;
extern const run_header run_headers[];

/* Sets *out to the path of the shared object that the C file makes.  What the compiler says goes to stderr as it is. */
int run_compile(char **out, const char *source);

#endif
