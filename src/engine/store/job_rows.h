/* The rows of slices, loaded for a worker: from the job's uploads, from ranges of a blob or a file, or generated.
 *
 * What is fetched from a remote store is kept in a local folder, by content, so that no slice is fetched twice. */
#ifndef JOB_ROWS_H
#define JOB_ROWS_H

#include "engine/slice.h"
#include "engine/store/job_spec.h"

typedef struct job_loader job_loader;

typedef struct job_loader_options {
    const char *cache; /* as in shoal_worker_options */
    int64_t cache_bytes;
    const char *data_url, *data_root;
    int64_t kept_rows; /* bytes of a slice's generated rows that are kept, if memory allows it; 0: any */
    bool trusted;      /* someone vouched for the spec: it may name any store but folders of this machine */
    int threads;       /* of the mapper that will read */
} job_loader_options;

/* *spec and *store must last as long as the loader. */
int job_loader_new(job_loader **out, const job_spec *spec, shoal_store *store, const job_loader_options *options);
void job_loader_free(job_loader **loader);
/* SHOAL_DENIED if the rows are in a file that this worker may not read; checked before it takes part. */
int job_loader_check(const job_loader *loader);
/* Slices that came from the cache, and from elsewhere; bytes fetched from elsewhere. */
void job_loader_counted(const job_loader *loader, int64_t *hits, int64_t *fetched, int64_t *bytes);

typedef struct job_rows job_rows;

/* Loads a slice.  SHOAL_ABSENT if it has not been uploaded (yet), SHOAL_INVALID, with rows and place, if the data are
 * not what the spec says, SHOAL_DENIED for a file or store outside data_root, SHOAL_SYSTEM for a file or store that is
 * missing.  A cached copy that is damaged is removed and fetched again. */
int job_rows_load(job_rows **out, job_loader *loader, int64_t slice, int64_t deadline);
void job_rows_free(job_rows **rows);
/* For engine_slice_new; valid as long as the rows are. */
engine_rows job_rows_view(job_rows *rows);
/* Cheap: whether a mapped file is still the one that was hashed.  SHOAL_INVALID when it changed. */
int job_rows_check(const job_rows *rows);

#endif
