/* What a search may choose from: space.json, read into the finite list of configurations that src/plan/search.h works
 * on.
 *
 *     {"machines": "aws:us-east-1/c7i.*",
 *      "count": [2, 4, 8]}
 *
 * A space is the product of its dimensions: "machine" and "count" always, and whatever else the file
 * names.  docs/plan-search.md has the form of the file. */
#ifndef PLAN_SEARCH_SPACE_H
#define PLAN_SEARCH_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "plan/prices.h"
#include "search.h"

enum {
    PLAN_SEARCH_DIMENSIONS_MOST = 16,
    PLAN_SEARCH_MACHINE = 0,
    PLAN_SEARCH_COUNT = 1,
    PLAN_SEARCH_LABEL_BYTES = 512
};

typedef struct plan_search_dimension {
    const char *name; /* what stands between braces in the command */
    bool is_text;
    int64_t values;
    char **text;    /* of each value, as it is put into the command */
    double *number; /* of each, or NULL where they are texts */
} plan_search_dimension;

/* A machine with all that is known of it. */
typedef struct plan_search_machine {
    plan_machine known; /* vcpus and memory_gib are 0, prices NaN, where nobody told */
    json_t *own; /* the object that the file has for it; belongs to the space's file; NULL where that is only a name */
} plan_search_machine;

typedef struct plan_search_machines {
    plan_search_machine *machine;
    int64_t machines;
} plan_search_machines;

typedef struct plan_search_terms {
    const char *prices; /* a file, or NULL for the table that the program has */
    bool spot;
    bool need_prices; /* the objective, or a budget, is in dollars */
} plan_search_terms;

typedef struct plan_search_space {
    const char *path; /* of the file */
    json_t *file;
    plan_search_machines machines;
    /* The last one changes fastest from candidate to candidate. */
    plan_search_dimension dimension[PLAN_SEARCH_DIMENSIONS_MOST];
    int dimensions;
    plan_candidate *candidate;
    char **label; /* of each candidate, what tells those with other parameters apart; NULL where there are none */
    plan_candidates list; /* of these candidates */
    char feature_name[PLAN_FEATURES_MOST][64];
    bool priced;         /* every candidate has a price */
    int64_t alike;       /* machines that no feature tells apart from one before */
    char hash[17];       /* of the configurations */
    char price_hash[17]; /* of their prices, where these are needed; "" otherwise */
} plan_search_space;

/* SHOAL_INVALID names the file and the line or key.  `path` must outlive the space. */
int plan_search_space_read(plan_search_space **out, const char *path, const plan_search_terms *terms);
void plan_search_space_free(plan_search_space **space);

/* Which of its dimension's values a candidate has. */
int64_t plan_search_value(const plan_search_space *space, int64_t candidate, int dimension);
const char *plan_search_text(const plan_search_space *space, int64_t candidate, int dimension);
/* The candidate with such a value of each dimension. */
int64_t plan_search_candidate(const plan_search_space *space, const int64_t value[PLAN_SEARCH_DIMENSIONS_MOST]);
/* The value that `text` spells ("4", "4.0" and "4e0" are one number); -1 when the dimension has no such value. */
int64_t plan_search_value_named(const plan_search_dimension *dimension, const char *text);
/* Dimension of that name; -1 for none. */
int plan_search_dimension_named(const plan_search_space *space, const char *name);
/* "4 of c7i.large, batch 32" */
void plan_search_label(char out[PLAN_SEARCH_LABEL_BYTES], const plan_search_space *space, int64_t candidate);

/* ---- its parts --------------------------------------------------------------------------------------------------- */

/* Reads what "machines" has (search_machines.c). */
int plan_search_machines_read(plan_search_machines *out, const char *path, json_t *from,
                              const plan_search_terms *terms);
void plan_search_machines_release(plan_search_machines *machines);
/* Reads the values of one dimension: a number, a list, or a text such as "2..16" (search_values.c). */
int plan_search_values_read(plan_search_dimension *out, const char *path, const char *name, json_t *from);
/* Copies a text and refuses what a command line cannot have. */
int plan_search_copy_value(char **out, const char *path, const char *name, const char *text);
void plan_search_values_release(plan_search_dimension *dimension);
/* Fills the list of candidates and the features of all candidates (search_features.c). */
int plan_search_features(plan_search_space *space);

/* ---- the features that are looked at where a machine's cores and memory are known -------------------------------- */

/* Sets features, feature_name and logarithmic. */
void plan_candidates_describe(plan_candidates *list);
/* Sets price and features of `count` machines; `machine` of the candidate is left to the caller.  vcpus and memory must
 * be positive. */
void plan_candidate_describe(plan_candidate *candidate, const plan_machine *machine, int64_t count);

#endif
