/* Structures as JSON objects: one table of fields both writes and reads them.  What is read may have been cut short or
 * come from elsewhere: numbers must be finite and not negative, texts must fit and have no control characters. */
#ifndef PLAN_FIELDS_H
#define PLAN_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

typedef enum plan_field_kind {
    PLAN_REAL,       /* double */
    PLAN_LATER,      /* a double that older files lack, and then is 0 */
    PLAN_WHOLE,      /* int64_t */
    PLAN_THREADS,    /* int */
    PLAN_DATE,       /* int64_t, seconds since 1970: "2026-01-31T12:00:00Z" */
    PLAN_TRUTH,      /* bool */
    PLAN_TEXT,       /* array of char */
    PLAN_LATER_DATE, /* a date that older files lack, and then is 0 */
    PLAN_LATER_TEXT, /* a text that older files lack, and then is empty */
} plan_field_kind;

typedef struct plan_field {
    const char *name; /* NULL ends a table */
    plan_field_kind kind;
    size_t offset, size; /* size: of the member */
} plan_field;

/* A field that is called as its member is. */
#define PLAN_FIELD(kind, type, member)                                                                                 \
    {                                                                                                                  \
#member, PLAN_##kind, offsetof(type, member), sizeof((type *)0)->member                                        \
    }

/* Adds the fields to *object, which is let go and becomes NULL when memory runs out, or for a number or a text that
 * JSON can't hold. */
void plan_fields_write(json_t **object, const plan_field *table, const void *from);
/* NULL when all is well; otherwise the field that is wrong, and in *why how: "is missing", "is not a text".  Fields
 * that are not in the table are left alone: a later version may have added them. */
const plan_field *plan_fields_read(const char **why, const plan_field *table, const json_t *object, void *to);

#endif
