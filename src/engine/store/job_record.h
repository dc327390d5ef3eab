/* A worker's record: that it is alive, what it is, what it did.  Rewritten every third of a lease by a separate
 * thread. */
#ifndef JOB_RECORD_H
#define JOB_RECORD_H

#include <shoal/job.h>

#define JOB_KIND_WORKER SHOAL_KIND('w', 'o', 'r', 'k')

enum { JOB_LOG_BYTES = 4096 };

typedef struct job_record {
    uint64_t worker;
    char host[64], kernel[16], version[24];
    int64_t pid;
    uint32_t slots, roles;
    int64_t beats;                /* how often it was written */
    double seconds;               /* since it joined */
    int64_t round;                /* it is in */
    int64_t rescuing;             /* the piece it computes for a dead worker in that round; -1 for none */
    int64_t deaths;               /* how many workers in a row had died of that piece before */
    int64_t maps, doubled;        /* pieces mapped; pieces computed for others */
    int64_t fetched, hits, bytes; /* slices fetched, found in the cache; bytes fetched */
    shoal_store_counts counts;
    char state[400];         /* "working", "left: SIGTERM", "done" */
    char log[JOB_LOG_BYTES]; /* its last lines */
} job_record;

int job_record_encode(void **out, size_t *size, const job_record *record);
int job_record_decode(job_record *out, const void *bytes, size_t size);
/* Gets one below worker/ or left/. */
int job_record_get(job_record *out, shoal_store *store, const char *key, int64_t deadline);

#endif
