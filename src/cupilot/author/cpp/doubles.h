typedef double doubles __attribute__((vector_size(sizeof(double) * LANES)));
