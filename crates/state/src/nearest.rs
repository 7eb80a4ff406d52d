//! "Did you mean …?"

use strsim::damerau_levenshtein;

/// Longer keys are not compared: nobody mistypes them, and comparing is quadratic.
const LONGEST: usize = 64;

/// The candidate that looks most like `key`, if one looks like it at all.
pub(crate) fn nearest<'a>(key: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if key.len() > LONGEST {
        return None;
    }
    let allowed = (key.chars().count() / 3).max(1);
    candidates
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (damerau_levenshtein(key, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}
