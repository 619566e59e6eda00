//! The closing cell of a notebook: what was measured beside what is stored.

use std::fmt::{Debug, Display};

/// Prints that `measured` is what is stored.
///
/// # Panics
/// When it is not: the cell fails, and the message names both.
pub fn check<T: PartialEq + Display + Debug>(name: &str, measured: T, stored: T) {
    assert!(measured == stored, "{name}: measured {measured}, stored {stored}");
    println!("ok  {name}: {measured}, as stored");
}

/// Prints that `measured` is within `tolerance` of `stored`.
///
/// # Panics
/// When it is not, or is no number.
pub fn check_within(name: &str, measured: f64, stored: f64, tolerance: f64) {
    let off = (measured - stored).abs();
    assert!(off <= tolerance, "{name}: measured {measured:.4}, stored {stored:.4}, allowed to differ by {tolerance:?}");
    println!("ok  {name}: {measured:.2}, stored {stored:.2} (within {tolerance:?})");
}

/// Prints that a statement holds.
///
/// # Panics
/// When it does not.
pub fn check_that(statement: &str, holds: bool) {
    assert!(holds, "does not hold: {statement}");
    println!("ok  {statement}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agrees_passes() {
        check("tokens", 3, 3);
        check_within("loss", 4.38, 4.4, 0.05);
        check_that("1 is less than 2", 1 < 2);
    }

    #[test]
    #[should_panic(expected = "loss: measured 4.3800, stored 4.4400, allowed to differ by 0.05")]
    fn what_differs_fails_and_names_both() {
        check_within("loss", 4.38, 4.44, 0.05);
    }

    #[test]
    #[should_panic(expected = "loss: measured NaN")]
    fn no_number_is_within_anything() {
        check_within("loss", f64::NAN, 4.44, 0.05);
    }

    #[test]
    #[should_panic(expected = "tokens: measured 3, stored 4")]
    fn an_exact_check_is_exact() {
        check("tokens", 3, 4);
    }
}
