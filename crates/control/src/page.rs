//! Parts of long lists.

use serde::{Deserialize, Serialize};
use weft_wire::PortNum;

use crate::agent::PortEnd;
use crate::{HexGuid, PAGE_ITEMS_MAX};

/// A part of a long list. Lists are ordered by GUID and port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Page {
    /// The last item of the page before; without it the list begins.
    pub after: Option<PortEnd>,
    /// How many items at most: 1 to 4096.
    pub limit: Option<u32>,
}

impl Page {
    /// How many items the page may hold.
    pub fn items_max(&self) -> usize {
        self.limit.unwrap_or(PAGE_ITEMS_MAX).clamp(1, PAGE_ITEMS_MAX) as usize
    }

    /// Cuts the page out of an ordered list; also tells whether more follows.
    pub fn cut<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        end_of: impl Fn(&T) -> PortEnd,
    ) -> (Vec<T>, bool) {
        let mut items = items.into_iter().skip_while(|item| Some(end_of(item)) <= self.after).peekable();
        let page = items.by_ref().take(self.items_max()).collect();
        (page, items.peek().is_some())
    }
}

impl PortEnd {
    /// A whole node stands in lists as its port 0.
    pub fn of_node(node: HexGuid) -> Self {
        Self { node, port: PortNum::ZERO }
    }
}

/// A part of the list of processes, which is ordered by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NamePage {
    /// The last name of the page before; without it the list begins.
    pub after: Option<String>,
    /// How many items at most: 1 to 4096.
    pub limit: Option<u32>,
}

impl NamePage {
    /// How many items the page may hold.
    pub fn items_max(&self) -> usize {
        self.limit.unwrap_or(PAGE_ITEMS_MAX).clamp(1, PAGE_ITEMS_MAX) as usize
    }
}

/// A place in what the hub keeps of the past: a line, and how many of its bytes are known. Lines are numbered for as long as the hub
/// lives; older ones go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PastPlace {
    /// The line's number; one that is gone stands for the oldest.
    pub line: u64,
    /// Bytes of it that come before.
    pub offset: u64,
}

#[cfg(test)]
mod tests {
    use weft_wire::Guid;

    use super::*;

    #[test]
    fn pages_hold_everything_once() {
        let end = |node, port| PortEnd { node: HexGuid(Guid(node)), port: PortNum(port) };
        let all: Vec<PortEnd> = (1..=5).flat_map(|node| (0..3).map(move |port| end(node, port))).collect();
        for limit in 1..=20 {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = Page { after, limit: Some(limit) };
                let (items, more) = page.cut(all.iter().copied(), |end| *end);
                assert!(items.len() <= limit as usize);
                seen.extend(items);
                after = seen.last().copied();
                if !more {
                    break;
                }
            }
            assert_eq!(seen, all, "pages of {limit}");
        }
        assert_eq!(Page { after: None, limit: Some(0) }.items_max(), 1);
        assert_eq!(Page { after: None, limit: Some(u32::MAX) }.items_max(), PAGE_ITEMS_MAX as usize);
    }
}
