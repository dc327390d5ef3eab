/* The small XML documents that cloud stores answer with, by expat.
 *
 * A reader is called for every element that has no children, with the path of names above it and its text:
 *     "EnumerationResults/Blobs/Blob/Name", "jobs/1/spec"
 * An element with the attribute Encoded="true", whose text is percent-encoded since XML could not hold it, has
 * "@Encoded" at the end of its path.  And, with text NULL, it is called at the end of every element that has children,
 * so that a row is known to be complete. */
#ifndef STORE_XML_H
#define STORE_XML_H

#include <stddef.h>

/* Returns SHOAL_OK, or a failure that ends the reading.  `text` has `length` bytes and a NUL. */
typedef int xml_reader(void *context, const char *path, const char *text, size_t length);

/* SHOAL_BROKEN for what is not well formed, nested deeper than 16, or has a document type (entities are refused). */
int xml_read(const char *document, size_t size, xml_reader *reader, void *context);

#endif
