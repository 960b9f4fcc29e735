//! Lines of the control protocol, to a process and from it.

use weft_control::{LineDecoder, ReplyLine, RequestLine};

/// The longest line that the decoder takes here: short, so that long ones come often.
const LINE_BYTES_MAX: usize = 512;

/// Takes a stream cut in pieces; the first byte says how long they are.
///
/// # Panics
/// When a line is kept beyond its bound, or what was read and is written again reads differently.
pub fn control(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else { return };
    let mut decoder = LineDecoder::new(LINE_BYTES_MAX);
    for piece in stream.chunks(usize::from(*piece).max(1)) {
        decoder.feed(piece);
        while let Some(line) = decoder.next_line() {
            let Ok(line) = line else { continue };
            assert!(line.len() <= LINE_BYTES_MAX);
            if let Ok(request) = RequestLine::parse(&line) {
                let written = request.to_line();
                assert_eq!(RequestLine::parse(written.trim_end().as_bytes()), Ok(request));
            }
            if let Ok(reply) = ReplyLine::parse(&line) {
                let written = reply.to_line();
                let again = ReplyLine::parse(written.trim_end().as_bytes()).expect("what is written reads");
                assert_eq!(again.to_line(), written);
            }
        }
        assert!(decoder.unfinished() <= LINE_BYTES_MAX + 1);
    }
}
