//! Clusters of rows by their numeric columns.

mod lloyd;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::numeric::{column, doubles, numeric_columns, require_numeric};
use crate::functions::pages;
use crate::ids::{FinalizeId, StateId};
use lloyd::{Centroids, Points};

const NAME: &str = "kmeans";
const CLUSTER: &str = "cluster";
const INPUT: &str = "input";
const CENTROIDS: &str = "centroids";

/// Every row with the number of its cluster: k-means over all numeric columns.
///
/// ```sql
/// SELECT cluster, count(*) FROM example.kmeans((SELECT iata, latitude, longitude FROM airports), 6) GROUP BY cluster;
/// FROM example.kmeans((SELECT x, y FROM points), 3, iterations := 100, seed := 7);
/// ```
///
/// All numeric columns are coordinates, unscaled; the output is every column and `cluster BIGINT`. Starts are chosen by k-means++ with a
/// generator that depends on `seed` alone, then Lloyd's steps run until nothing moves, `iterations` times at most. Clusters are numbered
/// by the first coordinate of their centre. The result does not depend on the order in which rows arrive. A row with a coordinate that
/// is NULL, NaN or infinite has the cluster NULL. The worker holds the input, and its coordinates once more.
#[derive(Debug)]
pub struct Kmeans;

/// Arguments of [`Kmeans`].
#[derive(Debug, Args)]
pub struct KmeansArgs {
    #[arg(doc = "Number of clusters.", range = 1..)]
    k: usize,
    #[arg(doc = "Steps at most.", named, default = 50, range = 1..)]
    iterations: usize,
    #[arg(doc = "Start of the random generator.", named, default = 42)]
    seed: i64,
}

impl BufferingFunction for Kmeans {
    type Args = KmeansArgs;
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "Every row with the number of its cluster: k-means over all numeric columns.")
            .category("statistics")
            .projection_pushdown()
            .example(
                "FROM example.kmeans((FROM (VALUES (1.0), (1.1), (9.0)) t(x)), 2);",
                "Two clusters: 0 holds two rows, 1 holds one.",
            )
    }

    fn bind(&self, ctx: &BindContext<'_, KmeansArgs>) -> Result<Bound> {
        let input = ctx.input_schema();
        require_numeric(NAME, input)?;
        if input.fields().iter().any(|field| field.name().eq_ignore_ascii_case(CLUSTER)) {
            return Err(Error::Input(format!("{NAME}: the input has a column '{CLUSTER}' already; rename it")));
        }
        let fields = input.fields().iter().map(|field| field.as_ref().clone());
        Ok(Bound::new(Schema::new(fields.chain([Field::new(CLUSTER, DataType::Int64, true)]).collect::<Vec<_>>())))
    }

    fn process(&self, _: RecordBatch, ctx: &Context<'_, KmeansArgs>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[ctx.store().append(INPUT, ctx.input_blob().clone())?]))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, KmeansArgs>) -> Result<Vec<FinalizeId>> {
        let positions = ids.iter().map(|id| Ok(id.numbers::<1>()?[0])).collect::<Result<Vec<_>>>()?;
        let columns = numeric_columns(ctx.input_schema());
        let mut points = Points::new(columns.len());
        let mut rows = 0;
        for position in &positions {
            let batch = ctx.store().batch(INPUT, *position)?;
            rows += batch.num_rows();
            for row in Coordinates::of(&batch, &columns)?.rows().flatten() {
                points.push(&row);
            }
        }
        let wanted = ctx.args.k;
        let distinct = points.sort();
        if wanted > distinct {
            return Err(Error::Input(format!(
                "{NAME}: k = {wanted} clusters need as many different points, but the {rows} rows of the input have only {distinct}"
            )));
        }
        let centroids = points.cluster(wanted, ctx.args.iterations, ctx.args.seed.cast_unsigned());
        ctx.store().put(CENTROIDS, centroids.to_bytes())?;
        pages::plan(ctx.store(), &positions)
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, KmeansArgs>) -> Result<Tick<u64>> {
        let Some(page) = pages::page(ctx.store(), id, position)? else { return Ok(Tick::end()) };
        let columns = numeric_columns(ctx.input_schema());
        let centroids = Centroids::from_bytes(columns.len(), &ctx.store().require(CENTROIDS)?);
        let batch = ctx.store().batch(INPUT, page.entry)?;
        let clusters: Int64Array =
            Coordinates::of(&batch, &columns)?.rows().map(|row| row.and_then(|row| centroids.nearest(&row))).collect();
        let with_cluster = batch.columns().iter().cloned().chain([Arc::new(clusters) as ArrayRef]).collect();
        let batch = RecordBatch::try_new(Arc::clone(ctx.output_schema()), with_cluster)?;
        Ok(match page.next {
            Some(next) => Tick::more(batch, next),
            None => Tick::last(batch),
        })
    }
}

