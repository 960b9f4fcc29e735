//! Queries of HTTP: everything that a client says besides a path.

use serde::Deserialize;
use weft_control::{EventFilter, Incarnation, NamePage, Since};

/// Which events, as the query says: lists are separated by commas.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    from: From,
    kinds: String,
    sources: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum From {
    #[default]
    Now,
    Start,
}

/// The query is none of these.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid query: {0}")]
pub struct QueryError(#[from] serde_urlencoded::de::Error);

/// Reads which processes `/status` shows.
pub fn processes(query: &str) -> Result<NamePage, QueryError> {
    read(query)
}

/// Reads which events `/events` shows, and after which one it begins.
pub fn events(query: &str, last_event_id: Option<&str>) -> Result<EventFilter, QueryError> {
    let wanted: Wanted = read(query)?;
    let from = last_event_id.and_then(after).unwrap_or(match wanted.from {
        From::Now => Since::Now,
        From::Start => Since::Start,
    });
    let list = |text: &str| text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
    let (kinds, sources) = (list(&wanted.kinds), list(&wanted.sources));
    Ok(EventFilter { from, kinds, sources, past_only: false })
}

fn read<T: for<'a> Deserialize<'a>>(query: &str) -> Result<T, QueryError> {
    Ok(serde_urlencoded::from_str(query)?)
}

/// Reads the `id` of the last event that a client has seen.
fn after(id: &str) -> Option<Since> {
    let (incarnation, place) = id.split_once('-')?;
    let incarnation = Incarnation(u64::from_str_radix(incarnation, 16).ok()?);
    Some(Since::After { incarnation, sequence: place.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_filter_is_read_from_a_query() {
        let filter = events("from=start&kinds=link-up,,link-down&sources=sm", None).expect("a query");
        assert_eq!((filter.from, filter.past_only), (Since::Start, false));
        assert_eq!(
            (filter.kinds, filter.sources),
            (vec!["link-up".to_owned(), "link-down".into()], vec!["sm".into()])
        );
        let filter = events("from=start", Some("00ff-7")).expect("a query");
        assert_eq!(
            filter.from,
            Since::After { incarnation: Incarnation(255), sequence: 7 },
            "an id goes before"
        );
        assert_eq!(events("", Some("no id")).expect("a query").from, Since::Now);
        assert!(
            events("from=yesterday", None)
                .is_err_and(|error| error.to_string().starts_with("invalid query: "))
        );
    }

    #[test]
    fn a_page_of_processes_is_read_from_a_query() {
        let page = processes("limit=3&after=a%201").expect("a query");
        assert_eq!((page.after.as_deref(), page.limit), (Some("a 1"), Some(3)));
        for wrong in ["limit=-1", "limit=many", "limit=1&limit=2"] {
            assert!(processes(wrong).is_err(), "{wrong}");
        }
    }
}
