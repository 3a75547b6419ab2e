constexpr int ROWS = AREA / COLS, WIDTH = COLS * LANES;  // of a tile
