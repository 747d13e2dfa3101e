//! The page of all settings, made of their table.

use super::field::fields;
use super::settings::Settings;

const HEAD: &str = "\
# Settings of `ff server` and `ff dev`

Settings come from a TOML file (`--config FILE`, or `FF_CONFIG`), then from the environment, then from
flags; what comes later wins. `--set FIELD=VALUE` sets any of them. A name of the environment is `FF_`
and the path in capitals; some have a short name too. `ff server --print-config` prints what is in
force, in the form of the file, with where each value comes from.

An unknown field of the file or of `--set`, a value that does not fit and a name given twice stop the
start with exit code 2 and the field's name. Unknown names of the environment that begin with `FF_` give
one warning. A secret is never printed; instead of it a file may be named, `<name>_FILE` in the
environment and `<field>_file` in the file, of which one trailing newline is dropped.

```toml
store = \"sqlite:flowfabric.db\"

[server]
listen_addr = \"127.0.0.1:7171\"

[retention]
success_ms = 3600000
```

| field | in the environment | default | meaning |
| --- | --- | --- | --- |
";

fn page() -> String {
    let defaults = Settings::default();
    let mut page = HEAD.to_owned();
    for field in fields() {
        let names: Vec<String> = field.names().iter().map(|name| format!("`{name}`")).collect();
        let default = field.get(&defaults).map_or("none".to_owned(), |value| format!("`{value}`"));
        let secret = if field.is_secret { "; secret" } else { "" };
        page.push_str(&format!(
            "| `{}` | {} | {default} | {}{secret} |\n",
            field.path,
            names.join(", "),
            field.meaning
        ));
    }
    page
}

#[test]
fn the_page_is_the_tables() {
    crate::pages::check("configuration.md", &page());
}
