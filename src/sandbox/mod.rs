//! A private throw-away server from a mysqld program.
