/* How a client's tasks, claims and results look in its store, and what they are called there.
 *
 * Whatever is put is sealed: it ends with an HMAC-SHA-256 under the client's key, of its kind, the client's name, its
 * number and its bytes.  So nothing is believed that was not written for that very place by somebody with the key; a
 * frame around it (shoal/store.h) finds accidents. */
#ifndef TASK_WIRE_H
#define TASK_WIRE_H

#include <shoal/task.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mac.h"
#include "engine/store/job_keys.h"
#include "engine/tasks/task_decide.h"

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/*  open/ID                     somebody may look for work here
 *  jobs/ID/tasks               what the client is (task_spec)
 *  jobs/ID/todo/NUMBER         a bundle of tasks
 *  jobs/ID/take/NUMBER         who runs it (task_claim)
 *  jobs/ID/done/NUMBER         its results; each task's place in it is filled once
 *  jobs/ID/data/SHA256         an argument, a file or a module
 *  jobs/ID/out/NUMBER-TASK-... a large result
 *  jobs/ID/todo/closed         the client has ended
 *  jobs/ID/worker/W, left/W    records, as those of a job */
typedef enum task_place { TASK_WORK, TASK_TAKE, TASK_DONE, TASK_PLACES } task_place;

job_key task_key_of(const char *id, task_place place, int64_t number);
/* What all of a place start with, and what those of todo and take do. */
job_key task_key_prefix(const char *id, task_place place);
job_key task_key_data(const char *id, const unsigned char hash[BASE_HASH_SIZE]);
/* Whether a key is one of these, and which. */
bool task_key_read(task_place *place, int64_t *number, const char *id, const char *key);

extern const char task_closed[]; /* "todo/closed", for job_key_of */

/* ---- seals ------------------------------------------------------------------------------------------------------- */

#define TASK_KIND_SPEC SHOAL_KIND('t', 's', 'p', 'c')
#define TASK_KIND_WORK SHOAL_KIND('t', 'a', 's', 'k')
#define TASK_KIND_TAKE SHOAL_KIND('t', 'a', 'k', 'e')
#define TASK_KIND_DONE SHOAL_KIND('d', 'o', 'n', 'e')

/* Whose key seals what. */
typedef struct task_seal {
    const char *id;
    const unsigned char *key; /* SHOAL_TASK_KEY_BYTES */
} task_seal;

/* Appends the seal. */
void task_seal_write(base_writer *writer, const task_seal *seal, uint32_t kind, int64_t number);
/* The bytes that are sealed; SHOAL_BROKEN when they are not. */
int task_seal_open(base_reader *out, const void *bytes, size_t size, const task_seal *seal, uint32_t kind,
                   int64_t number);

/* ---- a client ---------------------------------------------------------------------------------------------------- */

typedef struct task_spec {
    char version[24];
    double lease, keep;
    bool has_module;
    unsigned char module[BASE_HASH_SIZE];
    int64_t module_size;
} task_spec;

int task_spec_encode(void **out, size_t *size, const task_spec *spec, const task_seal *seal);
int task_spec_decode(task_spec *out, const void *bytes, size_t size, const task_seal *seal);

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* Bytes that travel inside, or lie in a blob of their own. */
typedef struct task_bytes {
    bool apart;
    int64_t size;
    const void *inside;                 /* in what was decoded, unless apart */
    unsigned char hash[BASE_HASH_SIZE]; /* of those that are apart */
    const char *place;                  /* of a result's: what its key is, after jobs/ID/; NULL: data/SHA256 */
} task_bytes;

enum { TASK_INSIDE_MOST = 64 << 10 };

typedef struct task_item_file {
    const char *name;
    task_bytes bytes;
} task_item_file;

/* A task as it was decoded: texts lie in the bytes it was decoded from. */
typedef struct task_item {
    int64_t number;
    const char *function;                           /* or NULL */
    const char **command, **environment, **outputs; /* each ended by NULL, or NULL */
    task_item_file *file;
    int files;
    task_bytes argument;
    double timeout;
} task_item;

/* Whether this file, or the argument for -1, lies in a blob of its own.  What a function shares does. */
bool task_is_apart(const shoal_task *task, int file);
/* Encodes a task alone, without its seal; what is apart has been put, and `hash` are those of the argument, when it is
 * apart, and then of each file that is. */
int task_item_encode(void **out, size_t *size, int64_t number, const shoal_task *task,
                     const unsigned char (*hash)[BASE_HASH_SIZE]);

/* A bundle: tasks one after another. */
typedef struct task_bundle {
    task_item *item;
    int count;
} task_bundle;

/* `item` and `bytes` are encoded tasks. */
int task_bundle_encode(void **out, size_t *size, const void *const *item, const size_t *bytes, int count,
                       const task_seal *seal, int64_t number);
/* The bytes must last as long as the bundle. */
int task_bundle_decode(task_bundle *out, const void *bytes, size_t size, const task_seal *seal, int64_t number);
void task_bundle_release(task_bundle *bundle);

/* ---- claims ------------------------------------------------------------------------------------------------------ */

int task_claim_encode(void **out, size_t *size, const task_claim *claim, const task_seal *seal, int64_t number);
int task_claim_decode(task_claim *out, const void *bytes, size_t size, const task_seal *seal, int64_t number);

/* ---- results ----------------------------------------------------------------------------------------------------- */

enum {
    TASK_RETURNED = SHOAL_TASK_POISON + 1, /* not a result: the client puts the task into another bundle */
    TASK_STATES,
    TASK_MESSAGE_MOST = 4096,
};

typedef struct task_outcome {
    int state; /* a shoal_task_state, or TASK_RETURNED */
    int status, exit_code, deaths;
    double seconds;
    const char *host, *message;
    task_bytes output;
    task_item_file *file; /* base_alloc'd */
    int files;
} task_outcome;

int task_outcome_encode(void **out, size_t *size, const task_outcome *outcome);
/* Texts lie in the bytes. */
int task_outcome_decode(task_outcome *out, const void *bytes, size_t size);
void task_outcome_release(task_outcome *outcome);

/* The results of a bundle as far as they are there: encoded outcomes, NULL where there is none. */
typedef struct task_slots {
    int count;
    struct task_slot {
        void *bytes; /* base_alloc'd */
        size_t size;
    } * slot;
} task_slots;

int task_slots_new(task_slots *out, int count);
void task_slots_release(task_slots *slots);
bool task_slots_full(const task_slots *slots);
int task_slots_encode(void **out, size_t *size, const task_slots *slots, const task_seal *seal, int64_t number);
int task_slots_decode(task_slots *out, const void *bytes, size_t size, const task_seal *seal, int64_t number);

/* Fills the places in the store's blob that are empty there with what these slots have, and takes over the others:
 * afterwards these are what the store has, or more.  *lost, which may be NULL, counts places that somebody else had
 * filled.  SHOAL_BROKEN is not an answer: what is there without the right seal counts as absent. */
int task_slots_merge(task_slots *slots, int *lost, shoal_store *store, const task_seal *seal, int64_t number,
                     int64_t deadline);
/* What is there; SHOAL_ABSENT also for what has not the right seal, and then *forged. */
int task_slots_get(task_slots *out, shoal_etag *etag, bool *forged, shoal_store *store, const task_seal *seal,
                   int64_t number, int64_t deadline);

#endif
