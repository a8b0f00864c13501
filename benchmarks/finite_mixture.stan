// Pseudo posterior of the finite mixture of regressions, labels summed out: the same variables and
// priors as finite_mixture in plain_pymc_models.py.
data {
  int<lower=1> records;
  int<lower=1> size;                     // predictors
  int<lower=1> components;
  vector[records] y;
  matrix[records, size] X;
  vector<lower=0, upper=1>[records] weights;
  real<lower=0> concentration_shape;
  real<lower=0> concentration_rate;
  real<lower=0> coefficient_df;
  vector<lower=0>[size] coefficient_scale;
  real<lower=0> residual_df;
  real<lower=0> residual_scale;
  int<lower=0, upper=1> centred;         // whether `coefficients` are beta or standard normals
}
transformed data {
  int below = (size * (size - 1)) %/% 2;
  vector[size] degrees;
  for (r in 1:size) {
    degrees[r] = coefficient_df + size - r;
  }
}
parameters {
  real<lower=0> concentration;
  vector<lower=0>[components] pi_gamma;
  vector<lower=0>[components] pi_exponential;
  vector<lower=0>[size] coefficient_aux;
  vector<lower=0>[size] bartlett_squares;
  vector[below] bartlett_below;
  matrix[components, size] coefficients;
  vector<lower=0>[components] sigma;
}
transformed parameters {
  vector[components] log_pi;
  matrix[components, size] beta;
  // precision of a row of beta: precision_root * precision_root'
  matrix[size, size] precision_root = rep_matrix(0, size, size);
  {
    // a Gamma(a/K) variable is Gamma(a/K + 1) times a power of a uniform one; in logs
    vector[components] log_gamma
      = log(pi_gamma) - pi_exponential * (components / concentration);
    log_pi = log_gamma - log_sum_exp(log_gamma);
  }
  {
    vector[size] root = sqrt(coefficient_aux / (2 * coefficient_df));
    int next = 1;
    for (r in 1:size) {
      for (s in 1:(r - 1)) {
        precision_root[r, s] = root[r] * bartlett_below[next];
        next += 1;
      }
      precision_root[r, r] = root[r] * sqrt(bartlett_squares[r]);
    }
  }
  beta = centred ? coefficients : mdivide_right_tri_low(coefficients, precision_root);
}
model {
  concentration ~ gamma(concentration_shape, concentration_rate);
  pi_gamma ~ gamma(concentration / components + 1, 1);
  pi_exponential ~ exponential(1);
  coefficient_aux ~ inv_gamma(0.5, inv_square(coefficient_scale));
  bartlett_squares ~ chi_square(degrees);
  bartlett_below ~ std_normal();
  if (centred) {
    to_vector(coefficients * precision_root) ~ std_normal();
    target += components * sum(log(diagonal(precision_root)));
  } else {
    to_vector(coefficients) ~ std_normal();
  }
  // half-t: the constant of the half does not matter
  sigma ~ student_t(residual_df, 0, residual_scale);
  {
    matrix[components, records] joint;
    matrix[records, components] mean = X * beta';
    for (k in 1:components) {
      joint[k] = log_pi[k] - log(sigma[k])
        - 0.5 * square((y - mean[, k]) / sigma[k])';
    }
    vector[records] log_f;
    for (i in 1:records) {
      log_f[i] = log_sum_exp(joint[, i]);
    }
    target += dot_product(weights, log_f);
  }
}
