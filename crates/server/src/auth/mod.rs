//! Who is asking.

mod principal;

pub use principal::{Principal, Rights};
