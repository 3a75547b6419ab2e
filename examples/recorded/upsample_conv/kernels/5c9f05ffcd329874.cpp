/* cupilot 1
Transposed convolution with bias and ReLU: every output gathers the inputs that reach it. One block an output row.
launch:
    batch, cin, h, w = x.shape
    cin2, cout, kh, kw = up_weight.shape
    n, c, oh, ow = out.shape
    upsample[oh, cout, batch](x, up_weight, up_bias, out, cin, cout, h, w, kh, kw, oh, ow, self.up_stride_0, self.up_stride_1, self.up_padding_0, self.up_padding_1)
*/
extern "C" void upsample(long oy, long co, long b, const float* x, const float* weight, const float* bias, float* out,
                         long cin, long cout, long h, long w, long kh, long kw, long oh, long ow, long sy, long sx,
                         long py, long px) {
    float* row = out + ((b * cout + co) * oh + oy) * ow;
    for (long ox = 0; ox < ow; ++ox) {
        float sum = 0;
        for (long ci = 0; ci < cin; ++ci)
            for (long ky = 0; ky < kh; ++ky) {
                long ty = oy + py - ky;
                if (ty < 0 || ty % sy != 0 || ty / sy >= h) continue;
                for (long kx = 0; kx < kw; ++kx) {
                    long tx = ox + px - kx;
                    if (tx < 0 || tx % sx != 0 || tx / sx >= w) continue;
                    sum += x[((b * cin + ci) * h + ty / sy) * w + tx / sx] *
                           weight[((ci * cout + co) * kh + ky) * kw + kx];
                }
            }
        sum += bias[co];
        row[ox] = sum < 0 ? 0.0f : sum;
    }
}
