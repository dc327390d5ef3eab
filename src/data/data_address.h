/* Addresses of arrays inside files: FILE:NAME, as in mnist.npz:x_train.
 *
 * A file that has the whole name comes first, so that any name of a file can be used; otherwise the longest part before
 * a ':' that is a plain file is it.  gen: addresses and those of stores are never split. */
#ifndef DATA_ADDRESS_H
#define DATA_ADDRESS_H

#include <stdbool.h>

/* The NAME in an address, which belongs to it; NULL if there is none. */
const char *data_address_name(const char *address);
/* The FILE of an address, for the caller to free: all of an address that has no NAME. */
int data_address_file(char **out, const char *address);
/* Whether the file exists. */
bool data_address_exists(const char *address);

#endif
