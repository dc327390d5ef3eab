/* What a run writes when it has ended. */
#ifndef RUN_OUTPUTS_H
#define RUN_OUTPUTS_H

#include "data/array.h"
#include "outcome.h"

/* What an output will hold, for rows of that many columns, or 0 when that is unknown. */
data_content run_output_content(const learn_output *output, const char *learner, int64_t columns);
/* Notes what is known of an output once there is its tensor; NULL adds nothing. */
void run_output_note(data_content *content, const shoal_tensor *tensor);
/* The columns that images are made of: all but the target. */
int64_t run_picture_columns(const shoal_outcome *outcome);
/* Refuses names that do not say a format. */
int run_outputs_check_names(const shoal_request *request);
/* Refuses, before the work, to replace files that hold something else. */
int run_outputs_check_old(const shoal_outcome *outcome);
/* Writes a tensor of the result in the format that the path's ending names (data/array.h); `words` are what its values
 * stand for, or NULL. */
int run_write_tensor(const char *path, const shoal_result *result, const char *name, const data_codes *words);

#endif
