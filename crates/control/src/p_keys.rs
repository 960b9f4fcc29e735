//! P_Keys that ports have no room for.

use std::collections::BTreeMap;
use std::fmt;

/// Which ports have no room for all their P_Keys, in one sentence: by GUID, how many are left out.
pub fn p_keys_missing(left_out: &BTreeMap<String, u32>) -> Option<String> {
    let (first, missing) = left_out.iter().next()?;
    let verb = if left_out.len() == 1 { "port has" } else { "ports have" };
    Some(format!(
        "{} {verb} no room for all P_Keys of their partitions, such as {first}, which lacks {missing}; more fit with a \
         higher --p-key-capacity",
        left_out.len()
    ))
}

/// Writes that sentence, if there is one.
pub(crate) fn write_missing(left_out: &BTreeMap<String, u32>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let sentence = p_keys_missing(left_out);
    sentence.iter().try_for_each(|sentence| writeln!(f, "partitions: {sentence}"))
}
