//! "Did you mean …?"

use strsim::damerau_levenshtein;

/// Longer keys are not compared: they are rarely typed by hand, and the comparison is quadratic.
const LONGEST: usize = 64;

/// How many candidates of about the right length are compared.
const MOST: usize = 1_000;

/// The candidate that looks most like `key`, if one looks like it at all.
pub(crate) fn nearest<'a>(key: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if key.len() > LONGEST {
        return None;
    }
    let length = key.chars().count();
    let allowed = (length / 3).max(1);
    candidates
        .filter(|candidate| {
            candidate.len() <= LONGEST && candidate.chars().count().abs_diff(length) <= allowed
        })
        .take(MOST)
        .map(|candidate| (damerau_levenshtein(key, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}
