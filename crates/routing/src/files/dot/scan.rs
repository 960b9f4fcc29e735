//! The words of DOT, with their places.

use crate::files::{FileError, FileProblem};

/// A word or sign of DOT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Without quotes.
    pub(super) text: String,
    pub(super) place: TokenPosition,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, bare.
    Word,
    /// A name in quotes: never a keyword.
    Quoted,
    /// One of `{ } [ ] ; , =` and `->`.
    Sign,
    /// The end of the text.
    End,
}

/// Where a token begins, from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenPosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Token {
    /// Something is wrong with it.
    pub(super) fn error(&self, file: &str, problem: FileProblem) -> FileError {
        let TokenPosition { line, column } = self.place;
        FileError { file: file.to_owned(), line, column, text: self.text.clone(), problem: Box::new(problem) }
    }

    /// Whether it is this sign.
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Whether it is this keyword, in any case.
    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is a name.
    pub(super) fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Quoted)
    }
}

/// Takes a text apart.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    file: &'a str,
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    place: TokenPosition,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, rest: text.chars().peekable(), place: TokenPosition { line: 1, column: 1 } }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.place = TokenPosition { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    fn error(&self, place: TokenPosition, text: &str, expected: &'static str) -> FileError {
        let token = Token { kind: Kind::Sign, text: text.to_owned(), place };
        token.error(self.file, FileProblem::Expected(expected))
    }

    /// The next token, behind blanks and comments; [`Kind::End`] at the end.
    pub(super) fn next(&mut self) -> Result<Token, FileError> {
        self.skip()?;
        let place = self.place;
        let token = |kind, text: String| Token { kind, text, place };
        let Some(first) = self.take() else { return Ok(token(Kind::End, String::new())) };
        match first {
            '{' | '}' | '[' | ']' | ';' | ',' | '=' => Ok(token(Kind::Sign, first.into())),
            '-' if self.rest.peek() == Some(&'>') => {
                self.take();
                Ok(token(Kind::Sign, "->".into()))
            }
            '"' => Ok(token(Kind::Quoted, self.quoted(place)?)),
            _ if is_of_word(first) => {
                let mut text = String::from(first);
                while let Some(c) = self.rest.next_if(|c| is_of_word(*c)) {
                    self.place.column += 1;
                    text.push(c);
                }
                Ok(token(Kind::Word, text))
            }
            _ => Err(self.error(place, &first.to_string(), "a name, `->`, `[`, `]`, `=`, `;`, `{` or `}`")),
        }
    }

    /// The rest of a name in quotes: `\"` is a quote, and a line that ends in `\` goes on.
    fn quoted(&mut self, begin: TokenPosition) -> Result<String, FileError> {
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(self.error(begin, "\"", "a quote at the end of the name")),
                Some('"') => return Ok(text),
                Some('\\') if self.rest.peek() == Some(&'\n') => {
                    self.take();
                }
                Some('\\') if self.rest.peek() == Some(&'"') => {
                    self.take();
                    text.push('"');
                }
                Some(c) => text.push(c),
            }
        }
    }

    /// Passes over blanks, `// ...`, `/* ... */`, and lines that begin with `#`.
    fn skip(&mut self) -> Result<(), FileError> {
        loop {
            let place = self.place;
            match self.rest.peek() {
                Some(c) if c.is_whitespace() => {
                    self.take();
                }
                Some('#') if place.column == 1 => self.skip_line(),
                Some('/') => {
                    self.take();
                    match self.take() {
                        Some('/') => self.skip_line(),
                        Some('*') => self.skip_comment(place)?,
                        _ => return Err(self.error(place, "/", "`//` or `/*`")),
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        while self.rest.peek().is_some_and(|c| *c != '\n') {
            self.take();
        }
    }

    fn skip_comment(&mut self, begin: TokenPosition) -> Result<(), FileError> {
        let mut star = false;
        while let Some(c) = self.take() {
            if star && c == '/' {
                return Ok(());
            }
            star = c == '*';
        }
        Err(self.error(begin, "/*", "`*/` at the end of the comment"))
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}
