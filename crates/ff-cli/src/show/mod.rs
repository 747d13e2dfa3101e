//! How replies look to a person: tables, ages, colours on a terminal. Programs get the reply itself.

mod age;
mod colour;
mod console;
mod event;
mod fields;
mod table;
mod text;

pub(crate) use age::{Ago, age_of, now_ms, time_of_day};
pub(crate) use colour::state;
pub(crate) use console::Console;
pub(crate) use event::event_line;
pub(crate) use fields::fields;
pub(crate) use table::{Column, table};
pub(crate) use text::{plain, shown};
