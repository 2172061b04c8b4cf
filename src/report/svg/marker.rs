//! The shapes at measurements, so that labels are told apart without colour.

use std::fmt::Write;

use super::super::chart::Marker;
use super::draw::px;

/// Adds a shape around a point to a path.
pub(crate) fn put(path: &mut String, marker: Marker, x: f64, y: f64) {
    let at = |dx: f64, dy: f64| format!("{},{}", px(x + dx), px(y + dy));
    // Writing into a string cannot fail.
    let _ = match marker {
        Marker::Circle => {
            write!(path, "M{}a3.2,3.2 0 1 0 6.4,0a3.2,3.2 0 1 0 -6.4,0z", at(-3.2, 0.0))
        }
        Marker::Square => write!(path, "M{}h5.6v5.6h-5.6z", at(-2.8, -2.8)),
        Marker::Triangle => write!(path, "M{}l3.6,6.4h-7.2z", at(0.0, -4.0)),
        Marker::Reversed => write!(path, "M{}l3.6,-6.4h-7.2z", at(0.0, 4.0)),
        Marker::Diamond => write!(path, "M{}l3.8,4l-3.8,4l-3.8,-4z", at(0.0, -4.0)),
        Marker::Cross => {
            write!(path, "M{}l6,6M{}l-6,6", at(-3.0, -3.0), at(3.0, -3.0))
        }
        Marker::Plus => write!(path, "M{}h8M{}v8", at(-4.0, 0.0), at(0.0, -4.0)),
        Marker::Hourglass => {
            write!(path, "M{}h6.4l-6.4,6.4h6.4z", at(-3.2, -3.2))
        }
    };
}
