/* The matrix product of a dense table, for one type and one CPU.
 *
 * Included once for each type by each dense_<set>.c, which has defined before
 *
 *     P(name)             the name with the type's ending
 *     REAL, LANES         the type, and how many of it a vector holds
 *     P(vector)           the type of a vector
 *     V_LOAD(p), V_STORE(p, v), V_BROADCAST(p), V_FMA(a, b, c)                 at any address
 *     V_LOAD_PART(p, n), V_STORE_PART(p, v, n)    of the first n lanes, 1 <= n <= LANES; the others are 0
 *     V_LOAD_LAST(p, n)                           likewise, or all lanes where packing has put zeros there
 *     QUAD, P(load_columns)(out, a, a_row)        out[k] lane i = a[i * a_row + k] for k < QUAD and all lanes i
 *     ROWS_1 ... ROWS_4, ROWS_WIDE               how tall tiles of 1 to 4 and WIDE vectors are: what the registers hold
 *     NARROW_GROUPS                               how many vectors of rows narrow() has side by side
 *     DEPTH_MOST, DEPTH_MOST_ACROSS               of a panel of b, so that it lies in the first cache beside the rows
 *                                                 of a that a tile meets; the second where a is column-major, which
 *                                                 takes more of the cache
 *     DIRECT_ROWS, DIRECT_PARTS  up to how many rows packing b does not pay; whether V_LOAD_LAST loads part of a vector
 *     AHEAD                                       how many steps ahead a column-major a is fetched
 *
 * A tile of c stays in registers while its chains run along a panel of b, and is stored in between; c being of the
 * registers' type, no chain is split.  Lanes are columns of c, or, where there are few of those, rows. */

enum { P(NARROW_MOST) = LANES / 2, P(ROWS_MOST) = ROWS_1 > ROWS_2 ? ROWS_1 : ROWS_2 };

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* One tile and where its operands are; strides are in values. */
typedef struct P(tile) {
    REAL *c;
    const REAL *a, *b;
    int64_t c_row, a_row, a_column, b_row, depth;
    int last; /* columns in the last vector */
} P(tile);

/* Rows of a lie at multiples of a_row, and an address may hold 1, 2, 4 or 8 times a register, so that registers for the
 * odd multiples are enough.  HIDE keeps the compiler from making a pointer for each row instead. */
ALWAYS_INLINE const REAL *P(row_of)(const char *a, const int64_t odd[7], int i)
{
    const int shift = i == 0 ? 0 : __builtin_ctz((unsigned)i);
    return (const REAL *)(i == 0 ? a : a + odd[i >> shift >> 1] * (1 << shift));
}

/* One step along the depth of a tile. */
#define ALONG_DEPTH                                                                                                    \
    UNROLL                                                                                                             \
    for (int v = 0; v < last; v++)                                                                                     \
        from[v] = V_LOAD(b + v * LANES);                                                                               \
    from[last] = V_LOAD_LAST(b + last * LANES, last_columns);                                                          \
    UNROLL                                                                                                             \
    for (int k = 0; k < rows / 2; k++)                                                                                 \
        HIDE(odd[k]);                                                                                                  \
    __builtin_prefetch(a + ahead);                                                                                     \
    UNROLL                                                                                                             \
    for (int i = 0; i < rows; i++) {                                                                                   \
        P(vector) factor = V_BROADCAST(P(row_of)(a, odd, i));                                                          \
        UNROLL                                                                                                         \
        for (int v = 0; v < vectors; v++)                                                                              \
            sum[i][v] = V_FMA(factor, from[v], sum[i][v]);                                                             \
    }                                                                                                                  \
    a += a_column;                                                                                                     \
    b += b_row;

