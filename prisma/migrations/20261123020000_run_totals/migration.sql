-- Averages of runs become exact sums: whole numbers of units of 2^-200 (the core's RunTotals), so that what has been learned does not
-- depend on the order in which runs ended. A row so far is the sum of as many runs of its averages.
ALTER TABLE run_averages RENAME TO run_totals;
ALTER INDEX run_averages_pkey RENAME TO run_totals_pkey;
ALTER INDEX run_averages_news RENAME TO run_totals_news;
ALTER TABLE run_totals RENAME CONSTRAINT run_averages_user_id_fkey TO run_totals_user_id_fkey;

-- As triggers.units in functions.sql, which do not exist yet when migrations run.
CREATE FUNCTION pg_temp.units(x float8) RETURNS numeric LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  bits bigint := ('x' || encode(float8send(x), 'hex'))::bit(64)::bigint;
BEGIN
  IF x < 2::float8 ^ -140 THEN
    RETURN floor(x * 2::float8 ^ 200)::bigint;
  END IF;
  RETURN trunc(((bits & 4503599627370495) + 4503599627370496) * 2::numeric ^ ((bits >> 52) - 875)::int);
END $$;

ALTER TABLE run_totals
  ALTER turnaround_s TYPE numeric USING count * pg_temp.units(turnaround_s),
  ALTER execution_s TYPE numeric USING count * pg_temp.units(greatest(0, execution_s)),
  ALTER io_s TYPE numeric USING count * pg_temp.units(io_s);
ALTER TABLE run_totals RENAME turnaround_s TO turnaround;
ALTER TABLE run_totals RENAME execution_s TO execution;
ALTER TABLE run_totals RENAME io_s TO io;
DROP FUNCTION pg_temp.units(float8);
