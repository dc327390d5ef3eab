/* What a run brings along: a module, or a command and its files. */
#ifndef RUN_CODE_H
#define RUN_CODE_H

#include <stdbool.h>
#include <shoal/run.h>

#include "base/hash.h"
#include "request.h"

enum { RUN_CODE_LEFTOVERS = 3 };

typedef struct run_code {
    int count;
    shoal_code file[SHOAL_CODE_MOST];
    char *owned[2 * SHOAL_CODE_MOST]; /* names and bytes of those; no bytes of files that are in the caller's memory */
    char *folder;                     /* of a run without workers; NULL when there is none */
    int lock;                         /* that folder, open and locked while this process lives */
    char *leftovers[RUN_CODE_LEFTOVERS + 1]; /* that folder, behind all that is in it */
    char hash[2 * BASE_HASH_SIZE + 1];       /* of all files, as text */
} run_code;

/* Loads the module of a file, which is compiled first if it is C, and takes its bytes along. */
int run_code_module(run_code *code, const shoal_algorithm **out, const char *path);
/* Takes along the command and, for workers, its files: those in memory, those that `send` names and, when there are
 * none in memory, those that its words name. */
int run_code_command(run_code *code, const run_function *function, bool for_workers);
/* Sets the hash of all that was taken along. */
void run_code_name(run_code *code);
/* Makes a folder as a worker would have it, in which `files` is the current folder; the watcher is told what to remove
 * should this process be ended. */
int run_code_folder(run_code *code, const shoal_watcher *watch);
/* Frees, and removes the folder. */
void run_code_release(run_code *code, const shoal_watcher *watch);

#endif
