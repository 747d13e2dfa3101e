//! Pages of the reference that are made of the code: they say what the code does.
//! `FF_UPDATE_DOCS=1` writes them anew.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;

const HEAD: &str = "\
# The `ff` command

The [guide](../guides/cli.md) tells how to work with it; [settings](configuration.md) of `ff server` and
`ff dev` and the scenarios of [`ff bench`](bench.md) have pages of their own. This page is made of what
`ff COMMAND --help` says.

## Exit codes

| code | means |
| --- | --- |
| 0 | done |
| 1 | a bug, or something unexpected |
| 2 | wrong usage or configuration; nobody said yes |
| 3 | not found |
| 4 | refused by state, or a conflict |
| 5 | invalid input |
| 6 | not authenticated, or forbidden |
| 7 | a limit, a quota or a budget |
| 8 | the store or the server is not to be had now, or a time is over: try again |
| 9 | the execution or flow that was waited for did not succeed |
| 10 | `ff doctor` left violations |

";

/// Compares a page with what the code makes of it.
pub(crate) fn check(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("FF_UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).expect("the page is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/reference/{name} is out of date; FF_UPDATE_DOCS=1 cargo test -p ff-cli writes it anew"
    );
}

fn page() -> String {
    let mut ff = Cli::command().term_width(100);
    ff.build();
    let mut page = HEAD.to_owned();
    page.push_str("## Options of every command\n\n");
    options(&mut page, ff.get_arguments().filter(|argument| argument.is_global_set()));
    for command in ff.get_subcommands().filter(|command| command.get_name() != "help") {
        section(&mut page, command, &format!("ff {}", command.get_name()), 2);
    }
    page
}

fn section(page: &mut String, command: &Command, name: &str, depth: usize) {
    let _ = write!(page, "\n{} `{name}`\n\n", "#".repeat(depth));
    let about = command.get_long_about().or(command.get_about());
    if let Some(about) = about {
        let _ = writeln!(page, "{about}");
    }
    let subcommands: Vec<&Command> =
        command.get_subcommands().filter(|command| command.get_name() != "help").collect();
    if subcommands.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let _ = write!(page, "\n```text\n{}\n```\n\n", usage.trim());
        let own = command.get_arguments().filter(|argument| !argument.is_global_set());
        options(page, own.filter(|argument| argument.get_id() != "help"));
    }
    if let Some(help) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{help}\n```\n");
    }
    for below in subcommands {
        section(page, below, &format!("{name} {}", below.get_name()), depth + 1);
    }
}

fn options<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    for argument in arguments.filter(|argument| !argument.is_hide_set()) {
        let values = argument.get_value_names().unwrap_or_default();
        let takes = argument.get_action().takes_values();
        let value = values.first().filter(|_| takes).map(|it| format!(" <{it}>"));
        let name = match argument.get_long() {
            Some(long) => format!("--{long}{}", value.unwrap_or_default()),
            None => value.unwrap_or_default().trim().to_owned(),
        };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let environment = argument.get_env().map(|it| format!("; also `{}`", it.display()));
        let _ = writeln!(page, "- `{name}`: {help}{}", environment.unwrap_or_default());
    }
}

#[test]
fn the_page_of_commands_is_what_they_say() {
    check("cli.md", &page());
}
