//! The session of measured clients against real servers: beside mysql_async, which is asked the same;
//! through every way to log in; and when servers speak unasked.

mod answers;
mod both;
mod logins;
mod requests;
mod unasked;
