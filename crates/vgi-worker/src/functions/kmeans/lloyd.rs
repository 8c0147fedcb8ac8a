//! k-means++ and Lloyd's steps, deterministic: the points are sorted first, so nothing depends on how they arrived.

/// Points of equal dimension, one after the other.
pub(super) struct Points {
    dimensions: usize,
    coordinates: Vec<f64>,
}

/// Centres, in the order of their coordinates.
#[derive(Debug, PartialEq)]
pub(super) struct Centroids {
    dimensions: usize,
    coordinates: Vec<f64>,
}

impl Points {
    /// No points; `dimensions` is at least 1.
    pub(super) fn new(dimensions: usize) -> Self {
        Self { dimensions: dimensions.max(1), coordinates: Vec::new() }
    }

    pub(super) fn push(&mut self, point: &[f64]) {
        self.coordinates.extend_from_slice(point);
    }

    fn iter(&self) -> std::slice::ChunksExact<'_, f64> {
        self.coordinates.chunks_exact(self.dimensions)
    }

    /// Sorts the points and answers how many different ones there are.
    pub(super) fn sort(&mut self) -> usize {
        let mut points: Vec<&[f64]> = self.iter().collect();
        points.sort_unstable_by(|a, b| compare(a, b));
        let mut distinct = points.clone();
        distinct.dedup();
        let count = distinct.len();
        self.coordinates = points.concat();
        count
    }

    /// The centres of `count` clusters; there are at least as many different points.
    pub(super) fn cluster(&self, count: usize, iterations: usize, seed: u64) -> Centroids {
        let mut centroids = self.seeds(count, &mut Generator(seed));
        let mut assigned: Vec<usize> = Vec::new();
        for _ in 0..iterations {
            let nearest: Vec<usize> = self.iter().map(|point| centroids.closest(point).0).collect();
            if nearest == assigned {
                break;
            }
            assigned = nearest;
            self.move_to_means(&mut centroids, &assigned);
        }
        centroids.sorted()
    }

    /// k-means++: every next centre is a point, chosen in proportion to its squared distance from the centres so far.
    fn seeds(&self, count: usize, generator: &mut Generator) -> Centroids {
        let mut centroids =
            Centroids { dimensions: self.dimensions, coordinates: Vec::with_capacity(count * self.dimensions) };
        let mut weights = vec![1.0; self.coordinates.len() / self.dimensions];
        for _ in 0..count {
            let Some(chosen) = self.iter().nth(generator.choose(&weights)) else { break };
            for (weight, point) in weights.iter_mut().zip(self.iter()) {
                let distance = squared_distance(point, chosen);
                *weight = if centroids.coordinates.is_empty() { distance } else { distance.min(*weight) };
            }
            centroids.coordinates.extend_from_slice(chosen);
        }
        centroids
    }

    /// A centre without points stays where it is.
    fn move_to_means(&self, centroids: &mut Centroids, assigned: &[usize]) {
        let mut sums = vec![0.0; centroids.coordinates.len()];
        let mut counts = vec![0.0; centroids.coordinates.len() / self.dimensions];
        for (point, cluster) in self.iter().zip(assigned) {
            let sum = sums.iter_mut().skip(cluster * self.dimensions);
            sum.zip(point).for_each(|(sum, coordinate)| *sum += coordinate);
            if let Some(count) = counts.get_mut(*cluster) {
                *count += 1.0;
            }
        }
        let means = sums.chunks_exact(self.dimensions).zip(&counts);
        for (centroid, (sum, count)) in centroids.coordinates.chunks_exact_mut(self.dimensions).zip(means) {
            if *count > 0.0 {
                centroid.iter_mut().zip(sum).for_each(|(coordinate, sum)| *coordinate = sum / count);
            }
        }
    }
}

impl Centroids {
    fn closest(&self, point: &[f64]) -> (usize, f64) {
        let distances = self
            .coordinates
            .chunks_exact(self.dimensions)
            .map(|centroid| squared_distance(point, centroid))
            .enumerate();
        // the first of equally near ones
        distances.fold((0, f64::INFINITY), |best, candidate| if candidate.1 < best.1 { candidate } else { best })
    }

    /// Number of the nearest centre.
    pub(super) fn nearest(&self, point: &[f64]) -> Option<i64> {
        i64::try_from(self.closest(point).0).ok()
    }

    fn sorted(self) -> Self {
        let mut centroids: Vec<&[f64]> = self.coordinates.chunks_exact(self.dimensions).collect();
        centroids.sort_unstable_by(|a, b| compare(a, b));
        Self { dimensions: self.dimensions, coordinates: centroids.concat() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.coordinates.iter().flat_map(|coordinate| coordinate.to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(dimensions: usize, bytes: &[u8]) -> Self {
        let coordinates = bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        Self { dimensions: dimensions.max(1), coordinates }
    }
}

fn compare(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let coordinates = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
    coordinates.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// SplitMix64.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// An index, in proportion to the weights; never one of weight zero.
    fn choose(&mut self, weights: &[f64]) -> usize {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let fraction = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let target = fraction * weights.iter().sum::<f64>();
        let mut passed = 0.0;
        let mut last = 0;
        for (index, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            passed += weight;
            last = index;
            if passed > target {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[[f64; 2]]) -> Points {
        let mut points = Points::new(2);
        for row in rows {
            points.push(row);
        }
        points.sort();
        points
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // the published first outputs for the seed 1234567
        let mut generator = Generator(1_234_567);
        assert_eq!([generator.next(), generator.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn centres_are_the_means_of_their_points() {
        let rows = [[0.0, 0.0], [2.0, 0.0], [1.0, 3.0], [100.0, 1.0], [102.0, 3.0]];
        for seed in 0..20 {
            let centroids = points(&rows).cluster(2, 50, seed);
            assert_eq!(centroids.coordinates, [1.0, 1.0, 101.0, 2.0], "seed {seed}");
        }
    }

    #[test]
    fn as_many_clusters_as_points_are_the_points() {
        let rows = [[5.0, 1.0], [0.0, 0.0], [5.0, 0.0], [0.0, 0.0]];
        let mut all = points(&rows);
        assert_eq!(all.sort(), 3);
        assert_eq!(all.cluster(3, 50, 1).coordinates, [0.0, 0.0, 5.0, 0.0, 5.0, 1.0]);
    }

    #[test]
    fn centres_survive_the_storage() {
        let centroids = points(&[[1.5, -2.0], [0.0, 9.0]]).cluster(2, 1, 3);
        assert_eq!(Centroids::from_bytes(2, &centroids.to_bytes()), centroids);
    }
}