/* `tiles` tiles, one below the other.  The first steps also fetch what the next tile finds in c. */
ALWAYS_INLINE void P(run_tiles)(const P(tile) * t, int64_t tiles, const int rows, const int vectors)
{
    const int last = vectors - 1, last_columns = t->last;
    const int64_t c_row = t->c_row, b_row = t->b_row, step = t->a_row * (int64_t)sizeof(REAL);
    int64_t odd[7] = {step, 3 * step, 5 * step, 7 * step, 9 * step, 11 * step, 13 * step};
    int64_t a_column = t->a_column * (int64_t)sizeof(REAL);
    const int64_t ahead = t->a_column == 1 ? 0 : AHEAD * a_column;
    const char *a_first = (const char *)t->a;
    REAL *c = t->c;
    HIDE(a_column);
    for (; tiles > 0; tiles--, c += rows * c_row, a_first += rows * step) {
        P(vector) sum[P(ROWS_MOST)][WIDE], from[WIDE];
        const char *a = a_first;
        const REAL *b = t->b, *next = c + rows * c_row;
        int64_t left = t->depth, with_next = left < rows ? left : rows;
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int v = 0; v < last; v++)
                sum[i][v] = V_LOAD(c + i * c_row + v * LANES);
            sum[i][last] = V_LOAD_PART(c + i * c_row + last * LANES, last_columns);
        }
        left -= with_next;
        for (; with_next > 0; with_next--, next += c_row) {
            UNROLL
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(next + v * LANES, 1);
            ALONG_DEPTH
        }
        for (; left > 0; left--) {
            ALONG_DEPTH
        }
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int v = 0; v < last; v++)
                V_STORE(c + i * c_row + v * LANES, sum[i][v]);
            V_STORE_PART(c + i * c_row + last * LANES, sum[i][last], last_columns);
        }
    }
}
#undef ALONG_DEPTH

#define TILE(rows, vectors, most)                                                                                      \
    case rows:                                                                                                         \
        if (rows <= most)                                                                                              \
            P(run_tiles)(t, tiles, rows <= most ? rows : 1, vectors);                                                  \
        break;
#define TILES(name, vectors, most)                                                                                     \
    static void P(name)(const P(tile) * t, int64_t tiles, int rows)                                                    \
    {                                                                                                                  \
        switch (rows) {                                                                                                \
            TILE(1, vectors, most)                                                                                     \
            TILE(2, vectors, most)                                                                                     \
            TILE(3, vectors, most)                                                                                     \
            TILE(4, vectors, most)                                                                                     \
            TILE(5, vectors, most)                                                                                     \
            TILE(6, vectors, most)                                                                                     \
            TILE(7, vectors, most)                                                                                     \
            TILE(8, vectors, most)                                                                                     \
            TILE(9, vectors, most)                                                                                     \
            TILE(10, vectors, most)                                                                                    \
            TILE(11, vectors, most)                                                                                    \
            TILE(12, vectors, most)                                                                                    \
            TILE(13, vectors, most)                                                                                    \
            TILE(14, vectors, most)                                                                                    \
        default: break;                                                                                                \
        }                                                                                                              \
    }
TILES(tiles_1, 1, ROWS_1)
TILES(tiles_2, 2, ROWS_2)
TILES(tiles_3, 3, ROWS_3)
TILES(tiles_4, 4, ROWS_4)
TILES(tiles_wide, WIDE, ROWS_WIDE)
#undef TILES
#undef TILE

/* ---- panels ------------------------------------------------------------------------------------------------------ */

/* How many vectors the next panel has: no single one is left over where there are more. */
static int P(panel_vectors)(int64_t columns, int64_t rows)
{
    const int64_t left = (columns + LANES - 1) / LANES;
    if (rows <= ROWS_WIDE && (DIRECT_PARTS ? left : columns / LANES) >= WIDE)
        return WIDE;
    return left <= 4 ? (int)left : left % 3 == 1 ? 4 : 3;
}

/* Copies `depth` rows of a panel of b side by side, filled up with zeros. */
static void P(pack)(REAL *restrict out, const REAL *restrict b, int64_t b_row, int vectors, int last, int64_t depth)
{
    for (int64_t t = 0; t < depth; t++, b += b_row, out += vectors * LANES) {
        __builtin_prefetch(b + 8 * b_row);
        for (int v = 0; v < vectors - 1; v++)
            V_STORE(out + v * LANES, V_LOAD(b + v * LANES));
        V_STORE(out + (vectors - 1) * LANES, V_LOAD_PART(b + (vectors - 1) * LANES, last));
    }
}

