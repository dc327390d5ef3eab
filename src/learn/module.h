/* Learners from outside: a shared object that defines a shoal_module (shoal/module.h) becomes a shoal_algorithm.
 *
 * The functions of a shoal_algorithm are not told whose they are, so a process has one module at a time: the last that
 * was loaded. */
#ifndef LEARN_MODULE_H
#define LEARN_MODULE_H

#include <shoal/module.h>

typedef struct learn_module_config {
    const char *params; /* a JSON object; NULL: {} */
} learn_module_config;

/* The learner "module", whatever was loaded.  Its functions that need a module fail while there is none. */
extern const shoal_algorithm learn_module;

/* Loads the module whose bytes are in the file behind the descriptor, which stays the caller's, and makes *out its
 * learner, called "module", with a learn_module_config.  One that was loaded before goes, unless it has the same bytes:
 * nothing may use it any more. SHOAL_INVALID with a sentence about "the module" for what is none. */
int learn_module_load(const shoal_algorithm **out, int file);

/* What the loaded module says of itself, or NULL. */
const char *learn_module_summary(void);

/* ---- parameters (module_params.c) -------------------------------------------------------------------------------- */

typedef struct shoal_params shoal_params;

/* Reads a JSON object; SHOAL_USAGE for anything else. */
int learn_params_new(shoal_params **out, const char *text);
void learn_params_free(shoal_params **params);
/* SHOAL_USAGE when the module has asked for one as something else than it is. */
int learn_params_check(const shoal_params *params);
/* Sets options of a table by the names and values of the parameters.  Texts point into params. */
int learn_params_set(void *config, const shoal_option *table, shoal_params *params);

#endif
