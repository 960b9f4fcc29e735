//! Text in pictures: escaped for XML, and broken into lines.

/// Text for XML and HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other if other.is_control() && other != '\n' => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// Lines of at most that number of letters, broken at spaces where there are some.
pub(crate) fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let most = letters.max(12);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut letters = word.chars().peekable();
        while letters.peek().is_some() {
            let part: String = letters.by_ref().take(most).collect();
            match lines.last_mut() {
                Some(line) if line.is_empty() => *line = part,
                Some(line) if line.chars().count() + 1 + part.chars().count() <= most => {
                    line.push(' ');
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
    }
    lines
}

/// At most that number of letters.
pub(crate) fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_broken_and_none_is_lost() {
        assert_eq!(wrapped("one two three four five", 13), ["one two three", "four five"]);
        assert_eq!(wrapped(&"x".repeat(30), 12).concat(), "x".repeat(30));
        assert_eq!(wrapped("", 20), [""]);
    }
}
