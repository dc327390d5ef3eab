/* Secrets in pages of their own.  See secret.h. */
#include "secret.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <shoal/error.h>

#include "memory.h"

struct base_secret {
    char *text; /* a mapping, so that no page is shared with what may be dumped */
    size_t size, mapped;
};

void base_wipe(void *bytes, size_t size)
{
    if (size > 0)
        explicit_bzero(bytes, size);
}

int base_secret_set(base_secret **out, const char *text, size_t length)
{
    base_secret *fresh = NULL;
    size_t bytes;
    if (!base_add(&bytes, length, 1))
        return shoal_fail(SHOAL_MEMORY, "a secret of %zu bytes does not fit in memory", length);
    int status = base_alloc(&fresh, 1, sizeof *fresh, "a secret");
    if (status < 0)
        return status;
    char *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        base_free(&fresh);
        return shoal_fail_errno(SHOAL_MEMORY, errno, "no memory for a secret");
    }
    madvise(mapping, bytes, MADV_DONTDUMP); /* where the system can't, the secret is still wiped */
    (void)!mlock(mapping, bytes);           /* refused beyond a small limit; then it may be swapped */
    memcpy(mapping, text, length);
    *fresh = (base_secret){.text = mapping, .size = length, .mapped = bytes};
    base_secret_free(out);
    *out = fresh;
    return SHOAL_OK;
}

const char *base_secret_text(const base_secret *secret)
{
    return secret ? secret->text : "";
}

size_t base_secret_size(const base_secret *secret)
{
    return secret ? secret->size : 0;
}

void base_secret_free(base_secret **secret)
{
    if (*secret) {
        base_wipe((*secret)->text, (*secret)->mapped);
        munmap((*secret)->text, (*secret)->mapped);
    }
    base_free(secret);
}
