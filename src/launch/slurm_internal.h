/* The two ways of running workers on a Slurm cluster; launch_slurm.c chooses.  Each is a launcher, without a scheme. */
#ifndef SLURM_INTERNAL_H
#define SLURM_INTERNAL_H

#include "launch/launch_internal.h"

/* Tasks of an array job that reach the store by themselves (slurm_array.c), and processes of an allocation that reach
 * it through this one (slurm_attached.c). */
extern const struct launcher slurm_array, slurm_attached;

/* Whether workers on any machine can reach stores of this scheme by themselves. */
bool slurm_store_is_cloud(const char *scheme);

#endif
