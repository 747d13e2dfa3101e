//! Hexadecimal text, written in lower case.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends two digits for each byte.
pub(super) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for half in [byte >> 4, byte & 0xf] {
            text.push(char::from(DIGITS[usize::from(half)]));
        }
    }
}

/// The byte that two digits of either case stand for.
pub(super) fn byte_of_hex(high: u8, low: u8) -> Option<u8> {
    let digit =
        |ascii: u8| char::from(ascii).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_reads_back() {
        for byte in 0..=u8::MAX {
            let mut text = String::new();
            push_hex(&mut text, &[byte]);
            assert_eq!(text, format!("{byte:02x}"));
            for text in [text.to_uppercase(), text] {
                assert_eq!(byte_of_hex(text.as_bytes()[0], text.as_bytes()[1]), Some(byte));
            }
        }
        for (high, low) in [(b'g', b'0'), (b'0', b'+'), (b' ', b'1'), (b'0', 0xff)] {
            assert_eq!(byte_of_hex(high, low), None);
        }
    }
}
