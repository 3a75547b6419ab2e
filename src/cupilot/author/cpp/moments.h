// Mean and squared deviations of everything added so far (Chan's rule: nothing cancels).
struct Moments {
    double count = 0, mean = 0, squares = 0;

    void add(double n, double m, double q) {
        double delta = m - mean, all = count + n;
        squares += q + delta * delta * (count * n / all);
        mean += delta * (n / all);
        count = all;
    }
};
