//! Conversions between integers that stop at the largest value.

/// Integers that others are turned into.
pub trait Saturating<N>: Sized {
    /// Returns the same number, or the largest one if it does not fit. For numbers that are not negative.
    fn saturating(n: N) -> Self;
}

macro_rules! saturating {
    ($($integer:ty),*) => {
        $(impl<N> Saturating<N> for $integer
        where
            $integer: TryFrom<N>,
        {
            fn saturating(n: N) -> Self {
                Self::try_from(n).unwrap_or(Self::MAX)
            }
        })*
    };
}

saturating!(u32, u64, usize, i64);

#[cfg(test)]
mod tests {
    use super::Saturating as _;

    #[test]
    fn number_that_does_not_fit_becomes_the_largest_one() {
        assert_eq!((u32::saturating(7_u64), u32::saturating(u64::MAX)), (7, u32::MAX));
        assert_eq!(u64::saturating(u128::from(u64::MAX) + 1), u64::MAX);
    }
}
