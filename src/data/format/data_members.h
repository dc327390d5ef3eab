/* Files that hold several arrays: .npz and the like.  The format lists what there is; here one of them is chosen, and
 * said what there is when none or another one is named. */
#ifndef DATA_MEMBERS_H
#define DATA_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_MEMBER_TYPE_BYTES = 40 };

/* One array of a file. */
typedef struct data_member {
    char *name;                        /* as addresses have it; may hold any bytes but NUL */
    int rank;                          /* 0 for a single value */
    uint64_t *shape;                   /* of `rank` */
    char type[DATA_MEMBER_TYPE_BYTES]; /* "uint8", "float16"; or what it holds that is not numbers: "text" */
    bool has_rows;                     /* it can be opened: it holds numbers of a type that is read, in rows */
    uint64_t place;                    /* where it is, as the format counts */
} data_member;

typedef struct data_members {
    data_member *member;
    int64_t count;
    int64_t room;
    char *whole; /* the sentence for whoever names none of them, when they make sense together only; or NULL */
} data_members;

/* Adds an array, for the format to complete; it stays where it is until the next is added. */
int data_members_add(data_member **out, data_members *members, const char *name, size_t name_bytes, int rank,
                     const uint64_t *shape);
void data_members_release(data_members *members);
/* "60000x28x28", "" for a single value. */
int data_member_shape(char **out, const data_member *member);
/* What one without rows is: "a single value" if it is a number, or its type. */
const char *data_member_what(const data_member *member);
/* How many of them can be opened. */
int64_t data_members_with_rows(const data_members *members);

/* The arrays of a plain file of a format that holds several; none for every other address, and for one that names its
 * array. */
int data_members_find(data_members *out, const char *address);

struct shoal_data;
struct data_source;
/* Opens the array that is named, or, with NULL, the only one that has rows. */
int data_members_open(struct shoal_data *data, struct data_source *source, const char *name);

#endif
