/* Results and messages of every call that can fail.
 *
 *     shoal_data *data = NULL;
 *     if (shoal_data_open(&data, "rows.npy", NULL) < 0)
 *         fprintf(stderr, "%s\n", shoal_error());
 *
 * A function that can fail returns SHOAL_OK or one of the negative codes below, named by what the
 * caller does next, and leaves one sentence for a person in the calling thread. */
#ifndef SHOAL_ERROR_H
#define SHOAL_ERROR_H

#if defined(__GNUC__)
#define SHOAL_API __attribute__((visibility("default")))
#define SHOAL_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define SHOAL_API
#define SHOAL_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum shoal_status {
    SHOAL_OK = 0,
    SHOAL_USAGE = -1,   /* an option or argument is wrong: correct the call (the program exits 2) */
    SHOAL_INVALID = -2, /* the input is not what it should be: correct the input */
    SHOAL_SYSTEM = -3,  /* the system refused: a missing file, a full disk, no permission */
    SHOAL_MEMORY = -4,  /* out of memory */
    SHOAL_STOPPED = -5, /* asked to stop before there was a result */
    /* Answers of a store, explained in store.h. */
    SHOAL_ABSENT = -6,   /* there is no such thing */
    SHOAL_CONFLICT = -7, /* someone else was first: look again */
    SHOAL_LOST = -8,     /* a lease ended: drop what it stood for */
    SHOAL_UNKNOWN = -9,  /* it may or may not have been done: look before going on */
    SHOAL_AGAIN = -10,   /* a temporary failure did not end in time: try later */
    SHOAL_DENIED = -11,  /* the credentials do not allow it */
    SHOAL_BROKEN = -12   /* bytes that are not what was written */
} shoal_status;

/* Sets the calling thread's message and returns `status`, so that a failure is one line:
 * return shoal_fail(SHOAL_INVALID, "%s: row %zu has no columns", path, row).
 * Control characters are replaced, since part of the text may come from a file. */
SHOAL_API int shoal_fail(int status, const char *format, ...) SHOAL_PRINTF(2, 3);

/* Like shoal_fail, with ": " and the text of `error` (an errno value) at the end. */
SHOAL_API int shoal_fail_errno(int status, int error, const char *format, ...) SHOAL_PRINTF(3, 4);

/* The calling thread's last message; "" when nothing has failed.  Valid until the next failure. */
SHOAL_API const char *shoal_error(void);

/* A bug in shoal, never a mistake of the user: prints where and why, and aborts. */
#define SHOAL_BUG(...) shoal_bug(__FILE__, __LINE__, __VA_ARGS__)
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
SHOAL_API void
shoal_bug(const char *file, int line, const char *format, ...) SHOAL_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
