//! Reading a condition: a few tokens and five levels of binding.

use serde_json::Value;

use super::{Comparison, Expression, Reference};

/// The error for text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct InvalidCondition {
    /// Where in the text it stopped making sense, in characters.
    pub offset: usize,
    what: String,
}

/// Parentheses and negations deeper than this are refused instead of using up the stack.
const DEEPEST: usize = 64;
/// A condition is a line, not a program.
const LONGEST: usize = 4096;

pub(super) fn parse(text: &str) -> Result<Expression, InvalidCondition> {
    if text.len() > LONGEST {
        return Err(InvalidCondition { offset: 0, what: format!("it is longer than {LONGEST} bytes") });
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let expression = parser.either()?;
    match parser.peek() {
        Token::End => Ok(expression),
        other => Err(parser.fault(format!("{} is not expected here", other.shown()))),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Literal(Value),
    Word(String),
    Compare(Comparison),
    And,
    Or,
    Not,
    Open,
    Close,
    End,
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Token::Literal(value) => format!("`{value}`"),
            Token::Word(word) => format!("`{word}`"),
            Token::Compare(_) => "a comparison".to_owned(),
            Token::And => "`&&`".to_owned(),
            Token::Or => "`||`".to_owned(),
            Token::Not => "`!`".to_owned(),
            Token::Open => "`(`".to_owned(),
            Token::Close => "`)`".to_owned(),
            Token::End => "the end".to_owned(),
        }
    }
}

/// The signs, longer ones first.
const SIGNS: [(&str, Token); 11] = [
    ("==", Token::Compare(Comparison::Equal)),
    ("!=", Token::Compare(Comparison::Unequal)),
    ("<=", Token::Compare(Comparison::AtMost)),
    (">=", Token::Compare(Comparison::AtLeast)),
    ("&&", Token::And),
    ("||", Token::Or),
    ("<", Token::Compare(Comparison::Less)),
    (">", Token::Compare(Comparison::Greater)),
    ("!", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, InvalidCondition> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        let offset = text[..text.len() - rest.len()].chars().count();
        let Some(first) = rest.chars().next() else {
            found.push((offset, Token::End));
            return Ok(found);
        };
        let fault = |what: String| InvalidCondition { offset, what };
        let (token, length) =
            if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
                (token.clone(), sign.len())
            } else if first == '\'' || first == '"' {
                string(rest, first).map_err(fault)?
            } else if Reference::may_contain(first) || first == '+' {
                word(rest)
            } else {
                return Err(fault(sign_fault(first)));
            };
        found.push((offset, token));
        rest = &rest[length..];
    }
}

fn sign_fault(sign: char) -> String {
    match sign {
        '=' => "`=` is not a comparison; write `==`".to_owned(),
        '&' => "`&` is not known; write `&&`".to_owned(),
        '|' => "`|` is not known; write `||`".to_owned(),
        '$' => "values are named without `$`: `input.tag`, `collect.exit`".to_owned(),
        other => format!("`{}` is not expected here", other.escape_debug()),
    }
}

/// A text between quotes; a backslash takes the next character as it is.
fn string(rest: &str, quote: char) -> Result<(Token, usize), String> {
    let (mut text, mut chars) = (String::new(), rest.char_indices().skip(1));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, next)) => text.push(next),
                None => break,
            },
            c if c == quote => return Ok((Token::Literal(text.into()), at + c.len_utf8())),
            c => text.push(c),
        }
    }
    Err("the closing quote is missing".to_owned())
}

/// A number, `true`, `false`, `null`, or the name of a value.
fn word(rest: &str) -> (Token, usize) {
    let is_part = |c: char| Reference::may_contain(c) || c == '+';
    let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
    let token = match word {
        "true" => Token::Literal(true.into()),
        "false" => Token::Literal(false.into()),
        "null" => Token::Literal(Value::Null),
        // The grammar of JSON decides what is a number.
        word => match serde_json::from_str::<serde_json::Number>(word) {
            Ok(number) => Token::Literal(number.into()),
            Err(_) => Token::Word(word.to_owned()),
        },
    };
    (token, word.len())
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is the end, and nothing goes past it.
        &self.tokens[self.next.min(self.tokens.len() - 1)].1
    }

    fn fault(&self, what: String) -> InvalidCondition {
        InvalidCondition { offset: self.tokens[self.next.min(self.tokens.len() - 1)].0, what }
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        self.next += usize::from(found);
        found
    }

    fn either(&mut self) -> Result<Expression, InvalidCondition> {
        let mut left = self.both()?;
        while self.take(&Token::Or) {
            left = Expression::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression, InvalidCondition> {
        let mut left = self.comparison()?;
        while self.take(&Token::And) {
            left = Expression::And(Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expression, InvalidCondition> {
        let left = self.single()?;
        let Token::Compare(comparison) = *self.peek() else { return Ok(left) };
        self.next += 1;
        let right = self.single()?;
        if let Token::Compare(_) = self.peek() {
            return Err(self.fault("one comparison does not follow another; join them with `&&`".to_owned()));
        }
        Ok(Expression::Compare(Box::new(left), comparison, Box::new(right)))
    }

    fn single(&mut self) -> Result<Expression, InvalidCondition> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.fault("it is nested too deeply".to_owned()));
        }
        let expression = match self.peek().clone() {
            Token::Not => {
                self.next += 1;
                Expression::Not(Box::new(self.single()?))
            }
            Token::Open => {
                self.next += 1;
                let inner = self.either()?;
                self.close()?;
                inner
            }
            Token::Literal(value) => {
                self.next += 1;
                Expression::Literal(value)
            }
            Token::Word(word) => self.named(&word)?,
            other => return Err(self.fault(format!("a value is expected here, not {}", other.shown()))),
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn close(&mut self) -> Result<(), InvalidCondition> {
        if self.take(&Token::Close) { Ok(()) } else { Err(self.fault("a `)` is missing here".to_owned())) }
    }

    fn named(&mut self, word: &str) -> Result<Expression, InvalidCondition> {
        let called = matches!(self.tokens.get(self.next + 1), Some((_, Token::Open)));
        if called && word == "exists" {
            self.next += 2;
            let Token::Word(inner) = self.peek().clone() else {
                return Err(self.fault("`exists` takes the name of a value".to_owned()));
            };
            let reference = self.reference(&inner)?;
            self.close()?;
            return Ok(Expression::Exists(reference));
        }
        if called {
            return Err(self.fault(format!("`{word}` is no function; there is only `exists`")));
        }
        self.reference(word).map(Expression::Reference)
    }

    fn reference(&mut self, word: &str) -> Result<Reference, InvalidCondition> {
        let reference = word.parse().map_err(|error| self.fault(format!("{error}")))?;
        self.next += 1;
        Ok(reference)
    }
}
