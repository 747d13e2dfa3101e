//! Which slot of a cluster a key belongs to.

use ff_core::partition::crc16;

/// How many slots a cluster has.
pub(super) const SLOTS: u16 = 16384;

/// The slot of a key: of what stands in its first braces if that is not nothing, else of all of it.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_server() {
        // As `CLUSTER KEYSLOT` answers.
        let cases: [(&str, u16); 5] = [
            ("", 0),
            ("123456789", 12739),
            ("foo", 12182),
            ("{user1000}.following", 3443),
            ("foo{}{bar}", 8363),
        ];
        for (key, slot) in cases {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn a_tag_decides_alone() {
        let same = [("a{t}b", "t"), ("{t}{u}", "t"), ("{{t}}", "{t"), ("{}t{u}", "{}t{u}")];
        for (key, tag) in same {
            assert_eq!(slot_of(key.as_bytes()), crc16(tag.as_bytes()) % SLOTS, "{key}");
        }
        assert_eq!(slot_of(b"a{t"), crc16(b"a{t") % SLOTS);
    }
}
