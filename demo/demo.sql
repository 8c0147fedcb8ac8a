-- 3,376 US airports, read from a CSV file.
CREATE TABLE airports AS FROM 'airports.csv';

-- The sums of all numeric columns, computed by the worker; below them DuckDB's own.
SELECT 'worker' AS computed_by, latitude, longitude
FROM vgi_call(getvariable('server'), 'example', 'sum_all_columns', (SELECT latitude, longitude FROM airports))
UNION ALL
SELECT 'DuckDB', sum(latitude), sum(longitude) FROM airports;

-- Exact quantiles: the worker needs all rows before it can give the first one.
FROM vgi_call(
    getvariable('server'), 'example', 'quantiles',
    (SELECT latitude, longitude FROM airports),
    args := [0.1, 0.5, 0.9], named := {'exact': true}
);

-- Six clusters of coordinates by k-means, joined back to the names: what is in the middle of each?
WITH clustered AS (
    FROM vgi_call(
        getvariable('server'), 'example', 'kmeans',
        (SELECT iata, latitude, longitude FROM airports WHERE country = 'USA'),
        args := [6], named := {'iterations': 100, 'seed': 7}
    )
), centres AS (
    SELECT cluster, avg(latitude) AS lat, avg(longitude) AS lon FROM clustered GROUP BY cluster
)
SELECT
    cluster,
    count(*) AS airports,
    count(DISTINCT state) AS states,
    round(any_value(lat), 1) AS latitude,
    round(any_value(lon), 1) AS longitude,
    arg_min(city || ', ' || state, (c.latitude - lat) ^ 2 + (c.longitude - lon) ^ 2) AS in_the_middle
FROM clustered c JOIN centres USING (cluster) JOIN airports a USING (iata)
GROUP BY cluster
ORDER BY longitude;
