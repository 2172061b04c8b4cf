//! Numbers of things as they are read.

/// `8 clients`, `1 client`.
pub(crate) fn clients(count: impl Into<u64>) -> String {
    let count: u64 = count.into();
    format!("{count} client{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::clients;

    #[test]
    fn one_is_one() {
        assert_eq!(
            [clients(1_u32), clients(2_u32), clients(21_u64)],
            ["1 client", "2 clients", "21 clients"]
        );
    }
}
