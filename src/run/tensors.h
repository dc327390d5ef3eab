/* The tensors of a result, which may come from a store, as files.  Without `force` a file is replaced only if it holds
 * an array of the same type and rank. */
#ifndef RUN_TENSORS_H
#define RUN_TENSORS_H

#include <stdbool.h>
#include <shoal/learn.h>

/* One of them; SHOAL_USAGE, which says what there is, when the result has none of this name. */
int run_tensor_write(const char *path, const shoal_result *result, const char *name, bool force);
/* All, each as NAME.npy in a folder that is made if it is not there.  SHOAL_INVALID for a name that is none of a
 * file. */
int run_tensors_write(const char *folder, const shoal_result *result, bool force);

#endif
