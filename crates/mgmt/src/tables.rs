//! Subnet administration's records: the component mask of a question, and the records of a whole answer (IBA 15.2.1, 15.2.5).

use weft_wire::{SaMad, SaRecord};

/// Where the records begin in an answer.
const HEAD: usize = 56;

/// The component mask of these components; each has a name of its own in the record.
pub fn component_mask<R: SaRecord>(names: &[&str]) -> u64 {
    let bits = R::COMPONENTS.iter().enumerate().filter(|(_, row)| names.contains(&row.name));
    bits.fold(0, |mask, (bit, _)| mask | 1 << bit)
}

/// The records of a table, as far apart as AttributeOffset says, in 8 bytes.
pub fn records<R: SaRecord>(message: &[u8]) -> impl Iterator<Item = R> {
    let mut head = [0; 256];
    let length = message.len().min(HEAD);
    head[..length].copy_from_slice(&message[..length]);
    let step = usize::from(SaMad::attribute_offset.get(&head)) * 8;
    let body = message.get(HEAD..).unwrap_or_default();
    // Records that are shorter than theirs are none; 0 stands where there are none.
    let body = if step < R::LENGTH { &[] } else { body };
    body.chunks_exact(step.max(1)).map(R::from_bytes)
}

#[cfg(test)]
mod tests {
    use weft_wire::{NodeRecord, PathRecord};

    use super::*;

    #[test]
    fn masks_name_the_components_that_are_set() {
        let path = component_mask::<PathRecord>(&["dgid", "sgid", "reversible", "numb_path"]);
        assert_eq!(path, 1 << 2 | 1 << 3 | 1 << 11 | 1 << 12);
        assert_eq!(component_mask::<NodeRecord>(&["port_guid"]), 1 << 8);
    }

    #[test]
    fn records_are_as_far_apart_as_the_answer_says() {
        let mut message = vec![0; HEAD + 3 * 72 + 71];
        let mut head = [0; 256];
        SaMad::attribute_offset.set(&mut head, 9);
        message[..HEAD].copy_from_slice(&head[..HEAD]);
        assert_eq!(records::<PathRecord>(&message).count(), 3);
        // Shorter than a record, and cut off within the head.
        SaMad::attribute_offset.set(&mut head, 7);
        message[..HEAD].copy_from_slice(&head[..HEAD]);
        assert_eq!(records::<PathRecord>(&message).count(), 0);
        assert_eq!(records::<PathRecord>(&message[..20]).count(), 0);
    }
}
