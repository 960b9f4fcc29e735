//! Options whose value is one of a few words: a word stands for a value of the domain's own type.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word, its line in the help, and its value.
pub(super) type Word<T> = (&'static str, &'static str, T);

/// Takes one of these words.
pub(super) fn choice<T>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let values = words.iter().map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(values).try_map(|given: String| {
        let word = words.iter().find(|(word, ..)| *word == given);
        word.map(|(.., value)| *value).ok_or("it is none of the words")
    })
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn a_word_stands_for_its_value() {
        let parser = choice(&[("few", "Some", 3), ("many", "All", 9)]);
        let number = clap::Arg::new("number").value_parser(parser);
        let parse = |word: &str| {
            let matches = Command::new("test").arg(number.clone()).try_get_matches_from(["test", word]);
            matches.map(|matches| matches.get_one::<i32>("number").copied()).map_err(|error| error.kind())
        };
        assert_eq!((parse("few"), parse("many")), (Ok(Some(3)), Ok(Some(9))));
        assert_eq!(parse("Few"), Err(ErrorKind::InvalidValue));
    }
}