/* All tiles of one panel: of two heights that differ by one row, since a tile of few rows would leave units idle. */
static void P(run_panel)(P(tile) tile, int vectors, int64_t rows)
{
    static void (*const run[])(const P(tile) *, int64_t, int) = {NULL, P(tiles_1), P(tiles_2), P(tiles_3), P(tiles_4)};
    static const int tall[] = {0, ROWS_1, ROWS_2, ROWS_3, ROWS_4};
    const int most = vectors < WIDE ? tall[vectors] : ROWS_WIDE;
    const int64_t tiles = (rows + most - 1) / most, low = rows / tiles, higher = rows % tiles;
    void (*const run_tiles)(const P(tile) *, int64_t, int) = vectors < WIDE ? run[vectors] : P(tiles_wide);
    run_tiles(&tile, higher, (int)low + 1);
    tile.c += higher * (low + 1) * tile.c_row;
    tile.a += higher * (low + 1) * tile.a_row;
    run_tiles(&tile, tiles - higher, (int)low);
}

/* ---- few columns ------------------------------------------------------------------------------------------------- */

/* Columns of some rows, each where vectors can be loaded; and back.  Not inlined, lest they be unrolled for each
 * shape. */
typedef REAL P(column)[NARROW_GROUPS * LANES];
static __attribute__((noinline)) void P(take_columns)(P(column) * out, const REAL *from, int64_t from_row,
                                                      int64_t columns, int64_t rows)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            out[j][i] = from[i * from_row + j];
}

static __attribute__((noinline)) void P(put_columns)(REAL *to, int64_t to_row, const P(column) * from, int64_t columns,
                                                     int64_t rows)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            to[i * to_row + j] = from[j][i];
}

/* `groups` vectors of rows against `columns` columns; a is row-major. */
ALWAYS_INLINE void P(run_narrow)(const P(tile) * t, const int columns, const int groups)
{
    _Alignas(64) P(column) ends[P(NARROW_MOST)], rest[QUAD];
    P(vector) sum[NARROW_GROUPS][P(NARROW_MOST)], from[QUAD];
    const int64_t steps = t->depth / QUAD;
    const REAL *a = t->a, *b = t->b;
    P(take_columns)(ends, t->c, t->c_row, columns, groups * LANES);
    P(take_columns)(rest, t->a + steps * QUAD, t->a_row, t->depth - steps * QUAD, groups * LANES);
    UNROLL
    for (int g = 0; g < groups; g++) {
        UNROLL
        for (int j = 0; j < columns; j++)
            sum[g][j] = V_LOAD(ends[j] + g * LANES);
    }
    for (int64_t k = 0; k < steps; k++, a += QUAD, b += QUAD * t->b_row)
        UNROLL
    for (int g = 0; g < groups; g++) {
        P(load_columns)(from, a + g * LANES * t->a_row, t->a_row);
        UNROLL
        for (int q = 0; q < QUAD; q++) {
            UNROLL
            for (int j = 0; j < columns; j++)
                sum[g][j] = V_FMA(from[q], V_BROADCAST(b + q * t->b_row + j), sum[g][j]);
        }
    }
    for (int64_t k = 0; k < t->depth - steps * QUAD; k++, b += t->b_row)
        UNROLL
    for (int g = 0; g < groups; g++) {
        from[0] = V_LOAD(rest[k] + g * LANES);
        UNROLL
        for (int j = 0; j < columns; j++)
            sum[g][j] = V_FMA(from[0], V_BROADCAST(b + j), sum[g][j]);
    }
    UNROLL
    for (int g = 0; g < groups; g++) {
        UNROLL
        for (int j = 0; j < columns; j++)
            V_STORE(ends[j] + g * LANES, sum[g][j]);
    }
    P(put_columns)(t->c, t->c_row, (const P(column) *)ends, columns, groups * LANES);
}

