-- What operators say of machines, by name, and what jobs ask of them: an expression over these labels.
ALTER TABLE machines ADD COLUMN labels jsonb NOT NULL DEFAULT '{}';
ALTER TABLE jobs ADD COLUMN machine_constraint text;
