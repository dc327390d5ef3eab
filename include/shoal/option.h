/* Options declared as data: one table gives the parser, `-h`, and the manual page.
 *
 *     struct settings { int64_t k; double tolerance; bool quiet; };
 *     static const shoal_option options[] = {
 *         {"clusters", 'k', SHOAL_OPTION_COUNT, offsetof(struct settings, k), "K", "number of clusters", .least = 1},
 *     {"tolerance", 0, SHOAL_OPTION_REAL, offsetof(struct settings, tolerance), "T", "stop below", .fallback = "1e-4"},
 *         {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(struct settings, quiet), NULL, "print nothing"},
 *         {0}};
 *
 * A table ends with an all-zero row.  Values land in a plain struct at their offsets. */
#ifndef SHOAL_OPTION_H
#define SHOAL_OPTION_H

#include <stddef.h>
#include <stdint.h>
#include <shoal/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum shoal_option_kind {
    SHOAL_OPTION_FLAG,   /* bool; takes no argument */
    SHOAL_OPTION_COUNT,  /* int64_t; also 500e3 when that is whole */
    SHOAL_OPTION_BYTES,  /* int64_t; 64MB, 1GiB, 4096 */
    SHOAL_OPTION_REAL,   /* double */
    SHOAL_OPTION_TEXT,   /* const char *, the argument itself */
    SHOAL_OPTION_CHOICE, /* int: index into choices */
    SHOAL_OPTION_LIST,   /* shoal_texts: one more each time the option is given */
    SHOAL_OPTION_COUNTS  /* int64_t, and a const char * right behind it: a COUNT and NULL, or 0 and the text of several,
                          * such as 2..20 or 2,4,8 */
} shoal_option_kind;

enum { SHOAL_TEXTS_MOST = 32 };

/* The values of an option that may be given several times. */
typedef struct shoal_texts {
    int count;
    const char *text[SHOAL_TEXTS_MOST];
} shoal_texts;

typedef struct shoal_option {
    const char *name; /* long name without the dashes */
    char letter;      /* short name, or 0 */
    shoal_option_kind kind;
    size_t offset;              /* of the value in the settings struct */
    const char *argument;       /* what help calls the argument; NULL for flags */
    const char *help;           /* one sentence without a full stop */
    const char *fallback;       /* default as a user would type it; NULL leaves zero */
    double least, most;         /* numbers: limits, both inclusive; no upper limit when most <= least */
    const char *const *choices; /* CHOICE: NULL-terminated names */
    const char *default_text;   /* what help shows as the default without a fallback: "all cores"; NULL for nothing */
} shoal_option;

/* Sets every field that has a fallback.  The struct should be zero before. */
SHOAL_API int shoal_options_default(void *settings, const shoal_option *table);

/* Sets one option from text, as the command line does, by its long name or by a name that other programs use
 * ("max_iter").  SHOAL_USAGE with a sentence that names the option and what it accepts.  The text must outlive the
 * settings. */
SHOAL_API int shoal_options_set(void *settings, const shoal_option *table, const char *name, const char *text);

#ifdef __cplusplus
}
#endif
#endif
