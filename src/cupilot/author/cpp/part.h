// What there is of a tile at the edges. Whole tiles do without it.
struct Part {
    long rows, cols;
    long row(long i) const { return i < rows ? i : rows - 1; }
    long lanes_at(long column) const { return cols < column ? 0 : cols - column < LANES ? cols - column : LANES; }
    bool has(long i, long column) const { return i < rows && column < cols; }
};
static inline long row_of(long i) { return i; }
static inline long row_of(long i, Part part) { return part.row(i); }
