/* cupilot 1
Variance (out0) and mean (out1) of one row per block, in two passes: the mean, then the squared deviations.
launch:
    rows, cols = x.shape
    var_mean[rows](x, out0, out1, cols)
*/
extern "C" void var_mean(long row, const float* x, float* var, float* mean, long cols) {
    x += row * cols;
    double sum = 0, squares = 0;
    for (long i = 0; i < cols; i++) sum += x[i];
    for (long i = 0; i < cols; i++) squares += (x[i] - sum / cols) * (x[i] - sum / cols);
    mean[row] = sum / cols;
    var[row] = squares / cols;
}
