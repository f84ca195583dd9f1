//! What people and programs see of it.

mod command;
mod demo;
mod serve;
