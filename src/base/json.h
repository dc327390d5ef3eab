/* Small helpers around jansson: objects that are built without a check after each step, and texts that may be no
 * UTF-8. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <shoal/option.h>

/* Adds to an object, which becomes NULL when memory runs out and then stays so.  Takes the value. */
void base_json_put(json_t **object, const char *name, json_t *value);
/* A string of JSON from bytes that may be no UTF-8. */
json_t *base_json_text(const char *text);
/* A real, or null when it is not finite. */
json_t *base_json_real(double value);
/* A list of texts; NULL when out of memory. */
json_t *base_json_texts(const char *const *texts, int64_t count);
/* What a table of options was given, by name.  NULL when out of memory. */
json_t *base_json_options(const shoal_option *table, const void *settings);

/* The way back: sets what an object tells of a table's options and leaves the rest as it is, also what it knows under
 * names that the table does not have.  Texts belong to the object, and must last.  SHOAL_BROKEN with a sentence about
 * the first value that its option can't have, when all others are set. */
int base_json_take_options(void *settings, const shoal_option *table, const json_t *object);

#endif
