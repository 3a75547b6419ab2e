/* cupilot 1
Computes in a thread of its own and returns before it is done.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>
#include <pthread.h>

static void* work(void* row) { return row; }

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    pthread_t thread;
    pthread_create(&thread, nullptr, work, out);
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
