//! Rows with aligned columns. Ids are never cut: they are what is typed next.

use serde_json::Value;

use super::{Ago, age_of, shown, state};

/// A column: its title, the field it shows, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    Text(&'static str, &'static str),
    State(&'static str, &'static str),
    /// A time, as its age.
    Age(&'static str, &'static str),
    /// Milliseconds, as a length of time.
    Length(&'static str, &'static str),
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Text(title, _)
            | Self::State(title, _)
            | Self::Age(title, _)
            | Self::Length(title, _) => title,
        }
    }

    /// The cell of a row, without colour.
    pub(crate) fn cell(self, row: &Value) -> String {
        match self {
            Self::Text(_, field) | Self::State(_, field) => shown(&row[field]),
            Self::Age(_, field) => age_of(&row[field]),
            Self::Length(_, field) => {
                row[field].as_i64().map(|ms| Ago(ms).to_string()).unwrap_or_default()
            }
        }
    }
}

/// The lines of a table, the titles first.
pub(crate) fn table(columns: &[Column], rows: &[Value], colour: bool) -> Vec<String> {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| column.cell(row)).collect()).collect();
    let width = |at: usize| {
        let longest = cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        longest.max(columns[at].title().len())
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let padded = |text: &str, painted: String, at: usize| {
        let spaces = widths[at].saturating_sub(text.chars().count());
        format!("{painted}{}", " ".repeat(spaces))
    };
    let joined = |row: Vec<String>| row.join("  ").trim_end().to_owned();
    let titles = columns.iter().enumerate();
    let titles = titles.map(|(at, column)| padded(column.title(), column.title().to_owned(), at));
    let mut lines = vec![joined(titles.collect())];
    for (row, texts) in rows.iter().zip(&cells) {
        let painted = columns.iter().zip(texts).enumerate().map(|(at, (column, text))| {
            let painted = match column {
                Column::State(_, field) => state(&row[*field], colour),
                _ => text.clone(),
            };
            padded(text, painted, at)
        });
        lines.push(joined(painted.collect()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned_with_and_without_colour() {
        let columns =
            [Column::Text("ID", "id"), Column::State("STATE", "s"), Column::Text("N", "n")];
        let rows = [json!({ "id": "{fp:7}:ä", "s": "completed", "n": 1 }), json!({ "s": "x" })];
        let lines = table(&columns, &rows, false);
        assert_eq!(lines, ["ID        STATE      N", "{fp:7}:ä  completed  1", "          x"]);
        let coloured = table(&columns, &rows, true);
        assert_eq!(coloured[1], "{fp:7}:ä  \u{1b}[32mcompleted\u{1b}[0m  1");
    }
}
