//! Every operator against the same formula composed of Burn's operations in f64, values and gradients.

mod activation;
mod attention;
mod cross_entropy;
mod gradient_sum;
mod host;
mod linear;
mod norm;
mod optimizer;
mod rotary;
mod support;
mod threads;
