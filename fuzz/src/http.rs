//! HTTP requests of clients: queries, the last event's id, and the headers that the guard looks at.

use weft_control::Since;
use weft_hub::query;
use weft_metrics::Guard;
use weft_metrics::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};

/// The first line is a query, the second an event's id, and the others are headers.
///
/// # Panics
/// When a page of another site is let in, or an id leads somewhere else.
pub fn http_query(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut text = || lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let (query, id) = (text(), text());
    if let Ok(page) = query::processes(query) {
        assert!((1..=4096).contains(&page.items_max()));
    }
    if let Ok(filter) = query::events(query, Some(id)) {
        assert!(!filter.past_only, "a stream has no end");
        assert!(filter.kinds.iter().chain(&filter.sources).all(|item| !item.is_empty()));
        if let Since::After { incarnation, sequence } = filter.from {
            let again = format!("{:016x}-{sequence}", incarnation.0);
            assert_eq!(query::events(query, Some(&again)).as_ref(), Ok(&filter));
        }
    }
    let mut headers = HeaderMap::new();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value.get(1..).unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    if Guard::loopback().refuses(&headers).is_none() {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).expect("it was asked by a name");
        let is_address = host.chars().all(|char| char.is_ascii_hexdigit() || "[]:.".contains(char));
        assert!(is_address || host.to_ascii_lowercase().starts_with("localhost"), "{host}");
        let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        assert!(
            origin.is_none_or(|origin| origin.to_ascii_lowercase().ends_with(&host.to_ascii_lowercase()))
        );
    }
}
