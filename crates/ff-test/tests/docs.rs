//! Pages made by the code are what the code says. `FF_UPDATE_DOCS=1` writes them anew.

use std::path::Path;

use ff_test::docs::{errors, state_table};

fn check(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("FF_UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).expect("the page is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/reference/{name} is out of date; \
         FF_UPDATE_DOCS=1 cargo test -p ff-test --test docs writes it anew"
    );
}

#[test]
fn the_state_table_is_the_machines() {
    check("state-table.md", &state_table::page());
}

#[test]
fn the_error_codes_are_the_tables() {
    check("errors.md", &errors::page());
}

#[test]
fn the_description_of_the_api_is_the_servers() {
    let description = ff_server::openapi().to_pretty_json().expect("it can be written");
    check("openapi.json", &format!("{description}\n"));
}
