//! The verbs of the program against private servers, and the commands of the docs.

mod common;
mod docs;
mod reload;
mod run;
mod sandbox;
mod sysbench;
