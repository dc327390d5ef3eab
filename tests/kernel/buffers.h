/* Buffers that end at a page that can't be touched, and random numbers that are the same in every run. */
#ifndef TESTS_KERNEL_BUFFERS_H
#define TESTS_KERNEL_BUFFERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

enum { FENCES_MOST = 64 };
static struct {
    void *start;
    size_t size;
} fences[FENCES_MOST];
static int count_fences;

/* `size` bytes that end where the next page faults; the start is aligned as the size is.  Freed by drop_fences. */
static void *fence(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (size + page - 1) / page * page;
    char *start = mmap(NULL, used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    assert_int_equal(mprotect(start + used, page, PROT_NONE), 0);
    assert_true(count_fences < FENCES_MOST);
    fences[count_fences].start = start;
    fences[count_fences++].size = used + page;
    return start + used - size;
}

static void drop_fences(void)
{
    while (count_fences > 0) {
        count_fences--;
        munmap(fences[count_fences].start, fences[count_fences].size);
    }
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 2685821657736338717u;
}

static double random_unit(void)
{
    return (double)(random_bits() >> 11) * 0x1p-53;
}

#endif
