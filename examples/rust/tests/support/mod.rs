//! Running a program, somewhere, and looking at what it left behind.

mod place;
mod program;
mod readme;

pub(crate) use place::Place;
pub(crate) use program::Program;
pub(crate) use readme::{every_example, says_what_its_readme_says};
