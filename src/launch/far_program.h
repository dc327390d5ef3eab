/* What is copied to another machine: shoal, in the build that will run there. */
#ifndef FAR_PROGRAM_H
#define FAR_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* A file that can be sent.  It stays open until the process ends, so that all machines get the same bytes. */
typedef struct far_program {
    char path[512];
    int file;
    int64_t size;
    char sha256[65];
    int glibc;     /* the least N of glibc 2.N that it starts with; 0 for one that needs none */
    bool portable; /* a build that needs few libraries, or none */
} far_program;

/* The build for a machine of the program at `path`, NULL for this very one, by what the machine's shell said of it:
 * `system` and `machine` as uname -s and -m do, and its C library as "glibc 2.36" or anything else.  `no_libraries`
 * asks for the one that needs none, for machines where the other did not start: SHOAL_ABSENT when there is none.
 * SHOAL_INVALID with a sentence when none can run there. */
int far_program_for(const far_program **out, const char *path, const char *system, const char *machine,
                    const char *library, bool no_libraries);

#endif
