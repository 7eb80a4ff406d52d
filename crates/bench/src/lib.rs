//! Benchmarks only: see `benches/`, and `bench/peers` for the comparison with other libraries.
