/* cupilot 1
Cross-entropy: a loss for every row, then their mean. The mean needs all rows and is therefore a second launch.
launch:
    rows, classes = logits.shape
    losses = scratch((rows,), f32)
    row_loss[rows](logits, target, losses, classes)
    mean[1](losses, out, rows)
*/
#include <cmath>

extern "C" void row_loss(long row, const float* logits, const long* target, float* losses, long classes) {
    logits += row * classes;
    float largest = logits[0];
    for (long i = 1; i < classes; i++) largest = std::fmax(largest, logits[i]);
    float sum = 0;
    for (long i = 0; i < classes; i++) sum += std::exp(logits[i] - largest);
    losses[row] = std::log(sum) - (logits[target[row]] - largest);
}

extern "C" void mean(long, const float* losses, float* out, long rows) {
    double sum = 0;
    for (long i = 0; i < rows; i++) sum += losses[i];
    *out = sum / rows;
}
