//! Numbers of things as they are read.

/// `8 clients`, `1 client`.
pub(crate) fn clients(count: u32) -> String {
    format!("{count} client{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::clients;

    #[test]
    fn one_is_one() {
        assert_eq!([clients(1), clients(2), clients(21)], ["1 client", "2 clients", "21 clients"]);
    }
}