#define NARROW(columns)                                                                                                \
    case columns:                                                                                                      \
        if (columns <= P(NARROW_MOST)) {                                                                               \
            if (groups == NARROW_GROUPS)                                                                               \
                P(run_narrow)(t, columns <= P(NARROW_MOST) ? columns : 1, NARROW_GROUPS);                              \
            else                                                                                                       \
                P(run_narrow)(t, columns <= P(NARROW_MOST) ? columns : 1, 1);                                          \
        }                                                                                                              \
        break;
static void P(narrow_columns)(const P(tile) * t, int64_t columns, int64_t groups)
{
    switch (columns) {
        NARROW(1)
        NARROW(2)
        NARROW(3)
        NARROW(4)
        NARROW(5)
        NARROW(6)
        NARROW(7)
        NARROW(8)
    default: break;
    }
}
#undef NARROW

/* Does as many rows as fill vectors, and returns how many those are. */
static int64_t P(narrow)(P(tile) tile, int64_t rows, int64_t columns)
{
    int64_t done = 0;
    while (done + LANES <= rows) {
        int64_t groups = done + NARROW_GROUPS * LANES <= rows ? NARROW_GROUPS : 1;
        P(narrow_columns)(&tile, columns, groups);
        tile.c += groups * LANES * tile.c_row;
        tile.a += groups * LANES * tile.a_row;
        done += groups * LANES;
    }
    return done;
}

/* ---- the entry --------------------------------------------------------------------------------------------------- */

/* One stretch of the depth. */
static void P(run_depth)(P(tile) tile, int64_t rows, int64_t columns)
{
    _Alignas(64) REAL packed[DEPTH_MOST * 4 * LANES];
    const REAL *b = tile.b;
    const int64_t b_row = tile.b_row;
    while (columns > 0) {
        const int vectors = P(panel_vectors)(columns, rows);
        const int64_t width = columns < vectors * LANES ? columns : vectors * LANES;
        tile.last = (int)(width - (vectors - 1) * LANES);
        tile.b = b;
        tile.b_row = b_row;
        if (vectors < WIDE && (rows > DIRECT_ROWS || (tile.last < LANES && !DIRECT_PARTS))) {
            P(pack)(packed, b, b_row, vectors, tile.last, tile.depth);
            tile.b = packed;
            tile.b_row = vectors * LANES;
        }
        P(run_panel)(tile, vectors, rows);
        tile.c += width;
        b += width;
        columns -= width;
    }
}

static void P(product)(REAL *c, int64_t c_row, const REAL *a, int64_t a_row, int64_t a_column, const REAL *b,
                       int64_t b_row, int64_t rows, int64_t columns, int64_t depth)
{
    P(tile)
    tile = {
        .c = c, .a = a, .b = b, .c_row = c_row, .a_row = a_row, .a_column = a_column, .b_row = b_row, .depth = depth};
    if (rows <= 0 || columns <= 0 || depth <= 0)
        return;
    if (columns <= P(NARROW_MOST) && a_column == 1) {
        int64_t done = P(narrow)(tile, rows, columns);
        tile.c += done * c_row;
        tile.a += done * a_row;
        rows -= done;
    }
    const int64_t most = a_column == 1 ? DEPTH_MOST : DEPTH_MOST_ACROSS;
    int64_t stretches = (depth + most - 1) / most;
    for (; rows > 0 && stretches > 0; stretches--) {
        tile.depth = (depth + stretches - 1) / stretches;
        P(run_depth)(tile, rows, columns);
        tile.a += tile.depth * a_column;
        tile.b += tile.depth * b_row;
        depth -= tile.depth;
    }
}

#undef REAL
#undef P
#undef LANES
#undef QUAD
#undef V_LOAD
#undef V_STORE
#undef V_BROADCAST
#undef V_FMA
#undef V_LOAD_PART
#undef V_LOAD_LAST
#undef V_STORE_PART
