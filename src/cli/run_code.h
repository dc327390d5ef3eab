/* What a run brings along: a module, or a command and its files. */
#ifndef CLI_RUN_CODE_H
#define CLI_RUN_CODE_H

#include "base/hash.h"
#include "cli.h"

typedef struct cli_code {
    int count;
    shoal_code file[SHOAL_CODE_MOST];
    char *owned[2 * SHOAL_CODE_MOST];  /* names and bytes of those */
    char *folder;                      /* of a run without workers; NULL when there is none */
    char hash[2 * BASE_HASH_SIZE + 1]; /* of all files, as text */
} cli_code;

/* Loads the module of a file, which is compiled first if it is C, and takes its bytes along. */
int cli_code_module(cli_code *code, const shoal_algorithm **out, const char *path);
/* Takes along the command and, for workers, the files that its words and `send` name. */
int cli_code_command(cli_code *code, const char *command, const shoal_texts *send, bool for_workers);
/* Sets the hash of all that was taken along. */
void cli_code_name(cli_code *code);
/* Makes a folder as a worker would have it, in which `files` is the current folder. */
int cli_code_folder(cli_code *code);
/* Frees, and removes the folder. */
void cli_code_release(cli_code *code);

#endif
