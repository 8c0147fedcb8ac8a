//! The three kinds of opaque bytes that travel between client and worker.

use std::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};

macro_rules! opaque {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Bytes);

        impl $name {
            /// The bytes.
            #[must_use]
            pub fn as_bytes(&self) -> &Bytes {
                &self.0
            }

            /// These bytes as they are.
            pub fn new(bytes: impl Into<Bytes>) -> Self {
                Self(bytes.into())
            }
        }

        impl From<Vec<u8>> for $name {
            fn from(bytes: Vec<u8>) -> Self {
                Self(Bytes::from(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    };
}

macro_rules! numbered {
    ($name:ident) => {
        impl $name {
            /// An id that carries numbers by value.
            #[must_use]
            pub fn of_numbers(numbers: &[u64]) -> Self {
                Self::from(numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
            }

            /// The numbers that [`Self::of_numbers`] wrote.
            ///
            /// # Errors
            /// When the id carries another count of numbers, that is, was not made by the function that reads it.
            pub fn numbers<const N: usize>(&self) -> Result<[u64; N]> {
                let mut numbers = [0; N];
                let (chunks, rest) = self.0.as_chunks::<8>();
                if chunks.len() != N || !rest.is_empty() {
                    return Err(Error::Protocol(format!("{self} is not an id of this function")));
                }
                numbers.iter_mut().zip(chunks).for_each(|(number, bytes)| *number = u64::from_le_bytes(*bytes));
                Ok(numbers)
            }
        }
    };
}

opaque! {
    /// What `process` answers. Every one reaches `combine`, equal ones included, so it may carry a partial result by value.
    StateId
}
opaque! {
    /// What `combine` answers: one output stream each.
    FinalizeId
}
opaque! {
    /// One execution of a function, from `init` to the destructor.
    ExecutionId
}
numbered!(StateId);
numbered!(FinalizeId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_foreign_ids_are_refused() {
        let id = FinalizeId::of_numbers(&[3, u64::MAX]);
        assert_eq!(id.numbers::<2>().unwrap(), [3, u64::MAX]);
        assert!(id.numbers::<1>().is_err() && id.numbers::<3>().is_err());
        assert!(StateId::from(vec![1, 2, 3]).numbers::<0>().is_err());
        assert_eq!(StateId::from(vec![0, 171]).to_string(), "00ab");
    }
}
