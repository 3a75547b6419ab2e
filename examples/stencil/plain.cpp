/* cupilot 1
One step of heat diffusion: every point moves towards its four neighbours, outside it is zero. One block is one row.
launch:
    h, w = u.shape
    diffuse[h](u, out, h, w, self.alpha)
*/
extern "C" void diffuse(long i, const float* u, float* out, long h, long w, float alpha) {
    for (long j = 0; j < w; j++) {
        float up = i > 0 ? u[(i - 1) * w + j] : 0;
        float down = i + 1 < h ? u[(i + 1) * w + j] : 0;
        float left = j > 0 ? u[i * w + j - 1] : 0;
        float right = j + 1 < w ? u[i * w + j + 1] : 0;
        float here = u[i * w + j];
        out[i * w + j] = here + alpha * (up + down + left + right - 4 * here);
    }
}