/// The coordinates of a batch's rows.
struct Coordinates {
    rows: usize,
    columns: Vec<Float64Array>,
}

impl Coordinates {
    fn of(batch: &RecordBatch, columns: &[usize]) -> Result<Self> {
        let columns = columns.iter().map(|index| doubles(column(batch, *index)?)).collect::<Result<_>>()?;
        Ok(Self { rows: batch.num_rows(), columns })
    }

    /// One row after the other; `None` when a coordinate is missing or not finite.
    fn rows(&self) -> impl Iterator<Item = Option<Vec<f64>>> {
        let coordinate = |column: &Float64Array, row| {
            let value = column.is_valid(row).then(|| column.value(row))?;
            // one zero only, so that equal points are equal bytes
            value.is_finite().then_some(value + 0.0)
        };
        (0..self.rows).map(move |row| self.columns.iter().map(|column| coordinate(column, row)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{Int32Array, StringArray};

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    fn points(rows: &[(Option<f64>, i32, &str)]) -> RecordBatch {
        batch_of(vec![
            ("x", Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>()) as ArrayRef),
            ("y", Arc::new(rows.iter().map(|row| row.1).collect::<Int32Array>())),
            ("name", Arc::new(rows.iter().map(|row| Some(row.2)).collect::<StringArray>())),
        ])
    }

    fn kmeans(k: i64) -> Call {
        Call::new(Kmeans).positional(Arc::new(Int64Array::from(vec![k])))
    }

    fn clusters(output: &[RecordBatch]) -> Vec<(String, Option<i64>)> {
        let of = |batch: &RecordBatch| {
            let names = batch.column(2).as_string::<i32>();
            let clusters = batch.column(3).as_primitive::<Int64Type>();
            names.iter().map(|name| name.unwrap().to_owned()).zip(clusters.iter()).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = output.iter().flat_map(of).collect();
        all.sort();
        all
    }

    #[test]
    fn separate_groups_become_clusters_in_the_order_of_their_centres() {
        let input = [
            points(&[(Some(100.0), 1, "right a"), (Some(-5.0), 2, "left a"), (None, 1, "nowhere")]),
            points(&[
                (Some(-6.0), 3, "left b"),
                (Some(101.0), 0, "right b"),
                (Some(50.0), 900, "top"),
                (Some(f64::NAN), 1, "nan"),
            ]),
        ];
        let output = kmeans(3).run(&input).unwrap();
        assert_eq!((output.len(), output[0].schema().field(3).name().as_str()), (2, "cluster"));
        assert_eq!(
            output[0].column(0).as_primitive::<Float64Type>().values(),
            input[0].column(0).as_primitive::<Float64Type>().values()
        );
        let expected = [("left a", 0), ("left b", 0), ("right a", 2), ("right b", 2), ("top", 1)];
        let numbered: Vec<_> =
            clusters(&output).into_iter().filter_map(|(name, cluster)| Some((name, cluster?))).collect();
        assert_eq!(numbered, expected.map(|(name, cluster)| (name.to_owned(), cluster)));
        assert_eq!(clusters(&output).iter().filter(|(_, cluster)| cluster.is_none()).count(), 2);
    }

    #[test]
    fn the_order_of_arrival_does_not_matter() {
        let rows: Vec<_> = (0..200).map(|i| (Some(f64::from((i * 37) % 101)), (i * 53) % 97)).collect();
        let names: Vec<_> = (0..200).map(|i| format!("{i:03}")).collect();
        let labelled: Vec<_> = rows.iter().zip(&names).map(|((x, y), name)| (*x, *y, name.as_str())).collect();
        let forward: Vec<_> = labelled.chunks(30).map(points).collect();
        let mut turned = labelled.clone();
        turned.reverse();
        let backward: Vec<_> = turned.chunks(7).map(points).collect();
        let first = clusters(&kmeans(5).run(&forward).unwrap());
        assert_eq!(first, clusters(&kmeans(5).run(&backward).unwrap()));
        let used: HashSet<_> = first.iter().map(|(_, cluster)| *cluster).collect();
        assert_eq!(used.len(), 5);
    }

    #[test]
    fn too_many_clusters_are_refused() {
        // both zeros are one point, though other points stand between them
        let input = [points(&[(Some(-0.0), 5, "a"), (Some(0.0), 1, "b"), (Some(0.0), 5, "c"), (Some(0.0), 1, "d")])];
        assert!(kmeans(2).run(&input).is_ok());
        let message = kmeans(3).run(&input).unwrap_err().to_string();
        assert_eq!(
            message,
            "kmeans: k = 3 clusters need as many different points, but the 4 rows of the input have only 2"
        );
        assert_eq!(kmeans(0).run(&input).unwrap_err().to_string(), "kmeans: argument 'k' must be at least 1, not 0");
        let taken = batch_of(vec![("Cluster", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        assert!(kmeans(1).run(&[taken]).unwrap_err().to_string().contains("a column 'cluster' already"));
    }
}
