/* What writing and reading specs share. */
#ifndef JOB_SPEC_INTERNAL_H
#define JOB_SPEC_INTERNAL_H

#include "engine/store/job_spec.h"

/* As the JSON spells job_source_kind. */
extern const char *const job_source_names[4];

/* Whether each slice's rows have a hash; otherwise the etag or the address vouches for them. */
static inline bool job_source_is_hashed(job_source_kind source)
{
    return source == JOB_UPLOADED || source == JOB_FILE;
}

#endif
