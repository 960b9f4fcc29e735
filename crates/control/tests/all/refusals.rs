//! Lines that are none, and what is said of them.

use serde_json::json;
use weft_control::{ErrorCode, Event, ReplyLine, RequestLine};

#[test]
fn lines_that_are_no_requests_are_refused_by_kind() {
    for (line, code, id) in [
        (&b"\xff\xfe"[..], ErrorCode::InvalidUtf8, None),
        (b"{", ErrorCode::Malformed, None),
        (b"[1]", ErrorCode::Malformed, None),
        (b"{\"id\":7,\"request\":{\"type\":\"hello\"}}", ErrorCode::Malformed, Some(7)),
        (b"{\"v\":1,\"request\":{\"type\":\"hello\"}}", ErrorCode::Malformed, None),
        (b"{\"v\":1,\"id\":7,\"request\":\"hello\"}", ErrorCode::Malformed, Some(7)),
        (b"{\"v\":2,\"id\":7,\"request\":{\"type\":\"new\"}}", ErrorCode::UnknownVersion, Some(7)),
        (b"{\"v\":1,\"id\":7,\"request\":{\"type\":\"new\"}}", ErrorCode::UnknownRequest, Some(7)),
        (b"{\"v\":1,\"id\":7,\"request\":{\"type\":\"cancel\"}}", ErrorCode::InvalidRequest, Some(7)),
    ] {
        let bad = RequestLine::parse(line).unwrap_err();
        assert_eq!((bad.error.code, bad.id), (code, id), "{}", String::from_utf8_lossy(line));
    }
    let deep = "[".repeat(100_000);
    assert_eq!(RequestLine::parse(deep.as_bytes()).unwrap_err().error.code, ErrorCode::Malformed);
}

#[test]
fn an_invalid_field_is_named_in_the_error() {
    for (request, told) in [
        (r#"{"type":"cancel"}"#, "invalid request `cancel`: missing field `request`"),
        (
            r#"{"type":"cancel","request":"x"}"#,
            "invalid request `cancel`: field `request`: invalid type: string \"x\", expected u64",
        ),
        (
            r#"{"type":"relay","process":"sm","request":{"type":"cancel","request":-1}}"#,
            "invalid request `relay`: field `request`: field `request`: invalid value: integer `-1`, expected u64",
        ),
        (
            r#"{"type":"relay","process":"sm","request":7}"#,
            "invalid request `relay`: field `request`: invalid type: a number, expected an object",
        ),
        (r#"{"type":"vm-migrate","vm":"a"}"#, "invalid request `vm-migrate`: missing field `host`"),
    ] {
        let line = format!("{{\"v\":1,\"id\":7,\"request\":{request}}}");
        let bad = RequestLine::parse(line.as_bytes()).unwrap_err();
        assert_eq!((bad.id, bad.error.message.as_str()), (Some(7), told));
    }
    for (reply, told) in [
        (r#""later":{}"#, "no `answer`, `error`, `event` or `captured`"),
        (r#""answer":{}"#, "missing field `type`"),
        (r#""answer":{"type":"gone"}"#, "unknown variant `gone`, expected one of `done`, `hello`, "),
        (r#""answer":{"type":"metrics","text":4}"#, "field `text`: invalid type: integer `4`"),
        (r#""event":{"area":"sm","event":"quiet"}"#, "missing field `time`"),
    ] {
        let line = format!("{{\"v\":1,\"id\":7,{reply}}}");
        let error = ReplyLine::parse(line.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

#[test]
fn an_event_is_refused_unless_area_and_name_are_known() {
    let good = json!({
        "time": "2026-11-20T13:29:55.012000000Z", "source": "sm", "incarnation": "123456789abcdef0", "sequence": 41,
        "monotonic_ns": 1_234_567_890_u64, "area": "sm", "event": "quiet"
    });
    for (field, wrong) in [("area", "kitchen"), ("area", "agent"), ("event", "link-up")] {
        let mut value = good.clone();
        value[field] = wrong.into();
        let error = Event::parse(&value.to_string()).unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `"), "{error}");
    }
    assert!(Event::parse(&good.to_string()).is_ok());
}

/// Else a door that looks at one of the two and a process that looks at the other would differ.
#[test]
fn a_field_twice_is_refused_wherever_it_stands() {
    for line in [
        &br#"{"v":1,"id":6,"id":7,"request":{"type":"hello"}}"#[..],
        br#"{"v":1,"id":7,"request":{"type":"hello","type":"kill"}}"#,
        br#"{"v":1,"id":7,"request":{"type":"ports","after":{"node":"0x1","port":1,"port":2}}}"#,
    ] {
        let bad = RequestLine::parse(line).unwrap_err();
        assert_eq!((bad.id, bad.error.code), (Some(7), ErrorCode::Malformed), "{}", bad.error);
        assert!(bad.error.message.starts_with("invalid JSON: duplicate field `"), "{}", bad.error);
    }
    let reply = br#"{"v":1,"id":7,"answer":{"type":"done"},"answer":{"type":"done"}}"#;
    assert!(ReplyLine::parse(reply).is_err());
}
