//! Command lines as tables: one row for each option has its value, its help text and its parser.

use std::ffi::OsStr;

use lexopt::prelude::*;

use crate::{Error, shorten};

/// An option, whose value goes into a `T`.
pub(crate) struct Opt<T> {
    /// Name and value: `rate RATE`. A value in brackets may be left out; a flag has none.
    usage: &'static str,
    doc: &'static str,
    /// Whether the option may be given again.
    repeats: bool,
    set: fn(&mut T, &str) -> Result<(), Error>,
}

/// A command: its options, and at most one operand.
pub(crate) struct Command<T: 'static> {
    pub(crate) name: &'static str,
    /// Beginning of the help text.
    pub(crate) head: &'static str,
    pub(crate) operand: fn(&mut T) -> &mut Option<String>,
    pub(crate) options: Vec<Opt<T>>,
}

impl<T> Opt<T> {
    pub(crate) fn new(usage: &'static str, doc: &'static str, set: fn(&mut T, &str) -> Result<(), Error>) -> Self {
        Opt { usage, doc, repeats: false, set }
    }

    /// Makes an option that may be given again.
    pub(crate) fn repeated(usage: &'static str, doc: &'static str, set: fn(&mut T, &str) -> Result<(), Error>) -> Self {
        Opt { repeats: true, ..Opt::new(usage, doc, set) }
    }

    /// Name, and the value's placeholder.
    fn parts(&self) -> (&'static str, &'static str) {
        self.usage.split_once(' ').unwrap_or((self.usage, ""))
    }
}

impl<T> Command<T> {
    /// Reads a command line into `values`. Returns false if it asks for help, which is then printed.
    pub(crate) fn read(&self, arguments: lexopt::Parser, values: &mut T) -> Result<bool, Error> {
        self.read_more(arguments, values, &mut Vec::new())
    }

    /// Reads further arguments after those in which the options `given` occurred.
    pub(crate) fn read_more(
        &self,
        mut arguments: lexopt::Parser,
        values: &mut T,
        given: &mut Vec<&'static str>,
    ) -> Result<bool, Error> {
        while let Some(argument) = arguments.next()? {
            let name = match argument {
                Long("help") | Short('h') => {
                    print!("{}", self.help());
                    return Ok(false);
                }
                Long(name) => name.to_owned(),
                Value(operand) if (self.operand)(values).is_none() => {
                    *(self.operand)(values) = Some(operand.string()?);
                    continue;
                }
                other => return Err(other.unexpected().into()),
            };
            let option = self.options.iter().find(|option| option.parts().0 == name).ok_or_else(|| {
                Error::setup(format!("unknown option --{}; see aqumend {} --help", shorten(&name), self.name))
            })?;
            let (name, placeholder) = option.parts();
            if !option.repeats && given.contains(&name) {
                return Err(Error::setup(format!("--{name} is given twice")));
            }
            given.push(name);
            let value = match placeholder {
                "" => String::new(),
                optional if optional.starts_with('[') && optional.ends_with(']') => optional_value(&mut arguments)?,
                _ => arguments.value()?.string()?,
            };
            (option.set)(values, &value)?;
        }
        Ok(true)
    }

    fn help(&self) -> String {
        let rows = self.options.iter().map(|Opt { usage, doc, .. }| format!("  --{usage:<17} {doc}\n"));
        format!("{}\n{}", self.head, rows.collect::<String>())
    }
}

/// Value that may be left out: the next argument belongs to it only if it is a list of `NAME=VALUE`.
fn optional_value(arguments: &mut lexopt::Parser) -> Result<String, Error> {
    let is_list = |next: &OsStr| next.to_str().is_some_and(|next| next.contains('=') && !next.starts_with('-'));
    let value = match arguments.optional_value() {
        Some(value) => Some(value),
        None => arguments.try_raw_args().and_then(|mut raw| raw.next_if(is_list)),
    };
    Ok(value.unwrap_or_default().string()?)
}

/// Stores the value of an option.
pub(crate) fn store<V>(place: &mut V, value: V) -> Result<(), Error> {
    *place = value;
    Ok(())
}

/// Parses the whole number `value` of `option`.
pub(crate) fn whole_number<V: std::str::FromStr>(option: &str, value: &str) -> Result<V, Error> {
    value.parse().map_err(|_| Error::setup(format!("--{option} {}: must be a whole number from 0 on", shorten(value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Values {
        file: Option<String>,
        flag: bool,
        number: u32,
        words: Vec<String>,
        range: Option<String>,
    }

    fn read(line: &[&str]) -> Result<Option<Values>, String> {
        let command = Command {
            name: "test",
            head: "aqumend test",
            operand: |values: &mut Values| &mut values.file,
            options: vec![
                Opt::new("flag", "a flag", |values, _| store(&mut values.flag, true)),
                Opt::new("number N", "a number", |values, n| store(&mut values.number, whole_number("number", n)?)),
                Opt::repeated("word WORD", "a word", |values, word| {
                    values.words.push(word.into());
                    Ok(())
                }),
                Opt::new("range [RANGE]", "a range", |values, range| store(&mut values.range, Some(range.into()))),
            ],
        };
        let mut values = Values::default();
        let read = command.read(lexopt::Parser::from_args(line), &mut values).map_err(|error| error.to_string())?;
        Ok(read.then_some(values))
    }

    #[test]
    fn options_and_operand_are_read_in_any_order() {
        let line = ["--word", "a", "one", "--flag", "--number=7", "--word=b", "--range", "low=1"];
        let expected = Values {
            file: Some("one".into()),
            flag: true,
            number: 7,
            words: vec!["a".into(), "b".into()],
            range: Some("low=1".into()),
        };
        assert_eq!(read(&line), Ok(Some(expected)));
        let bare = read(&["--range", "one"]).unwrap().unwrap();
        assert_eq!((bare.range.as_deref(), bare.file.as_deref()), (Some(""), Some("one")));
        assert_eq!((read(&["one", "--help"]), read(&["-h"])), (Ok(None), Ok(None)));
    }

    #[test]
    fn invalid_arguments_are_refused_by_name() {
        let error = |line: &[&str]| read(line).unwrap_err();
        assert_eq!(error(&["--falg"]), "unknown option --falg; see aqumend test --help");
        assert_eq!(error(&["--flag", "--flag"]), "--flag is given twice");
        assert_eq!(error(&["--number", "-1"]), "--number -1: must be a whole number from 0 on");
        assert_eq!(error(&["one", "two"]), "unexpected argument \"two\"; see aqumend --help");
        assert!(error(&["-x"]).contains("-x") && error(&["--word"]).contains("--word"));
        assert!(error(&["--flag=7"]).contains("--flag"));
        let long = "word ".repeat(1000);
        assert!([&["one", &long][..], &["--number", &long]].map(error).iter().all(|error| error.len() < 150));
    }
}
