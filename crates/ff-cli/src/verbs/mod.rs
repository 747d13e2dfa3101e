//! What a person, or a program, asks of a server or a store. Most verbs are one request and a way to
//! show its reply ([`act::Act`]); the others have a course of their own, each in its file.

mod act;
mod approve;
mod batch;
mod bulk;
mod command;
mod events;
mod filter;
mod fleet;
mod flow;
mod graph;
mod limit;
mod list;
mod logs;
mod manage;
mod pairs;
mod read;
mod signal;
mod submit;
mod wait;
mod watch;

pub(crate) use command::Verb;
