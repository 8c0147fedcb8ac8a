//! Means and products of deviations, which parts of the input give and which add up, and the solution of the normal equations.
//!
//! Deviations from the means do not cancel the way that plain sums of squares do when values lie far from zero.

use std::cmp::Ordering;

/// A column whose part that the others do not explain is this small a share of it counts as explained.
const DEPENDENT: f64 = 1e-12;

/// The moments of rows of `width` values.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    rows: u64,
    means: Vec<f64>,
    /// Sums of products of deviations, `width` by `width`, of which the lower triangle is kept.
    products: Vec<Vec<f64>>,
}

impl Moments {
    pub(super) fn new(width: usize) -> Self {
        Self { rows: 0, means: vec![0.0; width], products: (1..=width).map(|size| vec![0.0; size]).collect() }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn add(&mut self, values: &[f64]) {
        let one = Self {
            rows: 1,
            means: values.to_vec(),
            products: (1..=values.len()).map(|size| vec![0.0; size]).collect(),
        };
        self.merge(&one);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^53")]
    pub(super) fn merge(&mut self, other: &Self) {
        if other.rows == 0 {
            return;
        }
        let (own, others) = (self.rows as f64, other.rows as f64);
        let total = own + others;
        let differences: Vec<f64> = self.means.iter().zip(&other.means).map(|(own, other)| other - own).collect();
        for ((row, others_row), first) in self.products.iter_mut().zip(&other.products).zip(&differences) {
            for ((product, others_product), second) in row.iter_mut().zip(others_row).zip(&differences) {
                *product += others_product + first * second * own * others / total;
            }
        }
        for (mean, difference) in self.means.iter_mut().zip(&differences) {
            *mean += difference * others / total;
        }
        self.rows += other.rows;
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let values = self.means.iter().chain(self.products.iter().flatten());
        self.rows.to_le_bytes().into_iter().chain(values.flat_map(|value| value.to_le_bytes())).collect()
    }

    pub(super) fn from_bytes(width: usize, bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter();
        let mut moments = Self::new(width);
        moments.rows = u64::from_le_bytes(*words.next()?);
        for value in moments.means.iter_mut().chain(moments.products.iter_mut().flatten()) {
            *value = f64::from_le_bytes(*words.next()?);
        }
        (rest.is_empty() && words.next().is_none()).then_some(moments)
    }

    /// The constant and the factors of all values but the last, which they explain. An error is the place of a value that follows from
    /// those before it.
    pub(super) fn solve(&self) -> Result<Vec<f64>, usize> {
        let features = self.means.len().saturating_sub(1);
        let lower = self.cholesky(features)?;
        let target: &[f64] = self.products.last().map_or(&[], Vec::as_slice);
        let mut forward: Vec<f64> = Vec::with_capacity(features);
        for (row, value) in lower.iter().zip(target) {
            let known: f64 = row.iter().zip(&forward).map(|(factor, value)| factor * value).sum();
            forward.push((value - known) / row.last().copied().unwrap_or(1.0));
        }
        // backward, the transposed factor is read by columns
        let mut factors = vec![0.0; features];
        for place in (0..features).rev() {
            let at = |row: usize| lower.get(row).and_then(|row| row.get(place)).copied().unwrap_or_default();
            let known: f64 = factors.iter().enumerate().skip(place + 1).map(|(row, factor)| at(row) * factor).sum();
            let value = forward.get(place).copied().unwrap_or_default();
            if let Some(factor) = factors.get_mut(place) {
                *factor = (value - known) / at(place);
            }
        }
        let explained: f64 = factors.iter().zip(&self.means).map(|(factor, mean)| factor * mean).sum();
        let constant = self.means.last().copied().unwrap_or_default() - explained;
        Ok(std::iter::once(constant).chain(factors).collect())
    }

    fn cholesky(&self, size: usize) -> Result<Vec<Vec<f64>>, usize> {
        let mut lower: Vec<Vec<f64>> = Vec::with_capacity(size);
        for (place, products) in self.products.iter().take(size).enumerate() {
            let mut row: Vec<f64> = Vec::with_capacity(place + 1);
            for (product, other) in products.iter().zip(&lower) {
                let known: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
                row.push((product - known) / other.last().copied().unwrap_or(1.0));
            }
            let own = products.last().copied().unwrap_or_default();
            let unexplained = own - row.iter().map(|value| value * value).sum::<f64>();
            if unexplained.partial_cmp(&(own * DEPENDENT)) != Some(Ordering::Greater) {
                return Err(place);
            }
            row.push(unexplained.sqrt());
            lower.push(row);
        }
        Ok(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_travel_as_bytes() {
        let rows = [[1.0, 2.0, 9.0], [2.0, 5.0, 1.0], [4.0, 4.0, 4.0], [-1.0, 0.5, 2.0], [0.0, 7.0, 3.0]];
        let of = |rows: &[[f64; 3]]| {
            rows.iter().fold(Moments::new(3), |mut moments, row| {
                moments.add(row);
                moments
            })
        };
        let mut parts = Moments::from_bytes(3, &of(&rows[..2]).to_bytes()).unwrap();
        parts.merge(&of(&[]));
        parts.merge(&of(&rows[2..]));
        let (whole, parts) = (of(&rows).solve().unwrap(), parts.solve().unwrap());
        assert!(whole.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-12), "{whole:?} {parts:?}");
        let bytes = of(&rows).to_bytes();
        assert!(Moments::from_bytes(3, &bytes[1..]).is_none() && Moments::from_bytes(2, &bytes).is_none());
    }
}
