//! Replaces `${NAME}` and `{NAME}` in SQL and in expected text.

use crate::script::{Comparison, Condition};

/// What is replaced in a whole file.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    values: Vec<(String, String)>,
    /// Written without braces: `__TEST_DIR__`.
    literals: Vec<(&'static str, String)>,
}

impl Variables {
    /// The directories that every file may name.
    pub fn new(test_dir: &str, working_dir: &str) -> Self {
        let values =
            vec![("TEST_DIR".to_owned(), test_dir.to_owned()), ("WORKING_DIR".to_owned(), working_dir.to_owned())];
        let literals = vec![("__TEST_DIR__", test_dir.to_owned()), ("__WORKING_DIRECTORY__", working_dir.to_owned())];
        Self { values, literals }
    }

    /// Defines a variable; `false` when there is one of that name.
    pub fn define(&mut self, name: &str, value: String) -> bool {
        let new = self.values.iter().all(|(known, _)| known != name);
        if new {
            self.values.push((name.to_owned(), value));
        }
        new
    }

    /// The text with all variables replaced.
    pub fn replace(&self, text: &str) -> String {
        let braced = replace_braced(text, self.values.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.literals.iter().fold(braced, |text, (name, value)| text.replace(name, value))
    }
}

/// The loops around a command, outermost first, with their current values.
#[derive(Clone, Debug, Default)]
pub struct Loops(Vec<(String, String)>);

impl Loops {
    /// These loops and one more inside of them.
    pub fn with(&self, variable: &str, value: &str) -> Self {
        // `foreach a,b x,y` sets two variables; the parser made sure that the counts agree
        let pairs = variable.split(',').zip(value.split(','));
        let one = std::iter::once((variable, value));
        let added: Vec<(&str, &str)> = if variable.contains(',') { pairs.collect() } else { one.collect() };
        let added = added.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(self.0.iter().cloned().chain(added).collect())
    }

    /// The text with all loop variables replaced.
    pub fn replace(&self, text: &str) -> String {
        replace_braced(text, self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Whether a command with these conditions is to be run; an error when a condition names no loop or compares no numbers.
    pub fn admit(&self, conditions: &[Condition]) -> Result<bool, String> {
        for condition in conditions {
            let name = &condition.variable;
            let (_, value) =
                self.0.iter().rfind(|(known, _)| known == name).ok_or_else(|| format!("{name} is no loop variable"))?;
            if holds(condition, value)? == condition.skip {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `i=1, t=integer`; empty outside of loops.
    pub fn describe(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    }
}

fn holds(condition: &Condition, value: &str) -> Result<bool, String> {
    let number = |text: &str| text.parse::<i64>().map_err(|_| format!("{text:?} is no number"));
    let numbers = || Ok::<_, String>((number(value)?, number(&condition.value)?));
    Ok(match condition.comparison {
        Comparison::Equal => value == condition.value,
        Comparison::NotEqual => value != condition.value,
        Comparison::Less => numbers().map(|(left, right)| left < right)?,
        Comparison::LessOrEqual => numbers().map(|(left, right)| left <= right)?,
        Comparison::Greater => numbers().map(|(left, right)| left > right)?,
        Comparison::GreaterOrEqual => numbers().map(|(left, right)| left >= right)?,
    })
}

fn replace_braced<'a>(text: &str, values: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    values.fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("${{{name}}}"), value).replace(&format!("{{{name}}}"), value)
    })
}
