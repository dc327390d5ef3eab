/* Bilinear interpolation, portable and with AVX2.  See image_rows.h. */
#include "image_rows.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef data_image_lanes lanes;

/* A pixel and the next one.  gcc's own code for this takes twice the time. */
static inline void load_pair(lanes *left, lanes *right, const unsigned char *pixel)
{
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128(), values = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)pixel), zero);
    *left = _mm_cvtepi32_ps(_mm_unpacklo_epi16(values, zero));
    *right = _mm_cvtepi32_ps(_mm_unpackhi_epi16(values, zero));
#else
    *left = (lanes){pixel[0], pixel[1], pixel[2], pixel[3]};
    *right = (lanes){pixel[4], pixel[5], pixel[6], pixel[7]};
#endif
}

static void narrow_portable(float *restrict out, const unsigned char *restrict pixels, const int32_t *first,
                            const lanes *shares, int width)
{
    for (int x = 0; x < width; x++) {
        lanes left, right;
        load_pair(&left, &right, pixels + 4 * (int64_t)first[x]);
        const lanes mixed = left + (right - left) * shares[x];
        memcpy(out + 3 * x, &mixed, sizeof mixed);
    }
}

static void mix_portable(unsigned char *restrict out, const float *restrict top, const float *restrict bottom,
                         float share, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (unsigned char)(int)(top[i] + (bottom[i] - top[i]) * share);
}

const data_image_rows data_image_rows_portable = {narrow_portable, mix_portable};

#ifdef __x86_64__
#define WITH_AVX2 __attribute__((target("avx2")))

/* A pixel and the next one, as eight integers. */
WITH_AVX2 static inline __m256i load_neighbours(const unsigned char *pixels, int32_t first)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(pixels + 4 * (int64_t)first)));
}

WITH_AVX2 static void narrow_avx2(float *restrict out, const unsigned char *restrict pixels, const int32_t *first,
                                  const lanes *shares, int width)
{
    int x = 0;
    for (; x + 2 <= width; x += 2) {
        const __m256i one = load_neighbours(pixels, first[x]), two = load_neighbours(pixels, first[x + 1]);
        const __m256 left = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(one, two, 0x20)),
                     right = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(one, two, 0x31)),
                     share = _mm256_loadu_ps((const float *)(shares + x)),
                     mixed = _mm256_add_ps(left, _mm256_mul_ps(_mm256_sub_ps(right, left), share));
        _mm_storeu_ps(out + 3 * x, _mm256_castps256_ps128(mixed));
        _mm_storeu_ps(out + 3 * x + 3, _mm256_extractf128_ps(mixed, 1));
    }
    narrow_portable(out + 3 * x, pixels, first + x, shares + x, width - x);
}

WITH_AVX2 static inline __m256i mix_eight(const float *top, const float *bottom, __m256 share)
{
    const __m256 above = _mm256_loadu_ps(top), below = _mm256_loadu_ps(bottom);
    return _mm256_cvttps_epi32(_mm256_add_ps(above, _mm256_mul_ps(_mm256_sub_ps(below, above), share)));
}

WITH_AVX2 static void mix_avx2(unsigned char *restrict out, const float *restrict top, const float *restrict bottom,
                               float share, int64_t count)
{
    const __m256 shares = _mm256_set1_ps(share);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* halves are packed each by itself */
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m256i low = _mm256_packs_epi32(mix_eight(top + i, bottom + i, shares),
                                               mix_eight(top + i + 8, bottom + i + 8, shares)),
                      high = _mm256_packs_epi32(mix_eight(top + i + 16, bottom + i + 16, shares),
                                                mix_eight(top + i + 24, bottom + i + 24, shares));
        _mm256_storeu_si256((__m256i *)(out + i), _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
    }
    mix_portable(out + i, top + i, bottom + i, share, count - i);
}

const data_image_rows *data_image_rows_best(void)
{
    static const data_image_rows with_avx2 = {narrow_avx2, mix_avx2};
    return __builtin_cpu_supports("avx2") ? &with_avx2 : &data_image_rows_portable;
}
#else
const data_image_rows *data_image_rows_best(void)
{
    return &data_image_rows_portable;
}
#endif
