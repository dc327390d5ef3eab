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
json_t *base_json_texts(const shoal_texts *texts);
/* What a table of options was given, by name.  NULL when out of memory. */
json_t *base_json_options(const shoal_option *table, const void *settings);

#endif
