//! Names that someone who mistyped one may have meant.

const SUGGESTIONS: usize = 3;

/// The nearest of the names, nearest first.
pub(crate) fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let reach = wanted.chars().count() / 3 + 1;
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = distance(&wanted, &lower);
            let contained = wanted.len() >= 3 && (lower.contains(&wanted) || wanted.contains(&lower));
            (distance <= reach || contained).then_some((distance, name))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(SUGGESTIONS).map(|(_, name)| name.to_owned()).collect()
}

/// Insertions, deletions and replacements between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, x) in a.chars().enumerate() {
        let mut left = line + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.windows(2)) {
            let [diagonal, up] = above else { continue };
            left = (diagonal + usize::from(x != *y)).min(up + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, steps) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("same", "same", 0)]
        {
            assert_eq!(distance(a, b), steps, "{a} {b}");
        }
    }

    #[test]
    fn near_names_come_first_and_far_ones_not_at_all() {
        let names = ["sum_all_columns", "sum_all_column", "quantiles", "kmeans", "sum"];
        assert_eq!(near("sum_all_colums", names.into_iter()), ["sum_all_column", "sum_all_columns", "sum"]);
        assert_eq!(near("KMEANS", names.into_iter()), ["kmeans"]);
        assert!(near("zzz", names.into_iter()).is_empty());
    }
}
