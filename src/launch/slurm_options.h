/* What slurm:64?partition=spot&time=30 asks for. */
#ifndef SLURM_OPTIONS_H
#define SLURM_OPTIONS_H

#include <stdint.h>

enum { SLURM_OPTIONS_MOST = 16 };

typedef struct slurm_options {
    int64_t workers;
    int64_t cpus;  /* of each worker; 0 if not given */
    char *program; /* where shoal is on the nodes; NULL if not given */
    int count;
    char *argument[SLURM_OPTIONS_MOST]; /* for sbatch and salloc: "--partition=spot" */
} slurm_options;

/* `rest` is the text after "slurm:".  SHOAL_USAGE with a sentence. */
int slurm_options_parse(slurm_options *out, const char *rest);
void slurm_options_release(slurm_options *self);
/* Threads of each worker; `wanted` is what another option asks for, 0 for none. */
int64_t slurm_options_threads(const slurm_options *self, int64_t wanted);

#endif
