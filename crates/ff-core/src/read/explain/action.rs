//! Ways to act: a command to paste into a shell, and the route that does the same.

use std::fmt::Write as _;

use crate::id::{FlowId, Namespace};
use crate::limits::PRIORITY_MAX;
use crate::state::Execution;

/// One way to act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub summary: String,
    pub cli: String,
    pub route: String,
}

impl Action {
    pub(super) fn new(
        namespace: &Namespace,
        summary: impl Into<String>,
        line: &Line<'_>,
        method: &str,
        path: &[&str],
    ) -> Self {
        let (cli, route) = (line.of(namespace), route(namespace, method, path));
        Self { summary: summary.into(), cli, route }
    }

    /// A verb on an execution, which is also the last part of its route.
    pub(super) fn on(execution: &Execution, summary: &str, verb: &str) -> Self {
        Self::at(execution, summary, &Line::new(verb), &[verb])
    }

    /// A command about an execution, and what of the execution its route names.
    pub(super) fn at(execution: &Execution, summary: &str, line: &Line<'_>, rest: &[&str]) -> Self {
        let id = execution.id.to_string();
        let path = [&["executions", &id], rest].concat();
        let line = Line { args: [vec![id.clone()], line.args.clone()].concat(), ..line.clone() };
        Self::new(&execution.about.namespace, summary, &line, "POST", &path)
    }

    pub(super) fn revoke(execution: &Execution, summary: &str) -> Self {
        Self::at(execution, summary, &Line::new("revoke"), &["revoke-lease"])
    }

    pub(super) fn cancel(execution: &Execution) -> Self {
        Self::on(execution, "cancel it", "cancel")
    }

    const RAISE_PRIORITY: &str = "raise its priority";

    /// Whether it helps only where others are ahead.
    pub(super) fn is_about_priority(&self) -> bool {
        self.summary == Self::RAISE_PRIORITY
    }

    /// None where there is no higher one.
    pub(super) fn raise_priority(execution: &Execution) -> Option<Self> {
        let id = execution.id.to_string();
        let higher = execution.priority.checked_add(1).filter(|it| *it <= PRIORITY_MAX)?;
        Some(Self::new(
            &execution.about.namespace,
            Self::RAISE_PRIORITY,
            &Line::new("priority").arg(&id).arg(&higher),
            "PUT",
            &["executions", &id, "priority"],
        ))
    }

    pub(super) fn show_flow(execution: &Execution, flow_id: FlowId) -> Self {
        let id = flow_id.to_string();
        Self::new(
            &execution.about.namespace,
            "see what it waits for",
            &Line::new("flow show").arg(&id),
            "GET",
            &["flows", &id, "graph"],
        )
    }

    pub(super) fn start_worker(namespace: &Namespace, summary: String) -> Self {
        Self::new(namespace, summary, &Line::new("worker ls"), "POST", &["workers"])
    }
}

/// A command of `ff` with what is given to it, whatever characters that has.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    verb: &'a str,
    args: Vec<String>,
    options: Vec<String>,
}

impl<'a> Line<'a> {
    pub(super) fn new(verb: &'a str) -> Self {
        Self { verb, args: Vec::new(), options: Vec::new() }
    }

    pub(super) fn arg(mut self, arg: &(impl ToString + ?Sized)) -> Self {
        self.args.push(arg.to_string());
        self
    }

    pub(super) fn flag(mut self, name: &str) -> Self {
        self.options.push(name.to_owned());
        self
    }

    pub(super) fn option(mut self, name: &str, value: &(impl ToString + ?Sized)) -> Self {
        self.options.push(option(name, &value.to_string()));
        self
    }

    /// The line for whoever stands in no namespace: it names its own.
    pub(super) fn of(&self, namespace: &Namespace) -> String {
        let args = self.args.iter().map(|arg| quoted(arg));
        let mut options = self.options.clone();
        if namespace != Namespace::any() {
            options.push(option("--namespace", namespace));
        }
        // What looks like an option is taken for one unless it stands behind all of them.
        let words: Vec<_> = if self.args.iter().any(|arg| arg.starts_with('-')) {
            options.into_iter().chain(["--".to_owned()]).chain(args).collect()
        } else {
            args.chain(options).collect()
        };
        let space = if words.is_empty() { "" } else { " " };
        format!("ff {}{space}{}", self.verb, words.join(" "))
    }
}

fn option(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') && value != "-" { '=' } else { ' ' };
    format!("{name}{between}{}", quoted(value))
}

/// One word of a POSIX shell, in quotes if it needs them.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/@%+=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A method and a path, its parts escaped as a URL wants them.
fn route(namespace: &Namespace, method: &str, path: &[&str]) -> String {
    let mut route = format!("{method} /v1");
    let before: &[&str] = match namespace == Namespace::any() {
        true => &[],
        false => &["namespaces", namespace],
    };
    for part in before.iter().chain(path) {
        route.push('/');
        for byte in part.bytes() {
            match byte {
                b'-' | b'_' | b'.' | b'~' | b':' => route.push(char::from(byte)),
                _ if byte.is_ascii_alphanumeric() => route.push(char::from(byte)),
                _ => {
                    let _ = write!(route, "%{byte:02X}");
                }
            }
        }
    }
    route
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_into_them() {
        for (word, text) in [
            ("mail", "mail"),
            ("tokens=13", "tokens=13"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(rm x)", "'$(rm x)'"),
            ("{fp:7}:1", "'{fp:7}:1'"),
            ("a;b", "'a;b'"),
            ("~", "'~'"),
            ("*", "'*'"),
            ("größe", "'größe'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), text);
        }
    }

    #[test]
    fn what_looks_like_an_option_is_none() {
        let (home, team) = (Namespace::default(), Namespace::new("teama").unwrap());
        for (line, here, there) in [
            (Line::new("worker ls"), "ff worker ls", "ff worker ls --namespace teama"),
            (
                Line::new("lane resume").arg("l"),
                "ff lane resume l",
                "ff lane resume l --namespace teama",
            ),
            (
                Line::new("lane resume").arg("--all"),
                "ff lane resume -- --all",
                "ff lane resume --namespace teama -- --all",
            ),
            (
                Line::new("signal").arg("x").option("--token-file", "-").option("--name", "-go"),
                "ff signal x --token-file - --name=-go",
                "ff signal x --token-file - --name=-go --namespace teama",
            ),
        ] {
            assert_eq!((line.of(&home), line.of(&team)), (here.to_owned(), there.to_owned()));
        }
    }

    #[test]
    fn routes_are_escaped() {
        let (home, team) = (Namespace::default(), Namespace::new("teama").unwrap());
        let path = ["lanes", "a b/it's?", "resume"];
        assert_eq!(route(&home, "POST", &path), "POST /v1/lanes/a%20b%2Fit%27s%3F/resume");
        assert_eq!(
            route(&team, "GET", &["lanes", "größe"]),
            "GET /v1/namespaces/teama/lanes/gr%C3%B6%C3%9Fe"
        );
        assert_eq!(
            route(&home, "GET", &["executions", "{fp:7}:1"]),
            "GET /v1/executions/%7Bfp:7%7D:1"
        );
    }
}
