//! The canned server as clients see it: a raw socket that looks at every packet, and the driver.

mod answers;
mod driver;
mod faults;
mod hostile;
mod raw;
