//! The settings as a file, with where each comes from. What it prints can be read again.

use std::collections::BTreeMap;

use super::field::{Field, fields};
use super::layers::{Loaded, Origin};

/// The file.
pub(crate) fn toml(loaded: &Loaded) -> String {
    let mut tables: BTreeMap<usize, (String, Vec<String>)> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for field in fields() {
        let (table, name) = field.path.split_once('.').unwrap_or(("", &field.path));
        let at = order.iter().position(|known| known == table).unwrap_or_else(|| {
            order.push(table.to_owned());
            order.len() - 1
        });
        let entry = tables.entry(at).or_insert_with(|| (table.to_owned(), Vec::new()));
        entry.1.push(line(&field, name, loaded));
    }
    let mut text = String::new();
    for (table, lines) in tables.into_values() {
        if !table.is_empty() {
            text.push_str(&format!("\n[{table}]\n"));
        }
        text.push_str(&lines.join("\n"));
        text.push('\n');
    }
    text
}

fn line(field: &Field, name: &str, loaded: &Loaded) -> String {
    let origin = loaded.origins.get(&field.path).unwrap_or(&Origin::Default);
    let meaning = field.meaning;
    match field.get(&loaded.settings) {
        Some(_) if field.is_secret => {
            format!("# {name} is set and not shown  # {origin}; {meaning}")
        }
        Some(value) => format!("{name} = {value}  # {origin}; {meaning}"),
        None => format!("# {name} is not set  # {meaning}"),
    }
}
