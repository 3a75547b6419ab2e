// How many elements of a window from `start` on a mean counts; `padding` of those before and behind the data count, too.
static inline real counted(long start, long size, long padding, long extent) {
    const long low = padding || start > 0 ? start : 0;
    return (start + size < extent + padding ? start + size : extent + padding) - low;
}
